"""Masked words: does a recogniser recognise a word, or remember the sentence?"""

CATEGORIES = {"masked": "words taken out: what is written in their place was not heard"}
MEASURES = {"masked": f"{__name__}.measure:MASKED"}
SCENARIOS = {"masked": f"{__name__}.masking:SILENCE", "masked_noise": f"{__name__}.masking:NOISE"}
