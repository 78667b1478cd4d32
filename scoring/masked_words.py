"""How often masked words are written: words that nobody can hear, so a recogniser writes them from memory.

A masked word counts as written where the alignment of the transcript with the reference has a hit at its place. The
interval is a bootstrap over clips. Where few words are written, or few are not, the draws hardly differ, so it is at
least as wide as Wilson's for as many clips.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import MaskedRate, ScoreValue
from speech_robust_bench.scoring.bootstrap import interval, weights
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_alignment import HIT, align_words

FEW = 5  # words, below which the bootstrap's interval is too narrow


def of_lines(
    lines: Sequence[Prediction], normaliser: str, replicates: int, level: float, seed: int
) -> MaskedRate | None:
    """Masked words, how many of them are written, and the share in per cent; None where no line has any."""
    counted = [(line, written(line, normaliser)) for line in lines if places(line)]
    counted = [(line, hits) for line, hits in counted if hits]
    if not counted:
        return None
    masked = np.array([len(hits) for _, hits in counted])
    hits = np.array([sum(hits) for _, hits in counted])
    bounds = None
    if replicates:
        draws = weights([line.id for line, _ in counted], None, replicates=replicates, seed=seed)
        low, high = interval(100 * (draws @ hits) / np.maximum(draws @ masked, 1), level)
        if min(hits.sum(), (masked - hits).sum()) < FEW:
            wilson = _wilson(hits.sum() / masked.sum(), len(hits), level)
            low, high = min(low, wilson[0]), max(high, wilson[1])
        bounds = (low, high)
    rate = ScoreValue(
        value=round(100 * float(hits.sum() / masked.sum()), 4),
        interval=None if bounds is None else [round(float(bound), 4) for bound in bounds],
    )
    return MaskedRate(words=int(masked.sum()), written=int(hits.sum()), rate=rate)


def _wilson(share: float, clips: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share, as if every clip had one word, in per cent."""
    from scipy.stats import norm

    z2 = float(norm.isf((1 - level) / 2)) ** 2
    middle = (share + z2 / (2 * clips)) / (1 + z2 / clips)
    half = np.sqrt(z2 * share * (1 - share) / clips + (z2 / (2 * clips)) ** 2) / (1 + z2 / clips)
    return max(0.0, 100 * (middle - half)), min(100.0, 100 * (middle + half))


def places(line: Prediction) -> list[int]:
    """The places of the masked words in a line's reference, split at spaces.

    >>> places(Prediction(id="a", text="so be it", masked="1 2")), places(Prediction(id="a", text="so be it"))
    ([1, 2], [])
    """
    count = len((line.text or "").split())
    return [place for place in map(int, (line.masked or "").split()) if place < count]


def written(line: Prediction, normaliser: str = "srb-paper-1") -> list[bool]:
    """Of each masked word, whether the transcript has it at its place; words that normalise to nothing are left out.

    >>> written(Prediction(id="a", text="the old king died", pred_text="the old man died", masked="1 2"))
    [True, False]
    """
    language, words = line.language, str(line.text).split()
    reference = normalise(" ".join(words), normaliser, language).split()
    transcript = normalise(line.transcript, normaliser, language).split()
    hits = {step.reference for step in align_words(reference, transcript) if step.kind == HIT}
    tokens = _tokens_of_words([normalise(word, normaliser, language).split() for word in words], reference)
    return [hits.issuperset(tokens[place]) for place in places(line) if tokens[place]]


def _tokens_of_words(alone: Sequence[Sequence[str]], together: Sequence[str]) -> list[set[int]]:
    """For each word the places of its tokens in the normalised sentence, from the tokens that it has alone.

    Where a normaliser writes several words as one ("forty five" as "45"), all of them have the tokens of all.

    >>> _tokens_of_words([["in"], ["40"], ["5"], [], ["or"]], ["in", "45", "or"])
    [{0}, {1}, {1}, set(), {2}]
    """
    owners = [word for word, tokens in enumerate(alone) for _ in tokens]
    found: list[set[int]] = [set() for _ in alone]
    changed: tuple[set[int], set[int]] = set(), set()  # words and tokens since the last that were the same
    for kind, source, place in align_words([token for tokens in alone for token in tokens], together):
        if kind == HIT and source is not None and place is not None:
            for word in changed[0]:
                found[word] |= changed[1]
            changed = set(), set()
            found[owners[source]].add(place)
            continue
        if source is not None:
            changed[0].add(owners[source])
        if place is not None:
            changed[1].add(place)
    for word in changed[0]:
        found[word] |= changed[1]
    return found
