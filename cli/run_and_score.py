"""The commands of a run: `srb run`, `score`, `table`, `report` and `metrics`."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    BUILT,
    Command,
    Corpora,
    allow_changed_option,
    configs_argument,
    corpus_option,
    groups_option,
    limit_option,
    model_option,
    quiet_option,
    runs_argument,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.options import Options, Settings, argument, option, option_group

RUN_EPILOG = """examples:
  srb run --model moonshine 'en-demo_*' --corpus en-demo
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --noise-dir noises/
  srb run --model hf:openai/whisper-tiny.en?dtype=float16 --device cuda en_clean 'en_noise_sev*'
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --until 1.0
  srb run --model moonshine --suite fast --corpus en=LibriSpeech --tts espeak
  srb run --model python:mymodule:transcribe --data mshah1/speech_robust_bench_public en_gaussian_sev2 --limit 100
With --corpus the clips are perturbed while the model works, and no audio is stored; with --data they were built before.
If a command is interrupted, repeat it to continue."""


@dataclass(frozen=True, kw_only=True)
class RunArguments(Options):
    configs: list[str] = configs_argument()
    model: str = model_option("recogniser, adapter:target?option=value&..., or a file of recognisers, @models.yaml")
    out: str = option("runs", "folder for runs; predictions go to OUT/<model>/<config>.jsonl", metavar="OUT")
    data: str | None = option(None, f"{BUILT} (default: srb)")
    limit: int | None = limit_option()
    run_options: srb.RunOptions = option_group(srb.RunOptions)
    plan: bool = option(False, "print an estimate of the hours, and of the cost; run nothing", advanced=True)
    quiet: bool = quiet_option(advanced=True)
    corpus: Corpora = corpus_option()
    data_options: srb.DataOptions = option_group(
        srb.DataOptions, "with --corpus, to perturb clips while the model works"
    )


def run_model(args: RunArguments) -> int:
    """Run the model, or each model of a file; the exit code is 1 if every clip of one failed."""
    modes = [name for name in registered_objects("RUN_MODES") if getattr(args, name)]
    if len(modes) > 1:
        raise UserError(f"say one of {', '.join(f'--{name}' for name in modes)}")
    options = replace(args.run_options, mode=getattr(args, f"{modes[0]}_options") if modes else None)
    how: Settings = {
        "corpus": args.corpus,
        "data": args.data,
        "limit": args.limit,
        "data_options": args.data_options,
        "run_options": options,
        "progress": not args.quiet,
    }
    if args.model.startswith("@"):
        if args.plan:
            raise UserError("--plan takes the spec of one model, not a file of models")
        return max([show(summary) for summary in srb.run_models(args.model, args.configs, out=args.out, **how)])
    out = srb.run_folder(args.model, args.out, options)
    if args.plan:
        print(srb.plan(args.model, args.configs, out=out, **how))
        return 0
    return show(srb.run(args.model, args.configs, out=out, **how))


def show(summary: srb.RunSummary) -> int:
    """Say where the predictions are, how fast they came, and what failed."""
    print(summary, flush=True)
    if summary.failed:
        print(
            f'{summary.failed} clips failed; see "error" in the files, --retry-failed tries them again', file=sys.stderr
        )
    if summary.cost:
        print(f"cost: about {summary.cost:.2f} $ by the price list")
    if summary.error:
        print(f"every clip failed, the first with: {summary.error}", file=sys.stderr)
    return 1 if summary.error else 0


def mode_fields() -> dict[str, tuple[Any, Any]]:
    """The flags of other ways to use a model, each with options of its own."""
    fields: dict[str, tuple[Any, Any]] = {}
    for name, mode in registered_objects("RUN_MODES").items():
        fields[name] = bool, option(False, mode.about, advanced=mode.advanced)
        fields[f"{name}_options"] = mode, option_group(mode, f"with --{name}", advanced=True)
    return fields


RUN = Command(RunArguments, run_model, RUN_EPILOG, added=mode_fields)


@dataclass(frozen=True, kw_only=True)
class ScoreArguments(Options):
    runs: list[str] = runs_argument("run folders, such as runs/moonshine")
    score_options: srb.ScoreOptions = option_group(srb.ScoreOptions)
    allow_changed: bool = allow_changed_option()


def score_runs(args: ScoreArguments) -> None:
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.run_results import measure_settings

    settings = {name: value for name in measure_settings() if (value := getattr(args, name))}
    options = replace(args.score_options, settings=settings or None)
    scored = []
    with progress() as bar:
        task = bar.add_task("scoring", total=len(args.runs))
        for folder in args.runs:
            scored.append(srb.score_run(folder, options, allow_changed=args.allow_changed))
            bar.advance(task)
    for results in scored:
        headline = f", {results.headline}" if results.headline else ""
        print(f"{Path(results.folder) / 'results.json'}: {len(results.configs)} configs{headline}")
        for problem in results.problems:
            print(f"  {problem}", file=sys.stderr)


def setting_fields() -> dict[str, tuple[Any, Any]]:
    """The flags of what measures have to be told."""
    from speech_robust_bench.run_results import measure_settings

    return {
        name: (str | None, option(None, setting.help, metavar=setting.metavar))
        for name, setting in measure_settings().items()
    }


SCORE = Command(ScoreArguments, score_runs, added=setting_fields)


@dataclass(frozen=True, kw_only=True)
class TableArguments(Options):
    runs: list[str] = runs_argument()
    markdown: bool = option(False, "print Markdown, for a README", one_of="form")
    latex: bool = option(False, "print LaTeX, for a paper (booktabs)", one_of="form")
    csv: bool = option(False, "print CSV, with intervals and in full precision", one_of="form")
    groups: str | None = groups_option(
        "one row for each `dataset` (as in the paper's Table 7), or for each group of clips"
    )
    intervals: bool = option(False, "show the interval of each score")
    allow_changed: bool = allow_changed_option()


def table(args: TableArguments) -> None:
    from speech_robust_bench.cli.rendering import print_blocks, print_measure
    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.reporting import measure_forms, to_csv, to_latex, to_markdown

    for measure, form in measure_forms().items():
        if getattr(args, measure):
            for each in srb.measure_tables(args.runs, measure, allow_changed=args.allow_changed):
                print_measure(each)
            if form.legend:
                print(form.legend)
            return
    tables = srb.table(args.runs, groups=args.groups, allow_changed=args.allow_changed)
    if args.csv:
        print(to_csv(tables[0]), end="")
    elif args.markdown or args.latex:
        text = to_markdown if args.markdown else to_latex
        print("\n".join(text(table, args.intervals) for table in tables), end="")
        over = dict.fromkeys(note for table in tables for note in table.interval_notes()) if args.intervals else ()
        for note in (*tables[0].notes, *over):
            print(for_terminal(note), file=sys.stderr)
    else:
        print_blocks(tables, args.intervals)


def measure_fields() -> dict[str, tuple[Any, Any]]:
    """The flags of the tables of measures."""
    from speech_robust_bench.reporting import measure_forms

    return {
        flag: (bool, option(False, form.help, one_of="form", advanced=form.advanced))
        for flag, form in measure_forms().items()
    }


TABLE = Command(TableArguments, table, added=measure_fields)


@dataclass(frozen=True, kw_only=True)
class ReportArguments(Options):
    runs: list[str] = runs_argument()
    out: str = option("report.html", "page to write; the report cards go beside it as .json", metavar="FILE")
    report_options: srb.ReportOptions = option_group(srb.ReportOptions)
    data: str | None = option(None, f"{BUILT}: has the audio of the worst clips")
    corpus: Corpora = corpus_option()
    data_options: srb.DataOptions = option_group(srb.DataOptions, "with --corpus, as in `srb run`")


def report(args: ReportArguments) -> None:
    page, cards = srb.write_report(
        args.runs,
        args.out,
        data=args.data,
        corpus=args.corpus,
        data_options=args.data_options,
        report_options=args.report_options,
    )
    print(f"{page}: {len(args.runs)} models, {page.stat().st_size / 1e6:.1f} MB; report cards as data: {cards}")


REPORT = Command(ReportArguments, report)


@dataclass(frozen=True, kw_only=True)
class InstallArguments(Options):
    metrics: list[str] = argument("metrics to install (default: all)", [], metavar="METRIC")


@dataclass(frozen=True, kw_only=True)
class ExportArguments(Options):
    metric: str = argument("metric to export")
    folder: str = argument("folder for the Space")


def install(args: InstallArguments) -> None:
    installed = srb.install_metrics(args.metrics)
    print(f"installed: {', '.join(installed)}")
    print(f'from any directory: evaluate.load("{installed[0]}")')


def export(args: ExportArguments) -> None:
    print(srb.export_metric(args.metric, args.folder))


METRICS = (
    Command(InstallArguments, install, name="install", help="put the metrics where evaluate.load finds them by name"),
    Command(ExportArguments, export, name="export", help="write a metric as a stand-alone Space"),
)
