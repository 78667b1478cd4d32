"""Defences: randomised smoothing, its certificate, and gradients through it."""
