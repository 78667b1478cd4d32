"""Accuracy against latency under every condition, for the report and the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speech_robust_bench.core.categories import label
from speech_robust_bench.report.charts import Axes, Curve, Point, Series, fixed, scatter
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.report.sections.overview import pareto_front
from speech_robust_bench.scoring.stream_conditions import CLEAN, HARD, Condition

LEAD = (
    "Down and to the left is better. The dashed line is the Pareto front of a condition: nobody is beyond it, more "
    "accurate and quicker. The faint line is the front of clean speech: the way from one to the other is what the "
    "condition costs. Latency is the median time from the end of a word until it and all before it stay as they are."
)
# head, figure of `stream_conditions`, factor, digits
COLUMNS = (
    ("first word s", "first_word", 1, 2),
    ("word shown s", "appear", 1, 2),
    ("settled s", "settle", 1, 2),
    ("settled, 95 % s", "settle_p95", 1, 2),
    ("last word s", "last_word", 1, 2),
    ("endpoint s", "endpoint", 1, 2),
    ("cut off early %", "early_cutoffs", 100, 1),
    ("churn %", "churn", 100, 1),
    ("flicker %", "flicker", 100, 1),
    ("late chunks %", "late_chunks", 100, 1),
    ("RTF", "rtf", 1, 2),
)


def condition_label(which: str) -> str:
    """A condition's name for people."""
    return {CLEAN: "Clean", HARD: "All but clean"}.get(which) or label(which)


def latency_charts(streamed: Sequence[tuple[int, str, Mapping[str, Condition]]], ranked: set[str]) -> list[Html]:
    """A chart for each condition: WER against the settling of words, with the Pareto front of those that are ranked.

    All have the same axes, so that what moves from one to the other can be seen.
    """
    fronts: dict[str, list[tuple[float, float]]] = {}
    series: dict[str, list[Series]] = {}
    for which in dict.fromkeys(which for _, _, conditions in streamed for which in conditions):
        points = [
            (index, who, conditions[which].figures["settle"], conditions[which].wer)
            for index, who, conditions in streamed
            if which in conditions
        ]
        known = [(i, who, x, y) for i, who, x, y in points if x is not None and y is not None]
        if known:
            fronts[which] = pareto_front([(x, y) for _, who, x, y in known if who in ranked])
            series[which] = [
                Series(i, [Point(x, y, f"{who}: {x:.2f} s, WER {fixed(y)}")], who) for i, who, x, y in known
            ]
    everything = [(p.x, p.y) for those in series.values() for line in those for p in line.points]
    return [_chart(which, series[which], fronts, everything) for which in series]


def _chart(
    which: str,
    series: Sequence[Series],
    fronts: Mapping[str, Sequence[tuple[float, float]]],
    everything: Sequence[tuple[float, float]],
) -> Html:
    curves = [Curve(fronts[which], steps=True)]
    if which != CLEAN and fronts.get(CLEAN):
        curves.append(Curve(fronts[CLEAN], steps=True, faint=True))
    axes = Axes("latency of a word, s", "WER", within=everything)
    chart = scatter(series, axes, f"WER against latency: {condition_label(which)}", curves)
    return tag("figure", tag("figcaption", condition_label(which)), chart)
