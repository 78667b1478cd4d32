"""N-best lists: how much of the error is in the choice among transcripts that a recogniser had in hand."""

MEASURES = {"n_best": f"{__name__}.measure:N_BEST"}
