"""transformers' speech recognisers: one file for each way in which a model turns audio into text."""
