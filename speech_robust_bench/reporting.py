"""`srb.write_report`: one page about any number of runs that needs nothing but itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, at_least, option, shares
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.data_source import Corpora, DataSource, Place
from speech_robust_bench.options import DataOptions
from speech_robust_bench.report import report_data
from speech_robust_bench.report.page import write
from speech_robust_bench.report.report_data import gather

CLIPS = 6  # audio of the worst clips of each model, where the audio is known


@dataclass(frozen=True)
class ReportOptions(Options):
    """What a report shows beside the scores."""

    embed_audio: int | None = option(
        None,
        "embed the audio of the N worst clips of each model (default: 6 with --data or --corpus)",
        metavar="N",
        check=at_least(0),
    )
    meta: str | None = option(
        None, "facts about the models: CSV of model, parameters, hours, architecture, family", metavar="CSV"
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
    """Write a report: the path of the page, and that of the report cards as JSON beside it.

    Args:
        runs: run folders; one without results is scored first.
        out: the page.
        data: where the built configs are, for the audio of the worst clips.
        corpus, data_options: the audio of a run that was perturbed as it went, as in `srb.run`.
        report_options: audio, facts about the models, the population, the title.
        progress: show progress.
    """
    embed = report_options.embed_audio
    known = bool(data or corpus)
    if embed and not known:
        raise UserError("--embed-audio needs --data, the folder or dataset that the clips are in, or --corpus")
    meta = report_data.read(report_options.meta) if report_options.meta else None
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
