"""Drawings: scales, line charts and scatters as SVG, bars and intervals as plain boxes that follow the page's width.

Colours are classes (`s0` to `s6`, the palette of Okabe and Ito, safe for colour-blind eyes), so that the style sheet
can change them for a dark page; markers differ in shape too. Every mark has a title that says its numbers.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from speech_robust_bench.report.html import Html, tag

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
    return text.removeprefix("-") if text[0] == "-" and float(text) == 0 else text


@dataclass(frozen=True)
class Scale:
    """From values to places on the page."""

    low: float
    high: float
    start: float = 0.0
    end: float = 100.0
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, value
        if self.log:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
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
    scale: Scale,
    value: float | None,
    interval: Sequence[float] | None,
    series: int,
    *,
    dot: bool = False,
    over: str = "",
) -> Html:
    """One value on a scale from left to right: a bar from zero, or a dot, with its interval as a thin line.

    `over` is what the interval is over, for the title.
    """
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
    said += f", over {over}" if over else ""
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


def _frame(
    x: Scale, y: Scale, x_label: str, y_label: str, x_ticks: Mapping[float, str], small: bool = False
) -> list[Html]:
    left, right, top, bottom = min(x.start, x.end), max(x.start, x.end), min(y.start, y.end), max(y.start, y.end)
    marks = []
    for value in y.ticks(4 if small else 6):
        level = y(value)
        marks.append(tag("line", x1=left, x2=right, y1=level, y2=level, class_="axis" if value == 0 else "grid"))
        marks.append(_text(left - 6, level + 4, tick_text(value), "end"))
    for value, text in x_ticks.items():
        marks.append(_text(x(value), bottom + 16, text))
    if x_label:
        marks.append(_text((left + right) / 2, bottom + (29 if small else 36), x_label, class_="label"))
    if y_label:
        marks.append(_text(14, (top + bottom) / 2, y_label, class_="label", turn=True))
    return marks


def line_chart(
    series: Sequence[Series], y: Scale, label: str, *, ticks: Mapping[float, str] | None = None, x_label: str = ""
) -> Html:
    """A small chart of scores over severities, with the intervals as bands; `ticks` says what a severity stands for."""
    width, height = 240, 172 if x_label else 160
    steps = sorted({point.x for line in series for point in line.points})
    x = Scale(min(steps) - 0.25, max(steps) + 0.25, 36, width - 8)
    y = Scale(y.low, y.high, height - (36 if x_label else 24), 10)
    named = {step: (ticks or {}).get(step, tick_text(step)) for step in steps}
    marks = _frame(x, y, x_label, "", named, small=True)
    for line in series:
        path = [(x(p.x), y(p.y)) for p in line.points]
        if len(path) > 1 and all(p.interval for p in line.points):
            upper = [(x(p.x), y(p.interval[1])) for p in line.points if p.interval]
            lower = [(x(p.x), y(p.interval[0])) for p in line.points if p.interval]
            marks.append(
                tag("polygon", points=_points([*upper, *lower[::-1]]), class_=f"band {series_class(line.index)}")
            )
        marks.append(tag("polyline", points=_points(path), class_=f"curve {series_class(line.index)}"))
        marks += [marker(line.index, x(p.x), y(p.y), p.title, 3.4) for p in line.points]
    return tag("svg", marks, viewBox=f"0 0 {width} {height}", role="img", aria_label=label, class_="chart small")


def _points(path: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:g},{y:g}" for x, y in path)


@dataclass(frozen=True)
class Curve:
    """A line through or below the points: a regression, a family of models, or (in steps) a Pareto front."""

    points: Sequence[tuple[float, float]]
    series: int | None = None  # whose colour it has
    steps: bool = False
    faint: bool = False  # of something else, to compare with


@dataclass(frozen=True)
class Axes:
    """What the axes of a scatter say, whether the one from left to right is logarithmic, and what both must reach."""

    x: str
    y: str
    log_x: bool = False
    within: Sequence[tuple[float, float]] = ()


Box = tuple[float, float, float, float]  # left, top, right, bottom


def scatter(series: Sequence[Series], axes: Axes, label: str, curves: Sequence[Curve] = ()) -> Html:
    """Models as named points, with lines. A name stands where it covers no point, no line and no other name."""
    points = [point for group in series for point in group.points]
    xs, ys = [p.x for p in points], [p.y for p in points]
    ys += [bound for p in points for bound in (p.interval or ())]
    xs, ys = [*xs, *(a for a, _ in axes.within)], [*ys, *(b for _, b in axes.within)]
    x = log_spanning(xs, LEFT, WIDTH - RIGHT) if axes.log_x else spanning(xs, LEFT, WIDTH - RIGHT, zero=False)
    y = spanning(ys, HEIGHT - BOTTOM, TOP)
    marks = _frame(x, y, axes.x, axes.y, {value: tick_text(value) for value in x.ticks()})
    taken: list[tuple[Box, int]] = []  # what a name should not cover, and how bad it would be
    for curve in (curve for curve in curves if curve.points):
        path = [(x(a), y(b)) for a, b in curve.points]
        if curve.steps:
            path = [(path[0][0], y.end), *_stairs(path), (x.end, path[-1][1])]  # to the edges of the chart
        colour = "" if curve.series is None else f" {series_class(curve.series)}"
        faint = " faint" if curve.faint else ""
        marks.append(tag("polyline", points=_points(path), class_=f"fit{faint}{colour}"))
        taken += [(box, 1) for ends in itertools.pairwise(path) for box in _boxes_along(*ends)]
    taken += [((x(p.x) - 7, y(p.y) - 7, x(p.x) + 7, y(p.y) + 7), 20) for p in points]
    for group in series:
        for p in group.points:
            if p.interval:
                ends = {"y1": y(p.interval[0]), "y2": y(p.interval[1])}
                marks.append(tag("line", x1=x(p.x), x2=x(p.x), **ends, class_=f"error {series_class(group.index)}"))
            marks.append(marker(group.index, x(p.x), y(p.y), p.title, 6))
            if group.label:
                at, anchor, box = _label_place(x(p.x), y(p.y), group.label, taken)
                taken.append((box, 50))
                marks.append(_text(*at, group.label, anchor, "name"))
    return tag("svg", marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart")


def _label_place(
    x: float, y: float, label: str, taken: Sequence[tuple[Box, int]]
) -> tuple[tuple[float, float], Literal["start", "end", "middle"], Box]:
    """Where a name beside a point covers nothing: right, left, below, above; where least is covered if all do.

    Of the 13 systems of results/matrix-2.parquet (NWERD over clean WER) 2 names overlap and 3 touch a point; with names
    on the side that has more room it is 20 and 28.
    """
    width = 8 * len(label)
    places: list[tuple[tuple[float, float], Literal["start", "end", "middle"], float]] = [
        ((x + 10, y + 4), "start", x + 10),
        ((x - 10, y + 4), "end", x - 10 - width),
        ((x + 6, y + 19), "start", x + 6),
        ((x - 6, y + 19), "end", x - 6 - width),
        ((x + 6, y - 10), "start", x + 6),
        ((x - 6, y - 10), "end", x - 6 - width),
        ((x, y + 24), "middle", x - width / 2),
    ]
    for down in (34, -25, 49, -40):
        places += [((x + 6, y + down), "start", x + 6), ((x - 6, y + down), "end", x - 6 - width)]

    def covered(place: tuple[tuple[float, float], str, float]) -> tuple[bool, int]:
        box = _text_box(place, width)
        outside = box[0] < LEFT - 4 or box[2] > WIDTH or box[3] > HEIGHT - BOTTOM + 4
        return outside, sum(weight * _overlap(box, other) for other, weight in taken)

    best = min(places, key=covered)  # the first of the best
    return best[0], best[1], _text_box(best, width)


def _text_box(place: tuple[tuple[float, float], str, float], width: float) -> Box:
    (_, base), _, left = place
    return left, base - 11, left + width, base + 3


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _boxes_along(start: tuple[float, float], end: tuple[float, float]) -> list[Box]:
    """A line as small boxes, so that a slanting one does not take up the whole rectangle around it."""
    pieces = max(int(math.dist(start, end) / 6), 1)
    points = [tuple(a + (b - a) * i / pieces for a, b in zip(start, end, strict=True)) for i in range(pieces + 1)]
    return [(px - 2, py - 2, px + 2, py + 2) for px, py in points]


def _stairs(path: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """The border of what is dominated: right along a point's height, then down to the next."""
    steps = [path[0]]
    for (_, before), (x, y) in itertools.pairwise(path):
        steps += [(x, before), (x, y)]
    return steps


# --- boxes of many values --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Quartiles:
    """What a box plot shows of some values: its box, its line, its whiskers (the last values within 1.5 boxes)."""

    low: float
    first: float
    median: float
    third: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Quartiles:
        """Tukey's box plot, with quartiles by linear interpolation as in numpy and matplotlib.

        >>> Quartiles.of([1, 2, 3, 4, 5, 6, 7, 8, 30])
        Quartiles(low=1, first=3.0, median=5.0, third=7.0, high=8)
        """
        from statistics import quantiles

        ordered = sorted(values)
        if len(ordered) == 1:
            first = median = third = ordered[0]
        else:
            first, median, third = quantiles(ordered, n=4, method="inclusive")
        reach = 1.5 * (third - first)
        inside = [value for value in ordered if first - reach <= value <= third + reach]
        return cls(inside[0], first, median, third, inside[-1])


def box_plot(groups: Mapping[str, Sequence[Series]], axis: str, label: str) -> Html:
    """A box for each group of models, from left to right, with every model as a point in it."""
    values = {group: [p.y for part in series for p in part.points] for group, series in groups.items()}
    y = spanning([value for those in values.values() for value in those], HEIGHT - BOTTOM, TOP)
    x = Scale(0, len(groups), LEFT, WIDTH - RIGHT)
    ticks = {place + 0.5: group for place, group in enumerate(groups)}
    marks = _frame(x, y, "", axis, ticks)
    for place, (group, series) in enumerate(groups.items()):
        box, middle, half = Quartiles.of(values[group]), x(place + 0.5), 34
        top, bottom = y(box.third), y(box.first)
        ends = {"y1": y(box.low), "y2": y(box.high)}
        marks.append(tag("line", x1=middle, x2=middle, **ends, class_="whiskers"))
        size = {"width": 2 * half, "height": max(round(bottom - top, 2), 1)}
        said = f"{group}: median {fixed(box.median)}, half of them {fixed(box.first)} to {fixed(box.third)}"
        marks.append(tag("rect", tag("title", said), x=middle - half, y=top, **size, class_="box"))
        marks.append(tag("line", x1=middle - half, x2=middle + half, y1=y(box.median), y2=y(box.median), class_="mid"))
        marks += [marker(part.index, middle, y(p.y), p.title, 5) for part in series for p in part.points]
    return tag("svg", marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart")


def width_bars(
    rates: Mapping[str, float],
    shares: Mapping[str, float],
    axis: str,
    label: str,
    series: int = 0,
    *,
    of: str = "the population",
) -> Html:
    """Groups of a population: the height of a bar is its error rate, the width its share (Aksenova et al., Fig. 1).

    The area of all bars together is the rate of the population, which the line across is at.
    """
    total = sum(shares.values())
    y = spanning(list(rates.values()), HEIGHT - BOTTOM, TOP)
    x = Scale(0, 1, LEFT, WIDTH - RIGHT)
    edges = list(itertools.accumulate((shares[group] / total for group in rates), initial=0.0))
    ticks = {(a + b) / 2: group for group, (a, b) in zip(rates, itertools.pairwise(edges), strict=True)}
    marks = _frame(x, y, "", axis, ticks)
    for group, (start, end) in zip(rates, itertools.pairwise(edges), strict=True):
        left, top = x(start), y(rates[group])
        size = {"width": max(round(x(end) - left - 2, 2), 1), "height": round(y(0) - top, 2)}
        said = f"{group}: {fixed(rates[group])}, {100 * (end - start):.0f} % of {of}"
        marks.append(tag("rect", tag("title", said), x=left + 1, y=top, **size, class_=f"width {series_class(series)}"))
    mean = weighted_mean(rates, shares)
    line = {"x1": x.start, "x2": x.end, "y1": y(mean), "y2": y(mean)}
    marks.append(tag("line", tag("title", f"over all of {of}: {fixed(mean)}"), **line, class_="fit"))
    return tag("svg", marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=label, class_="chart")


def weighted_mean(rates: Mapping[str, float], shares: Mapping[str, float]) -> float:
    """The rate of a population whose groups have these shares, of any sum.

    >>> weighted_mean({"A": 8.0, "B": 12.0}, {"A": 3, "B": 1})
    9.0
    """
    return sum(rates[group] * shares[group] for group in rates) / sum(shares[group] for group in rates)
