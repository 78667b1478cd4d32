"""Recognisers behind one small interface, and the runner that transcribes dataset configs with them."""
