"""The measure `masked`: how often masked words, which cannot be heard, are written from memory.

A masked word counts as written where the alignment of the transcript with the reference has a hit at its place. The
interval is a bootstrap over clips. Where few words are written, or few are not, the replicates hardly differ, so it is
at least as wide as Wilson's for as many clips.

The table compares this with how often a language model would guess the words from the text alone, and how often they
are written where they can be heard. The language model is the trigram of PocketSphinx, which is small, so a lower
bound. It guesses the word that fits best between the two words before and the two words after a mask; in a longer mask
one word after the other, from its own guesses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders.forced_alignment import LANGUAGE, spoken_words
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Record, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.scoring.bootstrap import interval, weights
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, TableForm
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_alignment import HIT, align_words

FEW = 5  # words, below which the bootstrap's interval is too narrow
VOCABULARY = 10_000  # the commonest words, among which the language model guesses
SHORTLIST = 200  # of what may follow the words before; the words after choose among these


class MaskedRate(Record, frozen=True, kw_only=True):
    """The masked words, and those that were written although they cannot be heard."""

    words: Whole
    written: Whole
    rate: ScoreValue


def masked_rate(
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
    """For each masked word, whether the transcript has it at its place; words that normalise to nothing are left out.

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


# --- the table: are they written because they are remembered? --------------------------------------------------------


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
        """The row as text, in the order of the table."""
        span = f"{self.interval[0]:.1f} to {self.interval[1]:.1f}" if self.interval else ""
        rest = ["" if value is None else f"{value:.1f}" for value in (self.guessed, self.heard, self.werd)]
        return [self.config, str(self.words), f"{self.rate:.1f}", span, *rest]


def masked_rows(run: Run, results: RunResults) -> list[MaskedRow]:
    """Every config with masked words of a run."""
    rows = [_row(run, config, results) for config, entry in results.configs.items() if MASKED.of(entry)]
    if not rows:
        raise UserError(f"{run.model} has no config with masked words; run it on 'en_masked_*'")
    return rows


def _row(run: Run, config: str, results: RunResults) -> MaskedRow:
    entry, normaliser = results.configs[config], results.options.normaliser
    lines = [line for line in run.read(config).lines if places(line)]
    masked: MaskedRate = MASKED.of(entry)
    span = masked.rate.interval
    return MaskedRow(
        config=config,
        words=masked.words,
        rate=masked.rate.value,
        interval=(span[0], span[1]) if span else None,
        guessed=_share(_guessed(lines, normaliser)) if parse(config).language == LANGUAGE and _model() else None,
        heard=_share(_heard(run, config, lines, normaliser)),
        werd=entry.werd.value if entry.werd else None,
    )


def _guessed(lines: Sequence[Prediction], normaliser: str) -> Iterator[bool]:
    """For each masked word, whether the language model guesses it; a guess is scored like a transcript."""
    for line in lines:
        masked = tuple(places(line))
        guess = " ".join(filled(tuple((line.text or "").split()), masked))
        yield from written(line.replace(pred_text=guess), normaliser)


def _heard(run: Run, config: str, lines: Sequence[Prediction], normaliser: str) -> Iterator[bool]:
    """For each masked word, whether it is written in the clean config, if the run has it."""
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
    """The words of a transcript, with the guesses of the language model for the masked ones."""
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


def _of_config(clips: ConfigClips) -> MaskedRate | None:
    options = clips.options
    if not clips.counts:
        return None
    return masked_rate(clips.predictions.lines, options.normaliser, options.replicates, options.level, options.seed)


def _rows(result: RunResults, folder: Path) -> list[list[str]]:
    return [row.cells() for row in masked_rows(open_run(folder), result)]


MASKED = Measure(
    "masked",
    MaskedRate,
    _of_config,
    needs="masked",
    table=TableForm(
        "masked",
        "print how often masked words are written although they cannot be heard",
        ("config", "masked\nwords", "written\n%", "\ninterval", "LM guesses\n%", "if heard\n%", "\nWERD"),
        _rows,
    ),
    section=PageTable(
        "Masked words",
        "Words were replaced by silence or noise, so a model that writes them guesses or remembers them. A higher "
        "share on famous sentences than on new ones is a sign of memorisation. `srb table --masked` compares it with "
        "the guesses of a language model.",
        ("masked words", "written, %", "WERD, points"),
        lambda entry, masked: ((masked.words, 0), masked.rate, entry.werd),
    ),
)
