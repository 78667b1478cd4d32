"""How many of a model's wrong words are another model's: a copy is still one when some of its words were changed.

A wrong word is one that a perturbed clip's prediction has and its reference has not, nor the prediction of the clean
clip: names that nobody can spell, and mistakes of the reference, are shared by everybody. Two recognisers have up to
29 % of them in common (two Kaldi models), the same weights behind a front end up to 71 % (`results/matrix-2.parquet`,
13 systems), a copy all but those that were changed: the bound of 75 % stands just above what honest systems share. A
verified file keeps a sample of them as hashes (the smallest ones, a bottom-k sketch: Cohen and Kaplan, 2007), so that
submissions are compared without their predictions.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

SKETCH = 500  # hashes that are kept
FEWEST = 40  # wrong words that are needed to say anything
MOST_SHARED = 0.75
MOST_TIMES = 3  # as many wrong words: who writes every word there is has those of everybody
_ABOVE = 1 << 48  # every hash


def wrong_words(reference: str, prediction: str | None) -> frozenset[str]:
    """The words of a prediction that its reference does not have; one that is there twice too often is two."""
    surplus = Counter(_words(prediction or ""))
    surplus.subtract(_words(reference))
    return frozenset(f"{word} {count}" for word, extra in surplus.items() for count in range(extra))


def _words(text: str) -> Iterator[str]:
    """Its words without case and punctuation."""
    words = ("".join(filter(str.isalnum, word)) for word in text.casefold().split())
    return filter(None, words)


def sketch(items: Iterable[str]) -> list[int]:
    """The smallest hashes of some texts, in order: a sample that is the same for the same texts."""
    hashes = {int.from_bytes(hashlib.sha256(item.encode()).digest()[:6], "big") for item in items}
    return heapq.nsmallest(SKETCH, hashes)


def near_copy(ours: Sequence[int], theirs: Sequence[int]) -> str | None:
    """What two sketches have in common, if it is more than two recognisers have; None if it is not."""
    bound = min(numbers[-1] if len(numbers) == SKETCH else _ABOVE for numbers in (ours, theirs))  # both know all below
    few, many = sorted(({number for number in numbers if number <= bound} for numbers in (ours, theirs)), key=len)
    same = len(few & many)
    if len(few) < FEWEST or len(many) > MOST_TIMES * len(few) or same < MOST_SHARED * len(few):
        return None
    return f"{same} of {len(few)} wrong words of a sample"
