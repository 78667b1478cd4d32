"""Losses, attacks and the export of the adversarial configs that belong to one model."""
