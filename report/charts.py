"""Drawings: scales, line charts and scatters as SVG, bars and intervals as plain boxes that follow the page's width.

Colours are classes (`s0` to `s6`, the palette of Okabe and Ito, safe for colour-blind eyes), so that the style sheet
can change them for a dark page; markers differ in shape too. Every mark has a title that says its numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from srb.report.html import Html, join, tag

PALETTE = 7
WIDTH, HEIGHT = 480, 330
LEFT, RIGHT, TOP, BOTTOM = 52, 14, 12, 46


def series_class(index: int) -> str:
    """The colour of a model, by its place in the ranking."""
    return f"s{index % PALETTE}"


def fixed(value: float | None, digits: int = 1) -> str:
    """A number for people; a dash where there is none.

    >>> fixed(3.14159), fixed(-0.001), fixed(None)
    ('3.1', '0.0', '–')
    """
    if value is None:
        return "–"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text


@dataclass(frozen=True)
class Scale:
    """From values to places on the page."""

    low: float
    high: float
    start: float = 0.0
    end: float = 100.0
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = (math.log10(v) if self.log else v for v in (self.low, self.high, value))
        share = (at - low) / (high - low)
        return round(self.start + min(max(share, 0.0), 1.0) * (self.end - self.start), 2)

    def ticks(self, about: int = 5) -> list[float]:
        """Round numbers between the ends."""
        if self.log:
            first, last = math.floor(math.log10(self.low)), math.ceil(math.log10(self.high))
            steps = (1, 3) if last - first <= 3 else (1,)
            every = [m * 10.0**power for power in range(first, last + 1) for m in steps]
            return [v for v in every if self.low <= v <= self.high]
        step = round_step((self.high - self.low) / about)
        first = math.ceil(self.low / step - 1e-9)
        return [round(i * step, 10) for i in range(first, math.floor(self.high / step + 1e-9) + 1)]


def round_step(width: float) -> float:
    """1, 2 or 5 times a power of ten, not below `width`.

    >>> [round_step(v) for v in (0.9, 1.1, 23, 60)]
    [1.0, 2.0, 50.0, 100.0]
    """
    power = 10.0 ** math.floor(math.log10(width)) if width > 0 else 1.0
    return next(power * m for m in (1, 2, 5, 10) if power * m >= width * (1 - 1e-9))


def spanning(values: Sequence[float], start: float = 0.0, end: float = 100.0, zero: bool = True) -> Scale:
    """A scale over values, with zero in it if wanted, widened to round numbers."""
    known = [*values, *([0.0] if zero else [])] or [0.0, 1.0]
    low, high = min(known), max(known)
    if high - low < 1e-9:
        low, high = low - (0 if zero and low >= 0 else 1), high + 1
    step = round_step((high - low) / 8)
    return Scale(math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step, start, end)


def log_spanning(values: Sequence[float], start: float, end: float) -> Scale:
    """A logarithmic scale with some room on either side."""
    return Scale(min(values) / 1.6, max(values) * 1.6, start, end, log=True)


# --- boxes -----------------------------------------------------------------------------------------------------------


def track(
    scale: Scale, value: float | None, interval: Sequence[float] | None, series: int, *, dot: bool = False
) -> Html:
    """One value on a scale from left to right: a bar from zero, or a dot, with its interval as a thin line."""
    if value is None:
        return tag("div", class_="track")
    zero, at = scale(0) if scale.low <= 0 <= scale.high else 0.0, scale(value)
    marks = [tag("span", class_="zero", style=f"left:{zero}%")] if scale.low < 0 else []
    if dot:
        marks.append(tag("span", class_=f"dot {series_class(series)}", style=f"left:{at}%"))
    else:
        left, right = sorted((zero, at))
        place = f"left:{left}%;width:{round(right - left, 2)}%"
        marks.append(tag("span", class_=f"bar {series_class(series)}", style=place))
    if interval:
        low, high = scale(interval[0]), scale(interval[1])
        marks.append(tag("span", class_="whisker", style=f"left:{low}%;width:{round(high - low, 2)}%"))
    said = f"{fixed(value)}" + (f" ({fixed(interval[0])} to {fixed(interval[1])})" if interval else "")
    return tag("div", marks, class_="track", title=said)


# --- SVG -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Point:
    """A mark: where, what its title says, and the interval of y if there is one."""

    x: float
    y: float
    title: str = ""
    interval: Sequence[float] | None = None


@dataclass(frozen=True)
class Series:
    """Points of one colour; with `label` they are named beside the first of them."""

    index: int
    points: Sequence[Point] = field(default_factory=tuple)
    label: str = ""


def marker(index: int, x: float, y: float, title: str = "", radius: float = 5.0) -> Html:
    """A circle, square, triangle or diamond: shape and colour both tell models apart."""
    r = radius
    shapes = (
        lambda: tag("circle", tag("title", title), cx=x, cy=y, r=r, class_=series_class(index)),
        lambda: _polygon(index, title, [(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)]),
        lambda: _polygon(index, title, [(x, y - r * 1.2), (x + r * 1.1, y + r * 0.8), (x - r * 1.1, y + r * 0.8)]),
        lambda: _polygon(index, title, [(x, y - r * 1.3), (x + r * 1.3, y), (x, y + r * 1.3), (x - r * 1.3, y)]),
    )
    return shapes[index % len(shapes)]()


def _polygon(index: int, title: str, corners: Sequence[tuple[float, float]]) -> Html:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in corners)
    return tag("polygon", tag("title", title), points=points, class_=series_class(index))


def legend_mark(index: int) -> Html:
    """The marker of a model, to stand beside its name."""
    return tag("svg", marker(index, 7, 7), viewBox="0 0 14 14", class_="mark", aria_hidden="true")


def _text(x: float, y: float, text: str, anchor: str = "middle", class_: str | None = None, turn: bool = False) -> Html:
    rotate = f"rotate(-90 {x} {y})" if turn else None
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=class_, transform=rotate)


def tick_text(value: float) -> str:
    """Short numbers for axes.

    >>> [tick_text(v) for v in (0.5, 40.0, 3e8, 1e9, 30000.0)]
    ['0.5', '40', '300M', '1G', '30k']
    """
    for unit, size in (("G", 1e9), ("M", 1e6), ("k", 1e4)):
        if abs(value) >= size:
            return f"{value / (1e3 if unit == 'k' else size):g}{unit}"
    return f"{value:g}"


def _frame(x: Scale, y: Scale, x_label: str, y_label: str, x_ticks: Sequence[float], small: bool) -> list[Html]:
    left, right, top, bottom = min(x.start, x.end), max(x.start, x.end), min(y.start, y.end), max(y.start, y.end)
    made = []
    for value in y.ticks(4 if small else 6):
        level = y(value)
        made.append(tag("line", x1=left, x2=right, y1=level, y2=level, class_="axis" if value == 0 else "grid"))
        made.append(_text(left - 6, level + 4, tick_text(value), "end"))
    for value in x_ticks:
        made.append(_text(x(value), bottom + 16, tick_text(value)))
    made.append(_text((left + right) / 2, bottom + 36, x_label, class_="label") if x_label else join([]))
    if y_label:
        made.append(_text(14, (top + bottom) / 2, y_label, class_="label", turn=True))
    return made


def line_chart(series: Sequence[Series], y: Scale, label: str) -> Html:
    """A small chart of scores over severities, with the intervals as bands."""
    width, height = 240, 160
    steps = sorted({point.x for one in series for point in one.points})
    x = Scale(min(steps) - 0.25, max(steps) + 0.25, 36, width - 8)
    y = Scale(y.low, y.high, height - 24, 10)
    marks = _frame(x, y, "", "", steps, small=True)
    for one in series:
        path = [(x(p.x), y(p.y)) for p in one.points]
        if len(path) > 1 and all(p.interval for p in one.points):
            upper = [(x(p.x), y(p.interval[1])) for p in one.points if p.interval]
            lower = [(x(p.x), y(p.interval[0])) for p in one.points if p.interval]
            marks.append(
                tag("polygon", points=_points([*upper, *lower[::-1]]), class_=f"band {series_class(one.index)}")
            )
        marks.append(tag("polyline", points=_points(path), class_=f"curve {series_class(one.index)}"))
        marks += [marker(one.index, x(p.x), y(p.y), p.title, 3.4) for p in one.points]
    return tag("svg", marks, viewBox=f"0 0 {width} {height}", role="img", aria_label=label, class_="chart small")


def _points(path: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in path)


def scatter(
    series: Sequence[Series],
    x_label: str,
    y_label: str,
    label: str,
    *,
    log_x: bool = False,
    curve: Sequence[tuple[float, float]] = (),
    steps: bool = False,
) -> Html:
    """Models as named points, with a line through or below them: a fit, or (in steps) a Pareto front."""
    points = [point for one in series for point in one.points]
    xs, ys = [p.x for p in points], [p.y for p in points]
    ys += [bound for p in points for bound in (p.interval or ())]
    x = log_spanning(xs, LEFT, WIDTH - RIGHT) if log_x else spanning(xs, LEFT, WIDTH - RIGHT)
    y = spanning(ys, HEIGHT - BOTTOM, TOP)
    marks = _frame(x, y, x_label, y_label, x.ticks(), small=False)
    if curve:
        path = [(x(a), y(b)) for a, b in curve]
        if steps:
            path = [(path[0][0], y.end), *_stairs(path), (x.end, path[-1][1])]  # to the edges of the chart
        marks.append(tag("polyline", points=_points(path), class_="fit"))
    for one in series:
        for p in one.points:
            if p.interval:
                ends = {"y1": y(p.interval[0]), "y2": y(p.interval[1])}
                marks.append(tag("line", x1=x(p.x), x2=x(p.x), **ends, class_=f"error {series_class(one.index)}"))
            marks.append(marker(one.index, x(p.x), y(p.y), p.title, 6))
            near_edge = x(p.x) > WIDTH * 0.66
            place = (x(p.x) - 10, "end") if near_edge else (x(p.x) + 10, "start")
            marks.append(_text(place[0], y(p.y) + 4, one.label, place[1], "name"))
    return tag("svg", marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart")


def _stairs(path: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The border of what is dominated: right along a point's height, then down to the next."""
    made = [path[0]]
    for (_, before), (x, y) in itertools.pairwise(path):
        made += [(x, before), (x, y)]
    return made
