"""Streamed recognisers in the report and on the leaderboard: accuracy against latency under every condition.

One streamed clip is drawn: the audio, its words, and when each was shown and settled.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, StreamEvent, WordTime
from speech_robust_bench.extensions.streaming.clip_measures import (
    Update,
    measure_clip,
    segments_of,
    shown_words,
    updates_of,
    word_hits,
)
from speech_robust_bench.extensions.streaming.measure import (
    CLEAN,
    FIGURES,
    HARD,
    Condition,
    conditions,
    figure_of,
    streaming_of,
    wer_of,
)
from speech_robust_bench.push.leaderboard.board import Entry, Row
from speech_robust_bench.push.leaderboard.pages import BoardPage, column_head, model_link, sort_table, table_cell
from speech_robust_bench.report.charts import (
    Axes,
    Curve,
    Point,
    Scale,
    Series,
    fixed,
    legend_mark,
    scatter,
    series_class,
    tick_text,
)
from speech_robust_bench.report.html import Html, join, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel, audio_urls
from speech_robust_bench.report.sections.overview import pareto_front
from speech_robust_bench.report.sections.parts import legend, name, number, section
from speech_robust_bench.scoring.runs import Run, open_run

WIDTH, SIDE, ROW, AUDIO, SPOKEN = 1000, 14, 17, 44, 22
LETTER = 6.6  # about the width of a letter, to see whether a word fits its bar
TIMELINES = (
    "Time runs from left to right. Above are the audio and its words. Below is a bar for each word of the transcript: "
    "pale while it or a word before it still changed, dark from when it stayed, struck out where it was taken back. A "
    "dot marks the end of the spoken word; from there to its bar is the delay."
)


def timelines(report: Report, language: str) -> Html | None:
    """A clip with a player, and the timeline of every streamed model."""
    runs = {
        model.index: open_run(model.folder)
        for model in report.ranked(language)
        if model.folder and conditions(model.results.configs, language)
    }
    clip = choose(runs, language)
    if clip is None:
        return None
    source = None
    if report.data:
        clip = replace(clip, envelope=envelope(report.data, clip.config, clip.id))
        source = audio_urls(report.data, {clip.config: {clip.id}}).get((clip.config, clip.id))
    player = tag("audio", controls="", preload="auto", src=source, aria_label=clip.id) if source else None
    figures = [_figure(model, clip) for model in report.ranked(language) if model.index in clip.events]
    said = tag("p", f"{clip.config}, {clip.id}: ", tag("q", clip.text), class_="said")
    return tag(
        "div", tag("h3", "One clip"), tag("p", TIMELINES, class_="lead"), said, player, figures, class_="timelines"
    )


def _figure(model: ReportedModel, clip: StreamClip) -> Html:
    events = clip.events[model.index]
    updates = updates_of(events)
    x = Scale(0.0, clip.end_s + 0.05, SIDE, WIDTH - SIDE)
    bars, rows = stays(updates, clip.end_s + 0.05)
    top = (AUDIO if clip.envelope else 0) + SPOKEN + 6
    height = top + max(rows, 1) * ROW + 24
    shown = [word for segment in segments_of(updates) for word in shown_words(segment)]
    kept = [bar for bar in bars if not bar.erased]
    settled = {bar.row: word.settled_s for bar, word in zip(kept, shown, strict=True)}
    marks = [*_grid(x, height), *_audio(clip, x), *_spoken(clip, x, top)]
    for bar in bars:
        marks += _bar(
            bar.word, x, top + bar.row * ROW, (bar.from_s, bar.to_s), None if bar.erased else settled[bar.row]
        )
    for place, position in word_hits(clip.words, shown):
        end, y = clip.words[place].end_s, top + kept[position].row * ROW + ROW / 2
        title = tag("title", f"said by {end:.2f} s, shown at {kept[position].from_s:.2f} s")
        marks.append(tag("line", x1=x(end), x2=x(kept[position].from_s), y1=y, y2=y, class_="wait"))
        marks.append(tag("circle", title, cx=x(end), cy=y, r=3, class_="end"))
    marks.append(tag("line", x1=SIDE, x2=SIDE, y1=0, y2=height - 18, class_="cursor"))
    measures = measure_clip(updates, clip.words)
    facts = f"{measures.erased} words taken back"
    if measures.endpoint_s is not None:
        facts += f"; final {measures.endpoint_s:.2f} s after the last word"
    drawing = tag(
        "svg",
        marks,
        viewBox=f"0 0 {WIDTH} {height}",
        role="img",
        aria_label=f"timeline of {model.name}",
        class_="times",
    )
    return tag(
        "figure",
        tag("figcaption", name(model), " ", tag("small", facts)),
        tag("p", Html("&nbsp;"), class_="caption", aria_live="off"),
        tag("div", drawing, class_="scroll"),
        class_=f"timeline {series_class(model.index)}",
        data_events=json.dumps(_captions(events), ensure_ascii=False),
        data_end=x.high,
        data_left=SIDE,
        data_right=WIDTH - SIDE,
    )


def _captions(events: Sequence[StreamEvent]) -> list[tuple[float, str, str]]:
    """The transcript on the screen from each event on: [time, final text, text that may change]."""
    captions: list[tuple[float, str, str]] = []
    final = ""
    for time_s, _, text, kind in events:
        if kind == "partial":
            captions.append((time_s, final, text))
        else:
            final = f"{final} {text}".strip()
            captions.append((time_s, final, ""))
    return captions


def _grid(x: Scale, height: float) -> list[Html]:
    marks = []
    for value in x.ticks(10):
        marks.append(tag("line", x1=x(value), x2=x(value), y1=0, y2=height - 18, class_="grid"))
        marks.append(tag("text", f"{tick_text(value)} s", x=x(value), y=height - 4, text_anchor="middle"))
    return marks


def _audio(clip: StreamClip, x: Scale) -> list[Html]:
    if not clip.envelope:
        return []
    middle = AUDIO / 2
    places = [clip.duration_s * (i + 0.5) / len(clip.envelope) for i in range(len(clip.envelope))]
    upper = [f"{x(at)},{middle - level * (middle - 2):.1f}" for at, level in zip(places, clip.envelope, strict=True)]
    lower = [f"{x(at)},{middle + level * (middle - 2):.1f}" for at, level in zip(places, clip.envelope, strict=True)]
    return [tag("polygon", points=" ".join([*upper, *lower[::-1]]), class_="wave")]


def _spoken(clip: StreamClip, x: Scale, top: float) -> list[Html]:
    y, marks = top - SPOKEN - 2, []
    for word in clip.words:
        left, right = x(word.start_s), x(word.end_s)
        box = tag("title", f"{word.text}: {word.start_s:.2f} to {word.end_s:.2f} s")
        marks.append(tag("rect", box, x=left, y=y, width=round(max(right - left - 1, 1), 2), height=16, class_="said"))
        if len(word.text) * LETTER <= right - left + 2:
            marks.append(tag("text", word.text, x=round((left + right) / 2, 1), y=y + 12, text_anchor="middle"))
    return marks


def _bar(word: str, x: Scale, y: float, span: tuple[float, float], settled_s: float | None) -> list[Html]:
    """A word that was taken back, or one that stayed: pale until it settled."""
    left, right = x(span[0]), x(span[1])
    said = f"{word}: shown at {span[0]:.2f} s" + (f", taken back at {span[1]:.2f} s" if settled_s is None else "")
    if settled_s is not None and settled_s > span[0]:
        said += f", settled at {settled_s:.2f} s"
    title = tag("title", said)
    size = {"y": y + 1, "height": ROW - 3}
    width = round(max(right - left, 1.5), 2)
    marks = [tag("rect", title, x=left, width=width, **size, class_="shown" if settled_s is not None else "erased")]
    if settled_s is not None:
        start = x(max(settled_s, span[0]))
        marks.append(tag("rect", title, x=start, width=round(max(right - start, 1.5), 2), **size, class_="settled"))
    if len(word) * LETTER + 4 <= right - left:
        kind = "taken" if settled_s is None else "word"
        marks.append(tag("text", word, x=left + 3, y=y + ROW - 5, text_anchor="start", class_=kind))
    return marks


LONGEST_S = 15.0  # of a clip that is drawn
ENVELOPE = 300  # points of the drawn waveform
Lines = dict[str, Prediction]  # clip -> its line of the predictions


@dataclass(frozen=True)
class Stay:
    """A word in its place on the screen: from when to when, and whether it was taken back then."""

    row: int
    word: str
    from_s: float
    to_s: float
    erased: bool


@dataclass(frozen=True)
class StreamClip:
    """A clip, where its words lie, and what each model showed of it (by the model's place in the report)."""

    config: str
    id: str
    text: str
    duration_s: float
    words: Sequence[WordTime]
    events: Mapping[int, Sequence[StreamEvent]]
    envelope: Sequence[float] = field(default_factory=tuple)

    @property
    def end_s(self) -> float:
        """When the last word of anybody was there."""
        return max([self.duration_s, *(event.time_s for events in self.events.values() for event in events[-1:])])


def stays(updates: Sequence[Update], end_s: float) -> tuple[list[Stay], int]:
    """Every word that was shown, row by row in the order of the transcript, and the number of rows.

    >>> seen = [Update(1, 1, ("a", "c")), Update(2, 2, ("a", "b"), final=True)]
    >>> [(s.word, s.from_s, s.to_s, s.erased) for s in stays(seen, 3.0)[0]]
    [('a', 1, 3.0, False), ('c', 1, 2, True), ('b', 2, 3.0, False)]
    """
    shown: list[Stay] = []
    base = 0
    for segment in segments_of(updates):
        rows = max((len(update.words) for update in segment), default=0)
        for row in range(rows):
            word, since = None, 0.0
            for update in segment:
                now = update.words[row] if row < len(update.words) else None
                if now != word:
                    if word is not None:
                        shown.append(Stay(base + row, word, since, update.time_s, True))
                    word, since = now, update.time_s
            if word is not None:
                shown.append(Stay(base + row, word, since, end_s, False))
        base += rows
    return shown, base


def choose(runs: Mapping[int, Run], language: str) -> StreamClip | None:
    """The clip of the hard config, shared by all streamed runs, in which most words were taken back."""
    shared = set.intersection(*(set(run.configs) for run in runs.values())) if runs else set()
    hard = [config for config in sorted(shared) if parse(config).language == language]
    hard = [config for config in hard if parse(config).scenario != "clean"] or hard
    best: tuple[int, StreamClip] | None = None
    for config in hard:
        lines = {index: _streamed(run, config) for index, run in runs.items()}
        for clip in sorted(set.intersection(*(set(own) for own in lines.values()))):
            candidate = _clip(config, clip, {index: own[clip] for index, own in lines.items()})
            erased = sum(measure_clip(updates_of(events)).erased for events in candidate.events.values())
            if best is None or erased > best[0]:
                best = erased, candidate
    return best[1] if best else None


def _streamed(run: Run, config: str) -> Lines:
    """The lines of a config that can be drawn."""
    return {
        line.id: line
        for line in run.read(config).lines
        if line.stream and line.word_times and line.seconds <= LONGEST_S
    }


def _clip(config: str, clip: str, lines: Mapping[int, Prediction]) -> StreamClip:
    first = next(iter(lines.values()))
    events = {index: line.stream.events for index, line in lines.items() if line.stream}
    return StreamClip(config, clip, first.text or "", first.seconds, first.word_times, events)


def envelope(data: ConfigSource, config: str, clip: str) -> list[float]:
    """The waveform as the highest level of each of many short stretches, from 0 to 1; empty where there is no audio."""
    if config not in data.names():
        return []
    opened = data.config(config)
    wanted = {row.position for row in opened.rows if row.id == clip}
    for window in opened.windows(wanted):
        for row in window.rows:
            levels = [float(np.abs(part).max(initial=0.0)) for part in np.array_split(window.decode(row), ENVELOPE)]
            loudest = max(levels) or 1.0
            return [round(level / loudest, 3) for level in levels]
    return []


LEAD = (
    "Further down and to the left is better. The dashed line is the Pareto front of a condition: no model is both more "
    "accurate and faster. The faint line is the front of clean speech, so the distance between the two is the cost of "
    "the condition. Latency is the median time from the end of a word until it and those before it no longer change."
)


def condition_label(which: str) -> str:
    """What a chart calls a condition."""
    return {CLEAN: "Clean", HARD: "All but clean"}.get(which) or which


def latency_charts(streamed: Sequence[tuple[int, str, Mapping[str, Condition]]], ranked: set[str]) -> list[Html]:
    """A chart for each condition: WER against the settling of words, with the Pareto front of the ranked models.

    All have the same axes, so that they can be compared.
    """
    fronts: dict[str, list[tuple[float, float]]] = {}
    series: dict[str, list[Series]] = {}
    for which in dict.fromkeys(which for _, _, by_condition in streamed for which in by_condition):
        points = [
            (index, who, by_condition[which].figures["settle"], by_condition[which].wer)
            for index, who, by_condition in streamed
            if which in by_condition
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


def streaming(report: Report, language: str) -> Html | None:
    """The section; None where no model was streamed."""
    streamed = [
        (model, live) for model in report.ranked(language) if (live := conditions(model.results.configs, language))
    ]
    if not streamed:
        return None
    ranked = {model.name for model, standing in report.standings(language) if not standing.why}
    rows = [
        [name(model), condition_label(which), number(condition.wer), *cells(condition)]
        for model, live in streamed
        for which, condition in live.items()
    ]
    named = [(model.index, model.name, live) for model, live in streamed]
    return section(
        "streaming",
        "Used live",
        LEAD,
        legend([model for model, _ in streamed]),
        tag("div", latency_charts(named, ranked), class_="columns"),
        table(["model", "condition", "WER %", *(figure.head for figure in FIGURES.values())], rows),
        timelines(report, language),
    )


def cells(condition: Condition) -> list[tuple[str, float | None]]:
    """The figures of a condition as cells that sort."""
    return [number(*_scaled(condition, name)) for name in FIGURES]


def _scaled(condition: Condition, name: str) -> tuple[float | None, int]:
    """A figure in the unit of its head, and its digits."""
    value, percent = condition.figures[name], FIGURES[name].percent
    return (value and 100 * value, 1) if percent else (value, 2)


# --- the leaderboard -------------------------------------------------------------------------------------------------


def board_page(models: Sequence[Row], language: str) -> Html | None:
    """The models that were streamed: accuracy, latency and stability in every condition."""
    rows = [row for row in models if any(streaming_of(entry) for entry in row.entry.content.configs.values())]
    if not rows:
        return None
    of_model = {row.entry.name: conditions(row.entry.content.configs, language) for row in rows}
    ranked = {row.entry.name for row in rows if row.place}
    named = [(index, name, conditions) for index, (name, conditions) in enumerate(of_model.items())]
    legend = [tag("span", legend_mark(index), name, class_=f"s{index % 7}") for index, name, _ in named]
    heads = [column_head("Model", number=False), column_head("Condition", number=False), column_head("WER %")]
    heads += [column_head(figure.head) for figure in FIGURES.values()]
    body = [
        tag(
            "tr",
            tag("th", model_link(row.entry), tag("small", row.why, class_="why") if row.why else None, scope="row"),
            tag("td", condition_label(which)),
            table_cell(None if condition.wer is None else [condition.wer]),
            _live_cells(condition),
            class_=None if row.place else "unranked",
        )
        for row in rows
        for which, condition in of_model[row.entry.name].items()
    ]
    return join(
        [
            tag("h2", f"Language: {language}"),
            tag("p", LEAD, class_="lead"),
            tag("div", legend, class_="legend"),
            tag("div", latency_charts(named, ranked), class_="multiples wide"),
            sort_table(heads, body),
        ]
    )


def _live_cells(condition: Condition) -> list[Html]:
    return [
        tag("td", fixed(*_scaled(condition, name)), data_sort="" if value is None else value)
        for name, value in condition.figures.items()
    ]


def of_model(entry: Entry, language: str) -> Html | None:
    """The streaming measures of every config, on a model's page."""
    configs = {
        config: scores
        for config, scores in entry.content.configs.items()
        if scores.language == language and streaming_of(scores)
    }
    if not configs:
        return None
    heads = [
        column_head("Config", number=False),
        column_head("WER %"),
        *(column_head(figure.head) for figure in FIGURES.values()),
    ]
    body = []
    for config, scores in configs.items():
        wer, figures = wer_of(scores), {figure: figure_of(scores, figure) for figure in FIGURES}
        cells = [table_cell(None if wer is None else [wer]), *_live_cells(Condition(1, wer, figures))]
        body.append(tag("tr", tag("th", config, scope="row"), cells))
    return join([tag("h3", "Used live"), sort_table(heads, body)])


BOARD = BoardPage(
    "Used live",
    """
<p class="lead">Recognisers that got every clip chunk by chunk, as it would arrive. Latency and stability are recomputed
from the submitted events; the speed of the machine is as submitted.</p>
""",
    board_page,
    of_model,
    "live",
)
