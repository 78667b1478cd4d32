"""Attacks beyond the paper's two: auto, Carlini-Wagner, psychoacoustic, transfer, black-box and language confusion."""
