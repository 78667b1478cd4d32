"""Who said what: recognisers that label speakers, by cpWER and diarization error rate."""

MEASURES = {"who_spoke": f"{__name__}.measure:WHO_SPOKE"}
