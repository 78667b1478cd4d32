"""Are masked words written because they are remembered? Beside how often they are written: how often a language model
that has never heard anything would guess them, and how often they are written where they can be heard.

The language model is the trigram that PocketSphinx carries: small, so a floor. It guesses the word that fits best
between the two words before and the two words after a mask; in a longer mask word after word, on its own guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.forced_alignment import LANGUAGE, spoken_words
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.masked_words import places, written
from speech_robust_bench.scoring.runs import Run

HEADS = ("config", "masked\nwords", "written\n%", "\ninterval", "LM guesses\n%", "if heard\n%", "\nWERD")
VOCABULARY = 10_000  # the commonest words, among which it guesses
SHORTLIST = 200  # of what may follow the words before; the words after choose among these


@dataclass(frozen=True)
class MaskedRow:
    """One config with masked words of one model; shares in per cent, None where they are not known."""

    config: str
    words: int
    rate: float
    interval: tuple[float, float] | None
    guessed: float | None  # by the language model
    heard: float | None  # the same words in the clean config
    werd: float | None

    def cells(self) -> list[str]:
        """The row as text, in the order of HEADS."""
        span = f"{self.interval[0]:.1f} to {self.interval[1]:.1f}" if self.interval else ""
        rest = ["" if value is None else f"{value:.1f}" for value in (self.guessed, self.heard, self.werd)]
        return [self.config, str(self.words), f"{self.rate:.1f}", span, *rest]


def masked_rows(run: Run, results: RunResults) -> list[MaskedRow]:
    """Every config with masked words of a run, or a line that says how to get some."""
    rows = [_row(run, config, results) for config, entry in results.configs.items() if entry.masked]
    if not rows:
        raise UserError(f"{run.model} was run on no config with masked words; run it on 'en_masked_*'")
    return rows


def _row(run: Run, config: str, results: RunResults) -> MaskedRow:
    entry, normaliser = results.configs[config], results.options.normaliser
    lines = [line for line in run.read(config).lines if places(line)]
    assert entry.masked is not None
    span = entry.masked.rate.interval
    return MaskedRow(
        config=config,
        words=entry.masked.words,
        rate=entry.masked.rate.value,
        interval=(span[0], span[1]) if span else None,
        guessed=_share(_guessed(lines, normaliser)) if parse(config).language == LANGUAGE and _model() else None,
        heard=_share(_heard(run, config, lines, normaliser)),
        werd=entry.werd.value if entry.werd else None,
    )


def _guessed(lines: Sequence[Prediction], normaliser: str) -> Iterator[bool]:
    """Of each masked word, whether the language model guesses it: as if the guess had been transcribed."""
    for line in lines:
        masked = tuple(places(line))
        guess = " ".join(filled(tuple((line.text or "").split()), masked))
        yield from written(line.replace(pred_text=guess), normaliser)


def _heard(run: Run, config: str, lines: Sequence[Prediction], normaliser: str) -> Iterator[bool]:
    """Of each masked word, whether it is written in the clean config, if the run has it."""
    clean = str(parse(config).clean)
    known = {line.id: line for line in run.read(clean).lines} if clean in run.configs else {}
    for line in lines:
        if line.id in known:
            yield from written(known[line.id].replace(masked=line.masked), normaliser)


def _share(hits: Iterator[bool]) -> float | None:
    values = list(hits)
    return 100 * sum(values) / len(values) if values else None


@lru_cache(maxsize=10_000)
def filled(words: tuple[str, ...], masked: tuple[int, ...]) -> tuple[str, ...]:
    """The words of a transcript, the masked ones as the language model guesses them."""
    spoken = [" ".join(spoken_words(word)) for word in words]
    for place in masked:
        after = [spoken[next_] for next_ in range(place + 1, min(place + 3, len(words)))]
        known_after = after if place + 1 not in masked else []
        spoken[place] = guess(tuple(spoken[max(place - 2, 0) : place]), tuple(known_after))
    return tuple(spoken)


@lru_cache(maxsize=10_000)
def guess(before: tuple[str, ...], after: tuple[str, ...]) -> str:
    """The word that fits best between up to two words before and up to two after."""
    model = _model()
    back = list(reversed(before))
    ranked = sorted(_vocabulary(), key=lambda word: -model.prob([word, *back]))[:SHORTLIST]

    def log_probability(word: str) -> int:
        line = [*before, word, *after]
        start = len(before)
        return sum(model.prob(line[max(end - 2, 0) : end + 1][::-1]) for end in range(start, len(line)))

    return max(ranked, key=log_probability)


@cache
def _model() -> Any:
    """PocketSphinx's trigram model, None where it is not installed."""
    try:
        import pocketsphinx
    except ImportError:
        return None
    return pocketsphinx.NGramModel.readfile(str(Path(pocketsphinx.get_model_path()) / "en-us" / "en-us.lm.bin"))


@cache
def _vocabulary() -> tuple[str, ...]:
    """The commonest words of PocketSphinx's dictionary, by the model."""
    import pocketsphinx

    dictionary = Path(pocketsphinx.get_model_path()) / "en-us" / "cmudict-en-us.dict"
    words = (line.split(" ", 1)[0] for line in dictionary.read_text("utf-8").splitlines())
    known = ((_model().prob([word]), word) for word in words if "(" not in word)
    return tuple(word for _, word in sorted(known, reverse=True)[:VOCABULARY])
