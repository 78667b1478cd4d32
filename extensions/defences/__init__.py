"""Defences: randomised smoothing, its certificate, and gradients through it."""

ADAPTERS = {"smooth": f"{__name__}.smooth"}
