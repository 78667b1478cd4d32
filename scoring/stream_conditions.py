"""Streaming measures by condition: clean speech, and each category of scenarios as the plain mean over its configs.

A delay that one of the configs lacks, because nothing was recognised there, is not averaged over the others: the
condition lacks it then, so that nobody becomes faster by recognising less.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from speech_robust_bench.core.categories import CATEGORIES, REJECT
from speech_robust_bench.core.result_records import ScoreValue, Streaming
from speech_robust_bench.scoring.stream_measures import DELAYS, QUANTITIES

CLEAN = "clean"
HARD = "hard"  # the mean of all conditions but the clean one
# name of a figure -> where it is in `streaming` of a config: the measure, and which quantile of a delay
FIGURES = {
    "first_word": ("first_word_s", "median"),
    "appear": ("appear_s", "median"),
    "settle": ("settle_s", "median"),
    "settle_p95": ("settle_s", "p95"),
    "last_word": ("last_word_s", "median"),
    "endpoint": ("endpoint_s", "median"),
    "early_cutoffs": ("early_cutoffs", None),
    "churn": ("churn", None),
    "flicker": ("flicker", None),
    "late_chunks": ("late_chunks", None),
    "rtf": ("rtf", None),
}


@dataclass(frozen=True)
class Condition:
    """The mean over some configs: WER, and the figures that all of them have."""

    configs: int
    wer: float | None
    figures: Mapping[str, float | None]


class StreamedEntry(Protocol):
    """The part of a config's entry, in results.json or in a verified file, that is about streaming."""

    @property
    def language(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def streaming(self) -> Streaming | None: ...


def conditions(entries: Mapping[str, StreamedEntry], language: str) -> dict[str, Condition]:
    """The conditions of a streamed run in one language, clean speech first and the mean of the hard ones last.

    `entries` are the configs of results.json, or those of a verified file, whose scores are lists.
    """
    by_condition: dict[str, list[StreamedEntry]] = {}
    for entry in entries.values():
        if entry.streaming and entry.language == language and entry.category != REJECT:
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


def stream_records(entries: Mapping[str, StreamedEntry]) -> list[dict[str, Any]]:
    """A flat dict for every streamed config: its WER and all measures, delays as median and 95th percentile."""
    records = []
    for config, entry in entries.items():
        if not entry.streaming:
            continue
        record: dict[str, Any] = {"config": config, "wer": wer_of(entry)}
        for name in entry.streaming.__struct_fields__:
            value = getattr(entry.streaming, name)
            if name in (*QUANTITIES, *DELAYS):
                record |= {name: value and value.median.value, f"{name}_p95": value and value.p95.value}
            else:
                record[name] = value.value if isinstance(value, ScoreValue) else value
        records.append(record)
    return records


def wer_of(entry: StreamedEntry) -> float | None:
    """The WER of a config; None for one without speech."""
    score = getattr(entry, "wer", None)
    return (score.value if isinstance(score, ScoreValue) else score[0]) if score else None


def figure_of(entry: StreamedEntry, figure: str) -> float | None:
    """A figure of a config; None where it has no such measure."""
    value = entry.streaming.figure(*FIGURES[figure]) if entry.streaming else None
    return value.value if value else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None
