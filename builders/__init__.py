"""Corpora, banks, perturbations, the scenario table and the dataset builder."""
