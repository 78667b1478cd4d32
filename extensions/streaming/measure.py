"""The measure `streaming`: latency and stability of each config that was streamed.

A condition (clean speech, or a category of scenarios) has the mean over its configs. It has no mean of a delay that one
of them lacks because nothing was recognised there, so that no model becomes faster by recognising less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from speech_robust_bench.core.categories import CATEGORIES, REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Record, Settings, Whole
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.extensions.streaming.clip_measures import measure_clip, updates_of
from speech_robust_bench.extensions.streaming.streams import calls_of, check_stream, check_words
from speech_robust_bench.scoring.bootstrap import Units, interval
from speech_robust_bench.scoring.estimate import FEWEST_UNITS, Estimate, ratio
from speech_robust_bench.scoring.measures import ConfigClips, Entry, Measure, TableForm

QUANTITIES = ("appear_s", "settle_s")  # one value a word; all others are one value a clip
DELAYS = ("first_word_s", "last_word_s", "endpoint_s")
QUANTILES = {"median": 0.5, "p95": 0.95}
BLOCK = 50  # replicates at a time
CLEAN = "clean"
HARD = "hard"  # the mean of all conditions but the clean one


class Figure(NamedTuple):
    """A figure of a config: the measure and the quantile of a delay, and its heads on pages and in the table."""

    head: str
    measure: str
    quantile: str | None = None
    percent: bool = False
    table_head: str = ""  # narrow enough for a terminal of 80 columns; "" for a figure that the table leaves out


FIGURES = {
    "first_word": Figure("first word s", "first_word_s", "median", table_head="first\ns"),
    "appear": Figure("word shown s", "appear_s", "median"),
    "settle": Figure("settled s", "settle_s", "median", table_head="settle\ns"),
    "settle_p95": Figure("settled, 95 % s", "settle_s", "p95", table_head="p95\ns"),
    "last_word": Figure("last word s", "last_word_s", "median"),
    "endpoint": Figure("endpoint s", "endpoint_s", "median", table_head="end\ns"),
    "early_cutoffs": Figure("cut off early %", "early_cutoffs", percent=True, table_head="cut\n%"),
    "churn": Figure("churn %", "churn", percent=True, table_head="churn\n%"),
    "flicker": Figure("flicker %", "flicker", percent=True),
    "late_chunks": Figure("late chunks %", "late_chunks", percent=True, table_head="late\n%"),
    "rtf": Figure("RTF", "rtf", table_head="RTF\n"),
}


class Delay(Record, frozen=True, kw_only=True):
    """A delay in seconds over `n` words or clips."""

    n: Whole
    median: ScoreValue
    p95: ScoreValue


class Streaming(Record, frozen=True, kw_only=True):
    """Latency and stability of a config that was streamed."""

    clips: Whole
    with_word_times: Whole
    churn: ScoreValue | None
    flicker: ScoreValue | None
    late_chunks: ScoreValue | None
    early_cutoffs: ScoreValue | None
    rtf: ScoreValue | None
    invented_words_per_minute: ScoreValue | None
    appear_s: Delay | None
    settle_s: Delay | None
    first_word_s: Delay | None
    last_word_s: Delay | None
    endpoint_s: Delay | None

    def figure(self, measure: str, quantile: str | None = None) -> ScoreValue | None:
        """A rate, or a quantile of a delay."""
        value = getattr(self, measure)
        return getattr(value, quantile) if value and quantile else value


def measure_lines(
    lines: Sequence[Prediction], replicates: int = 1000, level: float = 0.95, seed: int = 0, resample: str = "auto"
) -> Streaming | None:
    """The measures of a config from its predictions, each with an interval over speakers, or over clips where those
    are not known; None if it was not streamed.

    Delays are given as median and 95th percentile, pooled over words or clips. The bootstrap draws whole speakers or
    clips; a quantile is no ratio of sums, so its interval is the percentile one, made wide enough for few units.
    """
    streamed = [(line, line.stream) for line in lines if line.stream]
    if not streamed:
        return None
    for line, stream in streamed:
        try:
            check_stream(stream, line.seconds)
            check_words(line.word_times, line.seconds)
        except ValueError as problem:
            raise UserError(f"clip '{line.id}': {problem}; run it again with `srb run --stream`") from None
    clips = [measure_clip(updates_of(stream.events), line.word_times) for line, stream in streamed]
    calls = [calls_of(stream, line.seconds) for line, stream in streamed]
    durations = [line.seconds for line, _ in streamed]
    silent = [line.text is not None and not line.text.strip() for line, _ in streamed]  # null: not transcribed
    ratios: dict[str, tuple[Sequence[float], Sequence[float]]] = {
        "churn": ([c.erased for c in clips], [c.final_words for c in clips]),
        "flicker": ([c.revisions for c in clips], [c.updates for c in clips]),
        "late_chunks": ([c.late_chunks for c in calls], [c.chunks for c in calls]),
        "early_cutoffs": ([c.early_cutoff for c in clips], [c.endpoint_s is not None for c in clips]),
        "rtf": ([c.busy_s for c in calls], durations),
        "invented_words_per_minute": (
            [(c.final_words + c.erased) * none for c, none in zip(clips, silent, strict=True)],
            [duration / 60 * none for duration, none in zip(durations, silent, strict=True)],
        ),
    }
    ids = [line.id for line, _ in streamed]
    units = Units.of(ids, [line.speaker for line, _ in streamed], resample)
    values: dict[str, ScoreValue | Delay | None] = {
        name: _rate(
            ratio(units, *map(np.asarray, parts), scale=1.0, replicates=replicates, seed=seed).signed(),
            parts,
            level,
        )
        for name, parts in ratios.items()
    }
    draws = units.weights(replicates, seed) if replicates else np.zeros((0, len(units)))
    values |= {
        name: _delay([getattr(clip, name) for clip in clips], units, draws, level) for name in (*QUANTITIES, *DELAYS)
    }
    with_word_times = sum(bool(line.word_times) for line, _ in streamed)
    return Streaming(clips=len(clips), with_word_times=with_word_times, **values)  # type: ignore[arg-type]


def _rate(rate: Estimate, parts: tuple[Sequence[float], Sequence[float]], level: float) -> ScoreValue | None:
    """One sum over another, over all clips."""
    above, below = map(sum, parts)
    if not below:
        return None
    span = rate.interval(level)
    return ScoreValue(value=above / below, interval=list(span) if span else None)


def _delay(per_clip: Sequence[Any], units: Units, draws: np.ndarray, level: float) -> Delay | None:
    """Median and 95th percentile of a delay that a clip has once, or once per word."""
    values = [np.atleast_1d(np.asarray([] if value is None else value, dtype=float)) for value in per_clip]
    pooled = np.concatenate(values) if values else np.empty(0)
    if not len(pooled):
        return None
    order = np.argsort(pooled, kind="stable")
    clip_of = np.repeat(np.arange(len(values)), [len(value) for value in values])[order]
    drawn = _drawn_quantiles(pooled[order], units.place[clip_of], draws)
    active = len(set(units.place[clip_of].tolist()))
    quantiles = {
        name: ScoreValue(value=float(np.quantile(pooled, share)), interval=_interval(drawn[:, place], level, active))
        for place, (name, share) in enumerate(QUANTILES.items())
    }
    return Delay(n=len(pooled), **quantiles)


def _drawn_quantiles(ranked: np.ndarray, clip_of: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """The quantiles of each non-empty replicate: the smallest value with at least that share below or at it.

    In blocks of replicates, because every word has a weight for each.
    """
    places: list[list[int]] = []
    for start in range(0, len(draws), BLOCK):
        counts = draws[start : start + BLOCK, clip_of].cumsum(axis=1)
        counts = counts[counts[:, -1] > 0]
        places += [[int(np.searchsorted(row, share * row[-1])) for share in QUANTILES.values()] for row in counts]
    return ranked[np.array(places, dtype=int).reshape(-1, len(QUANTILES))]


def _interval(values: np.ndarray, level: float, units: int) -> list[float] | None:
    return list(interval(values, level, units)) if len(values) and units >= FEWEST_UNITS else None


# --- by condition ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Condition:
    """The mean over some configs: WER, and the figures that all of them have."""

    configs: int
    wer: float | None
    figures: Mapping[str, float | None]


def conditions(entries: Mapping[str, Entry], language: str) -> dict[str, Condition]:
    """The conditions of a streamed run in one language, clean speech first and the mean of the hard ones last.

    `entries` are the configs of results.json, or those of a verified file, whose scores are lists.
    """
    by_condition: dict[str, list[Entry]] = {}
    for entry in entries.values():
        if entry.language == language and entry.category != REJECT and streaming_of(entry):
            by_condition.setdefault(entry.category, []).append(entry)
    by_name = {
        name: Condition(
            len(by_condition[name]),
            _mean([wer_of(entry) for entry in by_condition[name]]),
            {figure: _mean([figure_of(entry, figure) for entry in by_condition[name]]) for figure in FIGURES},
        )
        for name in dict.fromkeys((*CATEGORIES, *sorted(by_condition)))
        if name in by_condition
    }
    hard = [condition for name, condition in by_name.items() if name != CLEAN]
    if hard:
        by_name[HARD] = Condition(
            sum(condition.configs for condition in hard),
            _mean([condition.wer for condition in hard]),
            {figure: _mean([condition.figures[figure] for condition in hard]) for figure in FIGURES},
        )
    return by_name


def numbers(record: Streaming) -> Settings:
    """All measures of a config as numbers, delays as median and 95th percentile."""
    row: Settings = {}
    for name in record.__struct_fields__:
        value = getattr(record, name)
        if name in (*QUANTITIES, *DELAYS):
            row |= {name: value and value.median.value, f"{name}_p95": value and value.p95.value}
        else:
            row[name] = value.value if isinstance(value, ScoreValue) else value
    return row


def wer_of(entry: Entry) -> float | None:
    """The WER of a config; None for one without speech."""
    score = getattr(entry, "wer", None)
    return (score.value if isinstance(score, ScoreValue) else score[0]) if score else None


def figure_of(entry: Entry, figure: str) -> float | None:
    """A figure of a config; None where it has no such measure."""
    record = streaming_of(entry)
    value = record.figure(FIGURES[figure].measure, FIGURES[figure].quantile) if record else None
    return value.value if value else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


# --- the table -------------------------------------------------------------------------------------------------------

LEGEND = """\
first, settle, end: median time until any word is shown, until a word no longer changes, until the final transcript
p95: 95th percentile of settle; cut: segments that ended before the last word; churn: words taken back per final word
late: chunks finished after the next one arrived; RTF: processing time / audio time"""


def table_rows(result: RunResults, folder: Path) -> list[list[str]]:
    """The cells of every config of a run that was streamed, as text; a measure that a config does not have is empty."""
    streamed = [(config, entry) for config, entry in result.entries() if streaming_of(entry)]
    if not streamed:
        raise UserError(f"{result.model} was not streamed; srb run --stream does")
    return [
        [config, _shown(wer_of(entry), 1), *(_cell(entry, name) for name, each in FIGURES.items() if each.table_head)]
        for config, entry in streamed
    ]


def _shown(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:.{digits}f}"


def _cell(entry: Entry, name: str) -> str:
    value = figure_of(entry, name)
    return _shown(value and 100 * value, 0) if FIGURES[name].percent else _shown(value, 2)


def _of_config(clips: ConfigClips) -> Streaming | None:
    options = clips.options
    try:
        return measure_lines(clips.predictions.lines, options.replicates, options.level, options.seed, options.resample)
    except UserError as problem:
        raise UserError(f"{clips.predictions.config}.jsonl, {problem}") from None


STREAMING = Measure(
    "streaming",
    Streaming,
    _of_config,
    needs="stream",
    columns=numbers,
    table=TableForm(
        "streaming",
        "print latency and stability of streamed runs",
        ("config\n", "WER\n%", *(each.table_head for each in FIGURES.values() if each.table_head)),
        table_rows,
        legend=LEGEND,
    ),
    section=f"{__package__}.report:streaming",
    page_files=tuple(Path(__file__).with_name(f"timeline.{kind}") for kind in ("css", "js")),
    verified=True,
    board=f"{__package__}.report:BOARD",
)
streaming_of = STREAMING.of
