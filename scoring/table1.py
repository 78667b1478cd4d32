"""The paper's Table 1 for any number of models: clean WER, NWERD by category, their average, and WERD under attack.

Lines stand in the order of `ranking`; its score, the average NWER, is the first column. Models that cannot be ranked
stand last, and a note says why.

Below it, what the paper does not have: MED, the median NWERD over configs (the robust view), the categories beyond the
paper in WERD, and for clips without speech the words that were recognised in a minute. Less is better in every column.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.errors import for_csv, for_markdown, for_terminal
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.result_records import (
    MEASURES,
    LanguageResults,
    MeanRow,
    ResampledUnits,
    RunResults,
    ScoreValue,
)
from speech_robust_bench.scoring import ranking
from speech_robust_bench.scoring.bank_provenance import stand_in_notes
from speech_robust_bench.scoring.ranking import Standing

NAMES = ("Lang", "Model")  # the two columns that say what a row is


@dataclass(frozen=True)
class Column:
    """A column: its title, its measure, and how to find its score in the results of one language.

    `shared` gives the same over the configs that are ranked over, for a model that has others beside them; `row` is the
    row whose clips the interval is over.
    """

    title: str
    measure: str
    of: Callable[[LanguageResults], ScoreValue | None]
    shared: Callable[[Standing], float | None] | None = None
    row: Callable[[LanguageResults], MeanRow | None] = lambda rows: None


@dataclass(frozen=True)
class Line:
    """One model in one language: a score (value and interval) or None per column."""

    language: str
    model: str
    cells: tuple[ScoreValue | None, ...]
    ranked: bool = True
    units: tuple[ResampledUnits | None, ...] = ()  # what the interval of each cell is over

    def value(self, index: int) -> float | None:
        """The number in a column."""
        cell = self.cells[index]
        return None if cell is None else cell.value

    def keep(self, places: Sequence[int | None]) -> Line:
        """The same line with the cells of some places; None is an empty cell."""
        units = self.units or (None,) * len(self.cells)
        return replace(
            self,
            cells=tuple(None if i is None else self.cells[i] for i in places),
            units=tuple(None if i is None else units[i] for i in places),
        )


@dataclass(frozen=True)
class Table:
    """Columns, lines in the order of the ranking within a language, and what a reader must know of them."""

    columns: tuple[Column, ...]
    lines: tuple[Line, ...]
    notes: tuple[str, ...] = field(default=())

    def best(self, line: Line, index: int) -> bool:
        """Whether the line has the lowest score of its language in a column, among at least two that are ranked."""
        ranked = [other for other in self.lines if other.language == line.language and other.ranked]
        rivals = [value for other in ranked if (value := other.value(index)) is not None]
        return line.ranked and len(rivals) > 1 and line.value(index) == min(rivals)

    def keep(self, wanted: Iterable[int]) -> Table:
        """The same table with only some of its columns."""
        chosen = tuple(wanted)
        lines = (line.keep(chosen) for line in self.lines)
        return Table(tuple(self.columns[i] for i in chosen), tuple(lines), self.notes)

    def filled(self) -> Table:
        """Without the columns in which nobody has a score; they are named in a note."""
        kept = [i for i in range(len(self.columns)) if any(line.cells[i] for line in self.lines)]
        gone = [column.title for i, column in enumerate(self.columns) if i not in kept]
        note = (f"not scored: {', '.join(gone)}",) if gone and kept else ()
        kept_table = self.keep(kept)
        return Table(kept_table.columns, kept_table.lines, (*kept_table.notes, *note))

    def interval_notes(self) -> list[str]:
        """How many speakers and clips the intervals of each line are over."""
        notes = []
        for line in self.lines:
            titles: dict[str, list[str]] = {}
            for column, cell, units in zip(self.columns, line.cells, line.units, strict=False):
                if units and cell and cell.interval:
                    titles.setdefault(str(units), []).append(f"{column.title} {column.measure}")
            parts = [f"{over} ({', '.join(names)})" for over, names in titles.items()]
            if parts:
                only = [next(iter(titles))] if len(parts) == 1 else parts
                notes.append(f"intervals of {line.language} {line.model} are over {'; '.join(only)}")
        return notes


def paper_table(results: Sequence[RunResults]) -> Table:
    """Table 1: the score that ranks, then every column that the paper has."""
    columns = (
        _average("NWER", lambda rows: rows.overall.nwer, lambda standing: standing.nwer),
        Column("clean", "WER", clean_wer, row=_clean_row),
        *(_category(name, "nwerd") for name in AVERAGED),
        _average("NWERD", lambda rows: rows.overall.nwerd, lambda standing: standing.nwerd),
        *(_category(name, "werd") for name in ADVERSARIAL),
        Column("adv AVG", "WERD", lambda rows: rows.adversarial.werd, row=lambda rows: rows.adversarial),
    )
    return Table(columns, _lines(results, columns), tuple(_notes(results)))


def dataset_table(results: Sequence[RunResults]) -> Table:
    """The paper's Table 7: Table 1 for each data set by itself, which stands where the language does."""
    table = paper_table([result.replace(languages=_by_dataset(result.languages)) for result in results])
    languages = sorted({language for result in results for language in result.languages})
    own = {language: [result for result in results if language in result.languages] for language in languages}
    return Table(table.columns, table.lines, tuple(note for name in languages for note in _uneven(own[name], name)))


def group_tables(results: Sequence[Mapping[str, RunResults]]) -> list[Table]:
    """Table 1, and what is beyond it, for each group of clips by itself; the group stands beside the language.

    `results` has for each model its results by group.
    """
    tables: list[list[Table]] = [[], []]
    for group in sorted({group for of_model in results for group in of_model}):
        own = [of_model[group] for of_model in results if group in of_model]
        for rows_so_far, table in zip(tables, (paper_table(own), beyond_table(own)), strict=True):
            lines = (replace(line, language=f"{line.language} {group}") for line in table.lines)
            rows_so_far.append(Table(table.columns, tuple(lines), tuple(f"{group}: {note}" for note in table.notes)))
    return [_stacked(parts) for parts in tables]


def _stacked(tables: Sequence[Table]) -> Table:
    """The lines of several tables, one under the other, with every column that one of them has."""
    columns = list({(c.title, c.measure): c for table in tables for c in table.columns}.values())
    lines = []
    for table in tables:
        places = {(c.title, c.measure): i for i, c in enumerate(table.columns)}
        for line in table.lines:
            lines.append(line.keep([places.get((c.title, c.measure)) for c in columns]))
    return Table(tuple(columns), tuple(lines), tuple(note for table in tables for note in table.notes))


def _by_dataset(languages: Mapping[str, LanguageResults]) -> dict[str, LanguageResults]:
    """`language corpus` -> the rows of that data set alone, in the form of a language's."""
    clean: dict[str, dict[str, MeanRow]] = {}
    categories: dict[str, dict[str, MeanRow]] = {}
    whole: dict[str, LanguageResults] = {}
    for language, rows in languages.items():
        for config, row in rows.clean.items():
            clean.setdefault(f"{language} {parse(config).corpus}", {})[config] = row
        for key, row in rows.corpora.items():
            corpus, category = key.split(" ", 1)
            categories.setdefault(f"{language} {corpus}", {})[category] = row
        whole |= {name: rows for name in (*clean, *categories) if name not in whole}
    return {
        name: rows.replace(
            clean=clean.get(name, {}),
            categories=(own := categories.get(name, {})),
            overall=_mean_row(own, AVERAGED, "nwerd"),
            adversarial=_mean_row(own, ADVERSARIAL, "werd"),
        )
        for name, rows in whole.items()
    }


def _mean_row(categories: Mapping[str, MeanRow], wanted: Iterable[str], measure: str) -> MeanRow:
    """The mean of some categories by one measure."""
    members = [category for category in wanted if category in categories and categories[category].score(measure)]
    values = [score.value for category in members if (score := categories[category].score(measure))]
    mean = ScoreValue(value=sum(values) / len(values)) if values else None
    scores: dict[str, Any] = {**dict.fromkeys(MEASURES), measure: mean}
    return MeanRow(**scores, members=members, missing={})


def beyond_table(results: Sequence[RunResults]) -> Table:
    """What the paper does not have: codecs, transmission, AequeVox, own scenarios, and clips without speech."""
    paper = {*AVERAGED, *ADVERSARIAL}
    names = dict.fromkeys(
        n for result in results for rows in result.languages.values() for n in rows.categories if n not in paper
    )
    columns = [
        Column(
            "MED", "NWERD", lambda rows: rows.median.nwerd, lambda standing: standing.median_nwerd, lambda r: r.median
        ),
        *(_category(name, "werd") for name in names),
    ]
    if any(result.reject for result in results):
        columns.append(Column("no speech", "words/min", _invented))
    return Table(tuple(columns), _lines(results, columns))


def untranscribed_table(results: Sequence[RunResults]) -> Table:
    """Clips without references: by category, how far the transcripts are from those of the clean clips, in per cent."""
    entries = [
        (result.model, entry, entry.difference.value)
        for result in results
        for entry in (result.untranscribed or {}).values()
        if entry.difference
    ]
    names = dict.fromkeys(entry.category for _, entry, _ in entries)
    columns = tuple(Column(name, "differ %", lambda rows: None) for name in names)
    lines = []
    for language, model in dict.fromkeys((entry.language, model) for model, entry, _ in entries):
        cells = []
        for name in names:
            key = (language, model, name)
            values = [value for m, e, value in entries if (e.language, m, e.category) == key]
            cells.append(ScoreValue(value=sum(values) / len(values)) if values else None)
        lines.append(Line(language, model, tuple(cells)))
    note = "no references: how far each transcript is from the one of the clean clip, words that differ over the longer"
    return Table(columns, tuple(sorted(lines, key=lambda line: line.language)), (note,) if lines else ())


def clean_wer(rows: LanguageResults) -> ScoreValue | None:
    """WER on clean speech: the mean over the clean configs of a language, the interval where there is but one."""
    scores = [row.wer for row in rows.clean.values() if row.wer]
    if len(scores) < 2:
        return scores[0] if scores else None
    return ScoreValue(value=sum(score.value for score in scores) / len(scores))


def _clean_row(rows: LanguageResults) -> MeanRow | None:
    return next(iter(rows.clean.values())) if len(rows.clean) == 1 else None


def _average(
    measure: str, of: Callable[[LanguageResults], ScoreValue | None], shared: Callable[[Standing], float | None]
) -> Column:
    return Column("AVG", measure, of, shared, lambda rows: rows.overall)


def _category(name: str, measure: str) -> Column:
    def row(rows: LanguageResults) -> MeanRow | None:
        return rows.categories.get(name)

    return Column(name, measure.upper(), lambda rows: own.score(measure) if (own := row(rows)) else None, row=row)


def _invented(rows: LanguageResults) -> ScoreValue | None:
    counted = rows.hallucination.reject
    return ScoreValue(value=counted.words_per_minute) if counted and counted.words_per_minute is not None else None


def _lines(results: Sequence[RunResults], columns: Sequence[Column]) -> tuple[Line, ...]:
    lines = []
    for language, standings in _standings(results).items():
        for place, (result, standing) in enumerate(standings):
            whole = _averaged(result, language) == standing.configs
            rows = result.languages[language]
            cells = tuple(_cell(column, rows, standing, whole) for column in columns)
            units = tuple(own.resampled if (own := column.row(rows)) else None for column in columns)
            lines.append((language, place, Line(language, result.model, cells, not standing.why, units)))
    return tuple(line for _, _, line in sorted(lines, key=lambda entry: entry[:2]))


def _standings(results: Sequence[RunResults]) -> dict[str, list[tuple[RunResults, Standing]]]:
    """For each language the results that have it with their standings, best first."""
    languages = sorted({language for result in results for language in result.languages})
    return {language: [(results[i], s) for i, s in ranking.order(results, language)] for language in languages}


def _averaged(result: RunResults, language: str) -> int:
    """How many configs a result's average is over."""
    rows = ranking.candidate_of(result, language).configs
    return sum(row.counts and row.category in AVERAGED for row in rows)


def _cell(column: Column, rows: LanguageResults, standing: Standing, whole: bool) -> ScoreValue | None:
    """A score, over the configs that are ranked over where the model has more of them."""
    cell = column.of(rows)
    if column.shared is None or (cell is None and standing.why) or (whole and cell is not None):
        return cell
    value = column.shared(standing)
    return None if value is None else ScoreValue(value=value)


def _notes(results: Sequence[RunResults]) -> list[str]:
    """By what the models are ranked, who lacks what, and who is not ranked and why."""
    notes = [ranking.SENTENCE] if len(results) > 1 else []
    by_language = _standings(results)
    for language, standings in by_language.items():
        notes += _uneven([result for result, _ in standings], language)
        if any(_averaged(result, language) != standing.configs for result, standing in standings):
            ranked_over = max(standing.configs for _, standing in standings)
            notes.append(f"{language}: averages are over the {ranked_over} configs of one scenario version")
        notes += stand_in_notes([c for result, _ in standings for c in result.configs.values()], language)
        where = f" in {language}" if len(by_language) > 1 else ""
        notes += [
            f"{result.model} is not ranked{where}: {standing.why}" for result, standing in standings if standing.why
        ]
    return notes


def _uneven(results: Sequence[RunResults], language: str) -> list[str]:
    """Averages over different configs cannot be compared: say whose lack what."""
    notes = []
    parts = [(result.model, _configs(result, language)) for result in results]
    union = set().union(*(configs for _, configs in parts))
    for model, configs in parts:
        if lost := sorted(union - configs):
            named = ", ".join(lost[:3]) + (f" and {len(lost) - 3} more" if len(lost) > 3 else "")
            notes.append(f"{model} lacks {named}")
    return notes


def _configs(result: RunResults, language: str) -> set[str]:
    """The configs that averages are made of; attacks belong to one model each and are left out."""
    entries = result.configs.items()
    return {c for c, entry in entries if entry.language == language and entry.category not in ADVERSARIAL}


# --- as text ---------------------------------------------------------------------------------------------------------


def cell_text(cell: ScoreValue | None, intervals: bool = False) -> str:
    """One decimal, as in the paper; with its interval if asked for."""
    if cell is None:
        return "-"
    span = cell.interval
    return f"{cell.value:.1f}" + (f" [{span[0]:.1f}, {span[1]:.1f}]" if intervals and span else "")


def to_csv(table: Table) -> str:
    """Values in full precision, the bounds of their intervals, and what those are over."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    heads = [f"{column.title} {column.measure}" for column in table.columns]
    ends = ("", " low", " high", " over", " n", " clips")
    writer.writerow(["lang", "model", *(head + end for head in heads for end in ends)])
    for line in table.lines:
        cells: list[Any] = []
        for cell, units in zip(line.cells, line.units or (None,) * len(line.cells), strict=True):
            cells += ["", "", ""] if cell is None else [cell.value, *(cell.interval or ("", ""))]
            cells += [units.unit, units.units, units.clips] if cell and cell.interval and units else ["", "", ""]
        writer.writerow([for_csv(line.language), for_csv(line.model), *cells])
    return out.getvalue()


def to_markdown(table: Table, intervals: bool = False) -> str:
    """Table 1 as a Markdown table, for a README."""

    def row(cells: Iterable[str]) -> str:
        return "| " + " | ".join(cells) + " |"

    rows = [row([*NAMES, *(f"{column.title}<br>{column.measure}" for column in table.columns)])]
    rows.append(row(["---"] * 2 + ["---:"] * len(table.columns)))
    for line in table.lines:
        rows.append(
            row([for_markdown(line.language), for_markdown(line.model), *_marked(table, line, intervals, "**{}**")])
        )
    return "\n".join(rows) + "\n"


_LATEX = (
    {c: f"\\{c}" for c in "&%$#_{}"}
    | {"~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
    | {"\\": r"\textbackslash{}"}
)


def to_latex(table: Table, intervals: bool = False) -> str:
    """A tabular for a paper, with booktabs' rules."""

    def escape(text: str) -> str:
        return "".join(_LATEX.get(c, c) for c in for_terminal(text))

    def row(cells: Iterable[str]) -> str:
        return " & ".join(cells) + r" \\"

    body = [
        row([escape(line.language), escape(line.model), *_marked(table, line, intervals, r"\textbf{{{}}}")])
        for line in table.lines
    ]
    heads = [row([*NAMES, *(column.title for column in table.columns)])]
    heads.append(row(["", "", *(column.measure for column in table.columns)]))
    rules = [rf"\begin{{tabular}}{{ll{'r' * len(table.columns)}}}", r"\toprule", *heads, r"\midrule", *body]
    return "\n".join([*rules, r"\bottomrule", r"\end{tabular}"]) + "\n"


def _marked(table: Table, line: Line, intervals: bool, best: str) -> list[str]:
    texts = [cell_text(cell, intervals) for cell in line.cells]
    return [best.format(text) if table.best(line, i) else text for i, text in enumerate(texts)]
