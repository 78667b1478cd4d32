"""Perturbations: pure functions `(samples, rate, value, rng) -> samples`, one file each. No files, no globals, no clock."""
