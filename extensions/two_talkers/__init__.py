"""Two talkers at once: clips of a corpus mixed in pairs, and how well a recogniser has the better one."""

CATEGORIES = {"overlap": "two talkers at once: both are to be transcribed"}
MEASURES = {"overlap": f"{__name__}.measure:OVERLAP"}
SCENARIOS = {"overlap": f"{__name__}.mixing:OVERLAP"}
