"""How often masked words are written all the same: words that nobody can hear, and a recogniser writes from memory.

A masked word counts as written where the alignment of the transcript with the reference has a hit at its place. The
interval is a bootstrap over clips, and Wilson's where none or all of the words are written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from rapidfuzz.distance import Levenshtein

from srb.metrics.bootstrap import interval, weights
from srb.metrics.scoring import normalise

Json = dict[str, Any]


def of_lines(
    lines: Sequence[Mapping[str, Any]], normaliser: str, replicates: int, level: float, seed: int
) -> Json | None:
    """Masked words, how many of them are written, and the share in per cent; None where no line has any."""
    counted = [(line, written(line, normaliser)) for line in lines if places(line)]
    if not counted:
        return None
    masked = np.array([len(hits) for _, hits in counted])
    hits = np.array([sum(hits) for _, hits in counted])
    rate: Json = {"value": round(100 * hits.sum() / masked.sum(), 4), "interval": None}
    if replicates:
        draws = weights([str(line["id"]) for line, _ in counted], None, replicates=replicates, seed=seed)
        low, high = interval(100 * (draws @ hits) / np.maximum(draws @ masked, 1), level)
        if hits.sum() in (0, masked.sum()):  # none or all, in which no draw can differ
            low, high = _wilson(hits.sum() == 0, len(hits), level)
        rate["interval"] = [round(low, 4), round(high, 4)]
    return {"words": int(masked.sum()), "written": int(hits.sum()), "rate": rate}


def _wilson(none: bool, clips: int, level: float) -> tuple[float, float]:
    """Wilson's interval of a share of which none, or all, was seen, in per cent."""
    from scipy.stats import norm

    z = float(norm.isf((1 - level) / 2))
    beyond = 100 * z**2 / (clips + z**2)
    return (0.0, beyond) if none else (100 - beyond, 100.0)


def places(line: Mapping[str, Any]) -> list[int]:
    """The places of the masked words in a line's reference, split at spaces.

    >>> places({"text": "so be it", "masked": "1 2"}), places({"text": "so be it"})
    ([1, 2], [])
    """
    count = len(str(line.get("text") or "").split())
    return [place for place in map(int, str(line.get("masked") or "").split()) if place < count]


def written(line: Mapping[str, Any], normaliser: str = "srb-paper-1") -> list[bool]:
    """Of each masked word, whether the transcript has it at its place.

    >>> written({"text": "the old king died", "pred_text": "the old man died", "masked": "1 2"})
    [True, False]
    """
    language = line.get("language")
    tokens = [normalise(token, normaliser, language) for token in str(line["text"]).split()]
    kept = [place for place, token in enumerate(tokens) if token]
    transcript = normalise(str(line.get("pred_text") or ""), normaliser, language).split()
    hits: set[int] = set()
    for step in Levenshtein.opcodes([tokens[place] for place in kept], transcript):
        if step.tag == "equal":
            hits.update(kept[step.src_start : step.src_end])
    return [place in hits for place in places(line)]
