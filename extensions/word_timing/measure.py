"""The measure `word_timing`: how far the word times of a recogniser are from a forced alignment of the reference.

A word counts where the alignment of transcript and reference has a hit. The mean absolute errors are over these words;
the shares within 50 and 100 ms (start and end both) are of all words of the reference, so that leaving out words that
are hard to place gains nothing. The reference times are those of the clean clip: a scenario that stretches moves them
in proportion, noise leaves them where they are. Asked for in Aksënova et al., BPPF 2021, Section 3.2.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Record, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, TableForm
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.score_options import ScoreOptions, estimated
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.table1 import cell_text
from speech_robust_bench.scoring.word_alignment import HIT, align_words

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import Config
    from speech_robust_bench.core.records import Settings, Told
    from speech_robust_bench.models.interface import Key, Recogniser


@dataclass(frozen=True)
class WordTimingOptions:
    """Align the reference of each clean clip with its audio, and keep the times with the predictions."""

    about: ClassVar[str] = "store where each word of the reference lies (forced alignment), to check word times"
    suffix: ClassVar[str] = "timed"
    advanced: ClassVar[bool] = True

    @property
    def flags(self) -> str:
        """The option of `srb run`."""
        return " --word-timing"

    @classmethod
    def of_run(cls, options: Settings) -> None:
        """A timed run differs from others in what is known of its clips alone, so nothing in its options tells."""

    def adapted(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser as it is."""
        return recogniser

    def wrap(self, recogniser: Recogniser) -> Recogniser:
        """The recogniser as it is."""
        return recogniser

    def facts(
        self, config: Config, clean: Callable[[], Config], wanted: set[int], store: Path
    ) -> Callable[[Prediction], dict[str, Any]]:
        """Where the words of a clip lie, from the clean clip that it was made from."""
        from speech_robust_bench.builders.word_times import word_times_of

        times = word_times_of(config, clean(), wanted, store / ".word_times")
        return lambda line: {"words": times(line)} if times else {}

    def agreement(
        self, sent: Mapping[Key, Prediction], again: Mapping[Key, Told], same: set[Key]
    ) -> tuple[int | None, float | None]:
        """Nothing besides the words is compared."""
        return None, None


Offsets = dict[int, tuple[float, float]]  # place of a reference word -> seconds that its start and end are late
ROUNDING_S = 1e-6  # times are stored in milliseconds: 0.05 s is within 50 ms


class WordTiming(Record, frozen=True, kw_only=True):
    """Errors of word times, in milliseconds, and shares of the reference words, in points."""

    clips: Whole
    words: Whole  # of the references, with a known place
    timed: Whole  # of these: recognised, and with times
    start_ms: ScoreValue | None
    end_ms: ScoreValue | None
    late_ms: float | None  # mean error of the start: how late the words are
    within_50_ms: ScoreValue
    within_100_ms: ScoreValue


def offsets(line: Prediction, normaliser: str = "srb-paper-1") -> Offsets:
    """How late the recognised words of a clip start and end.

    >>> from speech_robust_bench.core.records import WordConfidence, WordTime
    >>> words = [WordTime("so", 0.0, 0.25), WordTime("it", 0.25, 0.5)]
    >>> heard = [WordConfidence("So", None, 0.0, 0.5), WordConfidence("is", None, 0.5, 1.0)]
    >>> offsets(Prediction(id="a", text="so it", words=words, word_confidences=heard))
    {0: (0.0, 0.25)}
    """
    said = [(word.start_s, word.end_s, normalise(word.text, normaliser).split()) for word in line.word_times]
    heard = [
        (word.start_s, word.end_s, normalise(word.word, normaliser).split()) for word in line.word_confidences or ()
    ]
    places, tokens = _tokens([parts for *_, parts in said])
    heard_places, heard_tokens = _tokens([parts for *_, parts in heard])
    late: Offsets = {}
    for step in align_words(tokens, heard_tokens):
        if step.kind != HIT or step.reference is None or step.hypothesis is None:
            continue
        place = places[step.reference]
        start, end, parts = said[place]
        heard_start, heard_end, heard_parts = heard[heard_places[step.hypothesis]]
        if len(parts) == len(heard_parts) == 1 and heard_start is not None and heard_end is not None:
            late[place] = heard_start - start, heard_end - end
    return late


def _tokens(words: Sequence[Sequence[str]]) -> tuple[list[int], list[str]]:
    """The normalised words as one text, with the word that each comes from."""
    pairs = [(place, token) for place, tokens in enumerate(words) for token in tokens]
    return [place for place, _ in pairs], [token for _, token in pairs]


def of_lines(lines: Sequence[Prediction], options: ScoreOptions) -> WordTiming | None:
    """The timing of one config; None where word times of the reference or of the recogniser are not known."""
    known = [line for line in lines if line.word_times]
    if not any(word.start_s is not None for line in known for word in line.word_confidences or ()):
        return None
    late = [np.array(list(offsets(line, options.normaliser).values())).reshape(-1, 2) for line in known]
    words, timed = (np.array([len(each) for each in group]) for group in ([k.word_times for k in known], late))
    units = Units.of([line.id for line in known], [line.speaker for line in known], options.resample)

    def score(sums: np.ndarray, sizes: np.ndarray, scale: float) -> ScoreValue:
        how = {"replicates": options.replicates, "seed": options.seed}
        return estimated(ratio(units, sums, sizes, scale=scale, **how).signed(), options)

    def within(limit_s: float) -> ScoreValue:
        inside = [int((np.abs(each) <= limit_s + ROUNDING_S).all(axis=1).sum()) for each in late]
        return score(np.array(inside), words, 100.0)

    errors = np.array([np.abs(each).sum(axis=0) for each in late])
    any_timed = bool(timed.sum())
    return WordTiming(
        clips=len(known),
        words=int(words.sum()),
        timed=int(timed.sum()),
        start_ms=score(errors[:, 0], timed, 1000.0) if any_timed else None,
        end_ms=score(errors[:, 1], timed, 1000.0) if any_timed else None,
        late_ms=round(1000 * float(np.concatenate(late)[:, 0].mean()), 4) if any_timed else None,
        within_50_ms=within(0.05),
        within_100_ms=within(0.1),
    )


def moved_ms(noisy: Sequence[Prediction], clean: Sequence[Prediction], normaliser: str) -> float | None:
    """How far a scenario moves the start of a word, on average: of words that both transcripts have."""
    before = {line.id: offsets(line, normaliser) for line in clean}
    pairs = [
        (start, before[line.id][place][0])
        for line in noisy
        if line.id in before
        for place, (start, _) in offsets(line, normaliser).items()
        if place in before[line.id]
    ]
    return 1000 * float(np.mean([abs(now - then) for now, then in pairs])) if pairs else None


def _moved(run: Run, config: str, normaliser: str) -> float | None:
    clean = str(parse(config).clean)
    if clean == config or clean not in run.configs:
        return None
    return moved_ms(run.read(config).lines, run.read(clean).lines, normaliser)


def _of_config(clips: ConfigClips) -> WordTiming | None:
    return of_lines(clips.predictions.lines, clips.options) if clips.counts else None


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    run = open_run(folder)
    rows = []
    for config, entry in result.configs.items():
        if timing := WORD_TIMING.of(entry):
            scores = (timing.start_ms, timing.end_ms, timing.within_50_ms, timing.within_100_ms)
            numbers = (timing.late_ms, _moved(run, config, result.options.normaliser))
            late, moved = ("" if value is None else f"{value:.0f}" for value in numbers)
            rows.append((config, *(cell_text(s, True) for s in scores), late, moved, f"{timing.timed}/{timing.words}"))
    return rows


WORD_TIMING = Measure(
    "word_timing",
    WordTiming,
    _of_config,
    needs="words",
    columns=lambda record: {
        "start_ms": record.start_ms and record.start_ms.value,
        "end_ms": record.end_ms and record.end_ms.value,
        "within_50_ms": record.within_50_ms.value,
        "within_100_ms": record.within_100_ms.value,
    },
    table=TableForm(
        "word_timing",
        "print how far word times are from a forced alignment",
        ("config", "start\nms", "end\nms", "within\n50 ms %", "within\n100 ms %", "late\nms", "moved\nms", "words"),
        _rows,
        "these runs have no word times; run a model that gives them with --word-timing "
        "(docs/how-to/check-word-times.md)",
        legend="within: of all words of the references. moved: the start, against the clean clip. words: timed/all.",
        advanced=True,
    ),
    section=PageTable(
        "Word times",
        "The mean distance of the start and the end of recognised words from a forced alignment of the clean clip, and "
        "the share of all reference words that are within 50 and 100 ms at both ends.",
        ("start, ms", "end, ms", "within 50 ms, %", "within 100 ms, %", "words with times, %", "words"),
        lambda entry, timing: (
            timing.start_ms,
            timing.end_ms,
            timing.within_50_ms,
            timing.within_100_ms,
            (100 * timing.timed / timing.words, 0),
            (timing.words, 0),
        ),
    ),
)
