"""Banks: the noises, music, speech and rooms that scenarios draw from."""
