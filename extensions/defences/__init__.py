"""Defences: randomised smoothing, its certificate, and gradients through it."""

ADAPTERS = {"smooth": f"{__name__}.smooth"}
VIEWS = {"Smooth": f"{__name__}.views:defended_view"}
