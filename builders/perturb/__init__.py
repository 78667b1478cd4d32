"""Perturbations: pure functions `(samples, rate, value, rng) -> samples`, one file each. No files, globals or clock."""
