"""The paper's Table 1 for any number of models: clean WER, NWERD by category, their average, and WERD under attack.

Below it, where there are any, the categories beyond the paper: WERD in points, and for clips without speech the words
that were heard in a minute. Less is better in every column.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from srb.metrics.aggregate import ADVERSARIAL, CATEGORIES

Json = dict[str, Any]
TITLES = {
    "accent": "accent",
    "audio_proc": "audio proc",
    "noise_env": "noise (env)",
    "noise_white": "noise (white)",
    "sfx": "sfx",
    "social_far": "social (far)",
    "social_near": "social (near)",
    "spatial": "spatial",
    "synth_speech": "synth speech",
    "adv_ua": "adv (UA)",
    "adv_us": "adv (US)",
}
NAMES = ("Lang", "Model")  # the two columns that say what a row is


@dataclass(frozen=True)
class Column:
    """A column: its title, its measure, and how to find its score in the results of one language."""

    title: str
    measure: str
    of: Callable[[Json], Json | None]


@dataclass(frozen=True)
class Line:
    """One model in one language: a score (value and interval) or None per column."""

    language: str
    model: str
    cells: tuple[Json | None, ...]

    def value(self, index: int) -> float | None:
        """The number in a column."""
        cell = self.cells[index]
        return None if cell is None else cell["value"]


@dataclass(frozen=True)
class Table:
    """Columns, lines sorted by average within a language, and what a reader must know of them."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())

    def best(self, line: Line, index: int) -> bool:
        """Whether the line has the lowest score of its language in a column, among at least two."""
        rivals = [
            v for other in self.lines if other.language == line.language and (v := other.value(index)) is not None
        ]
        return len(rivals) > 1 and line.value(index) == min(rivals)

    def keep(self, wanted: Iterable[int]) -> Table:
        """Only some of the columns."""
        chosen = tuple(wanted)
        lines = (Line(line.language, line.model, tuple(line.cells[i] for i in chosen)) for line in self.lines)
        return Table(tuple(self.columns[i] for i in chosen), tuple(lines), self.notes)

    def filled(self) -> Table:
        """Without the columns in which nobody has a score; they are named in a note."""
        kept = [i for i in range(len(self.columns)) if any(line.cells[i] for line in self.lines)]
        gone = [column.title for i, column in enumerate(self.columns) if i not in kept]
        note = (f"not scored: {', '.join(gone)}",) if gone and kept else ()
        made = self.keep(kept)
        return Table(made.columns, made.lines, (*made.notes, *note))


def paper_table(results: Sequence[Json]) -> Table:
    """Table 1, with every column that the paper has."""
    columns = (
        Column("clean", "WER", clean_wer),
        *(Column(TITLES[name], "NWERD", _category(name, "nwerd")) for name in CATEGORIES),
        Column("AVG", "NWERD", lambda rows: rows["overall"]["nwerd"]),
        *(Column(TITLES[name], "WERD", _category(name, "werd")) for name in ADVERSARIAL),
        Column("adv AVG", "WERD", lambda rows: rows["adversarial"]["werd"]),
    )
    return Table(columns, _lines(results, columns), tuple(_uneven(results)))


def beyond_table(results: Sequence[Json]) -> Table:
    """What the paper does not have: codecs, transmission, AequeVox, own scenarios, and clips without speech."""
    paper = {*CATEGORIES, *ADVERSARIAL}
    names = dict.fromkeys(
        n for made in results for rows in made["languages"].values() for n in rows["categories"] if n not in paper
    )
    columns = [Column(name.replace("_", " "), "WERD", _category(name, "werd")) for name in names]
    if any(made["reject"] for made in results):
        columns.append(Column("no speech", "words/min", _invented))
    return Table(tuple(columns), _lines(results, columns))


def clean_wer(rows: Json) -> Json | None:
    """WER on clean speech: the mean over the clean configs of a language, the interval where there is but one."""
    scores = [row["wer"] for row in rows["clean"].values() if row["wer"]]
    if len(scores) < 2:
        return scores[0] if scores else None
    return {"value": sum(score["value"] for score in scores) / len(scores), "interval": None}


def _category(name: str, measure: str) -> Callable[[Json], Json | None]:
    return lambda rows: rows["categories"].get(name, {}).get(measure)


def _invented(rows: Json) -> Json | None:
    counted = rows["hallucination"]["reject"]
    return counted and {"value": counted["words_per_minute"], "interval": None}


def _lines(results: Sequence[Json], columns: Sequence[Column]) -> tuple[Line, ...]:
    found = [
        (_average(rows), Line(language, made["model"], tuple(column.of(rows) for column in columns)))
        for made in results
        for language, rows in made["languages"].items()
    ]
    return tuple(line for _, line in sorted(found, key=lambda pair: (pair[1].language, pair[0], pair[1].model)))


def _average(rows: Json) -> float:
    score = rows["overall"]["nwerd"]
    return math.inf if score is None else score["value"]


def _uneven(results: Sequence[Json]) -> list[str]:
    """Averages over different configs cannot be compared: say whose lack what."""
    notes = []
    for language in sorted({language for made in results for language in made["languages"]}):
        parts = [(made["model"], _configs(made, language)) for made in results if language in made["languages"]]
        union = set().union(*(configs for _, configs in parts))
        for model, configs in parts:
            if lost := sorted(union - configs):
                named = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
                notes.append(f"{model} lacks {named}: its averages are over fewer configs than the others'")
    return notes


def _configs(made: Json, language: str) -> set[str]:
    """The configs that averages are made of; attacks belong to one model each and are left out."""
    entries = made["configs"].items()
    return {c for c, entry in entries if entry["language"] == language and entry["category"] not in ADVERSARIAL}


# --- as text ---------------------------------------------------------------------------------------------------------


def cell_text(cell: Json | None, intervals: bool = False) -> str:
    """One decimal, as in the paper; with its interval if asked for."""
    if cell is None or cell["value"] is None:
        return "-"
    span = cell["interval"]
    return f"{cell['value']:.1f}" + (f" [{span[0]:.1f}, {span[1]:.1f}]" if intervals and span else "")


def to_csv(table: Table) -> str:
    """Values, and the bounds of their intervals where there are any, in full precision."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column.title} {column.measure}" for column in table.columns]
    writer.writerow(["lang", "model", *(head + end for head in heads for end in ("", " low", " high"))])
    for line in table.lines:
        cells: list[Any] = []
        for cell in line.cells:
            cells += ["", "", ""] if cell is None else [cell["value"], *(cell["interval"] or ("", ""))]
        writer.writerow([line.language, line.model, *cells])
    return out.getvalue()


def to_markdown(table: Table, intervals: bool = False) -> str:
    """A table for a README."""

    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rows = [row([*NAMES, *(f"{column.title}<br>{column.measure}" for column in table.columns)])]
    rows.append(row(["---"] * 2 + ["---:"] * len(table.columns)))
    for line in table.lines:
        model = line.model.replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
        rows.append(row([line.language, model, *_marked(table, line, intervals, "**{}**")]))
    return "\n".join(rows) + "\n"


_LATEX = (
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"\\": r"\textbackslash{}"}
)


def to_latex(table: Table, intervals: bool = False) -> str:
    """A tabular for a paper, with booktabs' rules."""

    def escape(text: str) -> str:
        return "".join(_LATEX.get(c, c) for c in text)

    def row(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    body = [
        row([line.language, escape(line.model), *_marked(table, line, intervals, r"\textbf{{{}}}")])
        for line in table.lines
    ]
    heads = [row([*NAMES, *(column.title for column in table.columns)])]
    heads.append(row(["", "", *(column.measure for column in table.columns)]))
    rules = [rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}", r"\toprule", *heads, r"\midrule", *body]
    return "\n".join([*rules, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _marked(table: Table, line: Line, intervals: bool, best: str) -> list[str]:
    texts = [cell_text(cell, intervals) for cell in line.cells]
    return [best.format(text) if table.best(line, i) else text for i, text in enumerate(texts)]
