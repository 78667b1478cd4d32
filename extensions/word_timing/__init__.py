"""Word timing: are the words where a recogniser says they are, and does noise move them?"""

API = {"WordTimingOptions": f"{__name__}.measure"}
MEASURES = {"word_timing": f"{__name__}.measure:WORD_TIMING"}
RUN_MODES = {"word_timing": f"{__name__}.measure:WordTimingOptions"}
