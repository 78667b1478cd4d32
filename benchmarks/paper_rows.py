"""Measured rows of the matrix beside the paper's Table 7 (LibriSpeech), as a table and a figure.

    python benchmarks/paper_rows.py [--matrix results/matrix-3.parquet] [--figure docs/images/paper_rows.svg]

Table 7 is WERD (results/README.md says how that was settled). A category is shown where all its configs were run on the
same 40 clips or more; environmental noise and rooms are other recordings than the paper's, and are marked.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))

from benchmarks.matrix import SystemErrors, category_configs, category_mean, read_errors, stored_rows
from speech_robust_bench.report.charts import Scale, fixed, spanning
from speech_robust_bench.report.html import Html, tag

# Table 7 of arXiv:2403.07937
PAPER = {
    "whisper-tiny.en-torch": {
        "clean": 6.4,
        "noise_white": 14.0,
        "noise_env": 8.6,
        "spatial": 17.1,
        "sfx": 25.8,
        "audio_proc": 57.2,
    },
    "whisper-base-torch": {
        "clean": 5.9,
        "noise_white": 11.0,
        "noise_env": 6.6,
        "spatial": 14.5,
        "sfx": 14.8,
        "audio_proc": 63.6,
    },
}
OTHER_RECORDINGS = ("noise_env", "spatial")
LEFT, PANEL, ROW, TOP, FOOT, NARROWEST = 130, 240, 28, 56, 40, 640
COLOURS = {"paper": "#d1495b", "measured": "#00798c"}


@dataclass(frozen=True)
class Cell:
    """A measured WERD (WER on clean speech) with its interval and its clips, beside the paper's."""

    name: str
    paper: float
    measured: float | None = None
    interval: tuple[float, float] = (0.0, 0.0)
    clips: int = 0

    @property
    def label(self) -> str:
        """The category, with a mark where the recordings are not the paper's."""
        return self.name + ("*" if self.name in OTHER_RECORDINGS else "")


def row_of(system: SystemErrors, draws: np.ndarray, paper: dict[str, float]) -> list[Cell]:
    """The cells of a system, those that were not measured without a value."""
    members: dict[str, list[str]] = {"clean": [], **category_configs()}
    cells = []
    for name, published in paper.items():
        configs = members[name]
        common = system.run_on(("clean", *configs))
        if common is None:
            cells.append(Cell(name, published))
            continue
        values = category_mean(system, configs, draws, "WERD") if configs else system.wer("clean", draws * common)
        assert values is not None
        low, high = np.quantile(values[1:], [0.025, 0.975])
        cells.append(Cell(name, published, float(values[0]), (float(low), float(high)), int(common.sum())))
    return cells


def print_table(rows: dict[str, list[Cell]]) -> None:
    for system, cells in rows.items():
        print(f"\n{system}\n\n| | clips | measured | paper |\n|---|---|---|---|")
        for cell in cells:
            low, high = cell.interval
            measured = "-" if cell.measured is None else f"{cell.measured:.1f} ({low:.1f} to {high:.1f})"
            print(f"| {cell.label} | {cell.clips or '-'} | {measured} | {cell.paper} |")


def drawn(rows: dict[str, list[Cell]]) -> str:
    """One panel a system, one line a category: the measured value with its interval, and the paper's."""
    ends = [end for cells in rows.values() for cell in cells for end in (cell.paper, *cell.interval)]
    height, width = TOP + ROW * max(map(len, rows.values())) + FOOT, max(NARROWEST, LEFT + (PANEL + 20) * len(rows))
    parts: list[Html] = []
    for panel, (system, cells) in enumerate(rows.items()):
        start = LEFT + panel * (PANEL + 20)
        scale = spanning(ends, start, start + PANEL)
        parts.append(tag("text", system, x=start + PANEL / 2, y=TOP - 12, text_anchor="middle", font_weight="bold"))
        for value in scale.ticks(5):
            at = scale(value)
            parts.append(tag("line", x1=at, x2=at, y1=TOP, y2=height - FOOT, stroke="#ddd"))
            parts.append(tag("text", f"{value:g}", x=at, y=height - FOOT + 14, text_anchor="middle"))
        for place, cell in enumerate(cells):
            y = TOP + (place + 0.5) * ROW
            if not panel:
                name = "clean (WER)" if cell.name == "clean" else cell.label
                parts.append(tag("text", name, x=LEFT - 10, y=y + 4, text_anchor="end"))
            parts += _measured(cell, scale, y)
            parts.append(_dot(scale(cell.paper), y, "paper", f"{cell.paper}"))
    for index, name in enumerate(COLOURS):
        parts += [_dot(LEFT + index * 90, 18, name, name), tag("text", name, x=LEFT + index * 90 + 10, y=22)]
    foot = "WERD in points, with 95 % intervals over speakers; * other noises and rooms than the paper's"
    parts.append(tag("text", foot, x=LEFT, y=height - 6))
    ground = tag("rect", width=width, height=height, fill="#fff")
    size = {"viewBox": f"0 0 {width} {height}", "width": width, "font_family": "sans-serif", "font_size": 11}
    return tag("svg", ground, parts, xmlns="http://www.w3.org/2000/svg", **size)


def _measured(cell: Cell, scale: Scale, y: float) -> list[Html]:
    if cell.measured is None:
        return []
    low, high = map(scale, cell.interval)
    said = f"{fixed(cell.measured)} ({fixed(cell.interval[0])} to {fixed(cell.interval[1])}), {cell.clips} clips"
    line = tag("line", x1=low, x2=high, y1=y, y2=y, stroke=COLOURS["measured"], stroke_width=2)
    return [line, _dot(scale(cell.measured), y, "measured", said)]


def _dot(x: float, y: float, kind: str, title: str) -> Html:
    fill = "#fff" if kind == "paper" else COLOURS[kind]
    return tag("circle", tag("title", title), cx=x, cy=y, r=4.5, fill=fill, stroke=COLOURS[kind], stroke_width=2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=Path("results/matrix-3.parquet"), metavar="FILE")
    parser.add_argument("--figure", type=Path, metavar="SVG", help="draw it, too")
    args = parser.parse_args()
    systems, draws = read_errors(stored_rows(args.matrix))
    rows = {name: row_of(systems[name], draws, paper) for name, paper in PAPER.items() if name in systems}
    print_table(rows)
    if args.figure:
        args.figure.write_text(drawn(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
