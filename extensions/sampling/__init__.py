"""Fewer clips: anchors that predict the score of all, and how stable a ranking is."""
