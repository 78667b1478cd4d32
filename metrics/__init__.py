"""WERD, NWERD, LWERR and their family: `evaluate` modules over one small scoring core."""
