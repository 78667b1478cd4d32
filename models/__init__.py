"""Recognisers behind one small interface, and the runner that puts them in front of a dataset config."""
