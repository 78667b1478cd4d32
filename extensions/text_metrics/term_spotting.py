"""Names and terms: how many were recognised, and how many were invented.

A recogniser with a list of expected terms is tested on clips in which one of them is said (biased) and on clips in
which none is (anti-biased), where the list can only do harm. B-WER and U-WER, the error rates of the words in the terms
and of all others, follow Le et al., "Contextualized streaming end-to-end speech recognition with trie-based deep
biasing and shallow fusion", Interspeech 2021.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.text_metrics.text_formatting import Tally, written_words
from speech_robust_bench.scoring.scoring import error_rate, normalise
from speech_robust_bench.scoring.word_alignment import HIT, Operation, operations

Words = tuple[str, ...]


def terms_of_clips(terms: Sequence[str] | Sequence[Sequence[str]], clips: int) -> list[Sequence[str]]:
    """The terms of each clip: one list for all of them, or a list for each."""
    if isinstance(terms, str):
        raise UserError("terms must be a list of strings, or a list of such lists, one for each utterance")
    if all(isinstance(term, str) for term in terms):
        return [list(map(str, terms))] * clips
    if len(terms) != clips or any(isinstance(those, str) for those in terms):
        raise UserError(f"{clips} utterances but {len(terms)} lists of terms; give one list for all, or one for each")
    return list(terms)


def count_term(words: Sequence[str], term: Words) -> int:
    """The number of times a term is in a transcript, word by word.

    >>> count_term("new york is not new yorkshire".split(), ("new", "york"))
    1
    """
    return sum(tuple(words[i : i + len(term)]) == term for i in range(len(words) - len(term) + 1)) if term else 0


def term_scores(
    references: Sequence[str],
    predictions: Sequence[str],
    terms: Sequence[str] | Sequence[Sequence[str]],
    normaliser: str,
    capitals: bool = False,
) -> dict[str, Any]:
    """Precision and recall of terms, B-WER and U-WER, and false alarms where no term is said."""

    def split(text: str) -> list[str]:
        if capitals:
            return [word.text for word in written_words(text)]
        return normalise(text, normaliser).split()

    total, by_term = Tally(), dict[str, Tally]()
    biased = anti_biased = alarms = 0
    inside, outside = [0, 0], [0, 0]  # errors and words, of the words of terms and of the others
    texts = [split(text) for text in references], [split(text) for text in predictions]
    clips = zip(*texts, operations(*texts), terms_of_clips(terms, len(references)), strict=True)
    for said, written, steps, those in clips:
        counts = {term: (count_term(said, w), count_term(written, w)) for term in those if (w := tuple(split(term)))}
        for term, (expected, there) in counts.items():
            for tally in (total, by_term.setdefault(term, Tally())):
                tally.add(expected, there)
        if any(expected for expected, _ in counts.values()):
            biased += 1
        else:
            anti_biased += 1
            alarms += any(there for _, there in counts.values())
        _add_errors(said, written, steps, {word for term in those for word in split(term)}, inside, outside)
    return {
        **total.scores(),
        "terms": {term: tally.scores() for term, tally in by_term.items()},
        "b_wer": float(error_rate(*inside)) if inside[1] else None,
        "u_wer": float(error_rate(*outside)) if outside[1] else None,
        "biased_utterances": biased,
        "anti_biased_utterances": anti_biased,
        "false_alarm_rate": 100 * alarms / anti_biased if anti_biased else None,
    }


def _add_errors(
    said: Sequence[str],
    written: Sequence[str],
    steps: Sequence[Operation],
    of_terms: set[str],
    inside: list[int],
    outside: list[int],
) -> None:
    """Add the errors and words of one clip; an inserted word counts by itself, as in Le et al."""
    for word in said:
        (inside if word in of_terms else outside)[1] += 1
    for _, place, position in (step for step in steps if step.kind != HIT):
        word = written[position] if place is None and position is not None else said[place or 0]
        (inside if word in of_terms else outside)[0] += 1
