"""Who pays for the errors, and which words: fairness tests, fault localisation and diagnosis of recognisers."""
