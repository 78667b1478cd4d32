"""Tables, report cards and the HTML report of runs.

`srb.table` makes the paper's Table 1 of any number of runs, `srb.measure_tables` one measure of each run by config.
`srb.diagnose` finds the words, clips and speakers that a recogniser fails on. `srb.write_report` puts all of it
on one page.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.core.card_records import CardPart, LanguageComparison, ReportCard
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.options import Options, at_least, normaliser_option, option, shares
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.options import DataOptions, Place
from speech_robust_bench.report import report_data
from speech_robust_bench.report.html import tag
from speech_robust_bench.report.page import document, write
from speech_robust_bench.report.report_data import gather
from speech_robust_bench.report.sections.words import LEAD
from speech_robust_bench.report.sections.words import card as card_section
from speech_robust_bench.run_results import Results, paper_tables, read_run
from speech_robust_bench.scoring import attack_success
from speech_robust_bench.scoring.disparity import languages
from speech_robust_bench.scoring.measures import TableForm, measures
from speech_robust_bench.scoring.report_card import aligned, card
from speech_robust_bench.scoring.results import load
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.table1 import Table as PaperTable
from speech_robust_bench.scoring.table1 import cell_text, to_csv, to_latex, to_markdown
from speech_robust_bench.scoring.word_errors import read_frequencies, read_names

__all__ = [
    "CardPart",
    "DiagnoseOptions",
    "Diagnosis",
    "LanguageComparison",
    "MeasureTable",
    "PaperTable",
    "ReportCard",
    "ReportOptions",
    "cell_text",
    "diagnose",
    "measure_forms",
    "measure_tables",
    "table",
    "to_csv",
    "to_latex",
    "to_markdown",
    "write_report",
]

RunLike = str | os.PathLike | Results
Rows = Sequence[Sequence[str]]


@dataclass(frozen=True)
class MeasureTable:
    """A table of one run: a row for each config, as text."""

    title: str
    heads: Sequence[str]
    rows: Rows


def table(runs: Sequence[RunLike], *, groups: str | None = None, allow_changed: bool = False) -> list[PaperTable]:
    """Make the paper's Table 1 of some runs; below it the categories that the paper does not have.

    Args:
        runs: run folders or `Results`; a folder without results is scored first.
        groups: a column of the clips ("domain") for one row per group, or "dataset" for one row per data set.
        allow_changed: accept predictions or results that were edited after the run.
    """
    return paper_tables(_results(runs, allow_changed), groups)


def measure_tables(runs: Sequence[RunLike], measure: str, *, allow_changed: bool = False) -> list[MeasureTable]:
    """Make a table of one measure for each run, with a row for each config that has it.

    Args:
        runs: run folders or `Results`.
        measure: "adversarial", or the table of an extension: "streaming", "lenient", "confidence", ...
        allow_changed: accept predictions or results that were edited after the run.
    """
    forms = measure_forms()
    if measure not in forms:
        raise UserError(f"no table of '{measure}'; {did_you_mean(measure, forms)}")
    results, form = _results(runs, allow_changed), forms[measure]
    tables = [MeasureTable(result.model, form.heads, form.rows(result.record, result.folder)) for result in results]
    if form.absent and not any(each.rows for each in tables):
        raise UserError(form.absent)
    return [_without_empty_columns(each) for each in tables]


def measure_forms() -> dict[str, TableForm]:
    """The tables of measures by the names of their flags: the benchmark's own, and those of extensions."""
    forms = (each.table for each in measures().values() if each.table)
    return {**OURS, **{form.flag: form for form in forms}}


def _results(runs: Sequence[RunLike], allow_changed: bool) -> list[Results]:
    return [run if isinstance(run, Results) else read_run(run, allow_changed=allow_changed) for run in runs]


def _without_empty_columns(table: MeasureTable) -> MeasureTable:
    shown = [place for place in range(len(table.heads)) if any(row[place] for row in table.rows)]
    return MeasureTable(
        table.title, [table.heads[place] for place in shown], [[row[place] for place in shown] for row in table.rows]
    )


def _adversarial_rows(result: RunResults, folder: Path) -> Rows:
    return [row.cells() for row in attack_success.adversarial_rows(result)]


OURS = {
    "adversarial": TableForm(
        "adversarial", "print the success of the attacks in a run", attack_success.HEADS, _adversarial_rows
    )
}


@dataclass(frozen=True)
class DiagnoseOptions(Options):
    """The language, and which words are frequent or names."""

    language: str | None = option(None, "only this language (default: every language of the run)")
    minimum: int = option(10, "leave out groups of fewer than N clips", metavar="N")
    frequencies: str | None = option(
        None, "CSV file with word frequencies, word,count (default: counted in the run)", metavar="CSV"
    )
    names: str | None = option(None, "file with names, one per line (default: words with capitals)", metavar="FILE")
    normaliser: str = normaliser_option()


@dataclass(frozen=True)
class Diagnosis:
    """A report card for each language, and what differs between languages."""

    model: str
    cards: dict[str, ReportCard]
    across: LanguageComparison | None

    def to_json(self) -> str:
        """The card as JSON."""
        cards = {language: card.as_json() for language, card in self.cards.items()}
        content = {"cards": cards, "across": self.across.as_json() if self.across else None}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)

    def write(self, out: Place) -> Path:
        """Write the card as a page (.html) or as data (.json)."""
        path, text = Path(out), self.to_json()
        if path.suffix not in (".html", ".json"):
            raise UserError(f"--out {out}: a card is a page, .html, or data, .json")
        if path.suffix == ".html":
            parts = [tag("section", tag("h2", language), card_section(own)) for language, own in self.cards.items()]
            text = document(tag("div", tag("p", LEAD, class_="lead"), parts), f"System report card: {self.model}")
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
        return path


def diagnose(run: Place, diagnose_options: DiagnoseOptions = DiagnoseOptions()) -> Diagnosis:
    """Make the report card of a run: which words, clips and speakers the recogniser fails on."""
    options, opened = diagnose_options, open_run(Path(run))
    there = sorted({parse(config).language for config in opened.configs})
    if options.language and options.language not in there:
        raise UserError(f"{run} has nothing in '{options.language}'; it has {', '.join(there)}")
    cards = {
        language: card(
            aligned(opened, language, options.normaliser),
            minimum=options.minimum,
            frequency=read_frequencies(options.frequencies, options.normaliser) if options.frequencies else None,
            names=read_names(options.names, options.normaliser) if options.names else None,
        )
        for language in ([options.language] if options.language else there)
    }
    return Diagnosis(opened.model, cards, languages(load(Path(run))) if len(cards) > 1 else None)


CLIPS = 6  # audio of the worst clips of each model, where the audio is known


@dataclass(frozen=True)
class ReportOptions(Options):
    """Options of the HTML report."""

    embed_audio: int | None = option(
        None,
        "embed the audio of the N worst clips of each model (default: 6 with --data or --corpus)",
        metavar="N",
        check=at_least(0),
    )
    meta: str | None = option(
        None, "CSV file with facts about the models: model, parameters, hours, architecture, family", metavar="CSV"
    )
    population: Mapping[str, float] | None = option(
        None,
        "shares of groups of speakers in the population, as in female=0.5 male=0.5",
        metavar="GROUP=SHARE",
        parse=shares,
    )
    title: str = option("Speech Robust Bench", "title of the page")


def write_report(
    runs: Sequence[Place],
    out: Place = "report.html",
    *,
    data: Place | None = None,
    corpus: Corpora = None,
    data_options: DataOptions = DataOptions(),
    report_options: ReportOptions = ReportOptions(),
    progress: bool = True,
) -> tuple[Path, Path]:
    """Write an HTML report; returns its path, and that of the report cards as JSON beside it.

    Args:
        runs: run folders; one without results is scored first.
        out: the page.
        data: where the built configs are, for the audio of the worst clips.
        corpus, data_options: the audio of a run that was perturbed while it ran, as in `srb.run`.
        report_options: audio, facts about the models, the population, the title.
        progress: show progress.
    """
    embed = report_options.embed_audio
    known = bool(data or corpus)
    if embed and not known:
        raise UserError("--embed-audio needs --data, the folder or dataset that the clips are in, or --corpus")
    meta = report_data.read_metadata(report_options.meta) if report_options.meta else None
    with ExitStack() as stack:
        source = stack.enter_context(DataSource(corpus, data, None, data_options, None, progress)) if known else None
        bar = stack.enter_context(progress_bar(not progress))
        task = bar.add_task("scoring, looking at words", total=2 * len(runs))
        report = gather(
            [str(run) for run in runs],
            meta=meta,
            data=source.configs if source else None,
            embed=embed if embed is not None else CLIPS if known else 0,
            population=report_options.population,
            advance=lambda: bar.advance(task),
        )
    return write(report, str(out), report_options.title)
