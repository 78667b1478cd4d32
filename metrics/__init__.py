"""The `evaluate` modules, one folder each, over the arithmetic of `scoring/`."""
