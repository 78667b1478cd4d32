"""The commands about data: `srb build`, `check`, `perturb`, `quality` and `difficulty`."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    Command,
    Corpora,
    configs_argument,
    corpus_option,
    json_option,
    limit_option,
    quiet_option,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, argument, at_least, option, option_group

if TYPE_CHECKING:
    from speech_robust_bench.perturbation import FileReport


@dataclass(frozen=True, kw_only=True)
class BuildArguments(Options):
    configs: list[str] = configs_argument("configs or patterns, such as en_noise_sev3 or 'en-demo_*_sev3'")
    corpus: Corpora = corpus_option()
    limit: int | None = limit_option("only the first N clips of each corpus")
    out: str | None = option(None, "folder for the configs (default: srb)", metavar="FOLDER")
    build_options: srb.BuildOptions = option_group(srb.BuildOptions)
    data_options: srb.DataOptions = option_group(srb.DataOptions)


def build(args: BuildArguments) -> None:
    result = srb.build(
        args.configs,
        corpus=args.corpus,
        limit=args.limit,
        out=args.out,
        data_options=args.data_options,
        build_options=args.build_options,
    )
    print(result)


BUILD = Command(BuildArguments, build)


@dataclass(frozen=True, kw_only=True)
class CheckArguments(Options):
    configs: list[str] = configs_argument()
    data: str = option("srb", "built folder", metavar="FOLDER")
    workers: int = option(1, "processes", metavar="N", check=at_least(1))


def check(args: CheckArguments) -> int:
    checked = srb.check(args.configs, data=args.data, workers=args.workers)
    wrong = [problem for problem in checked.values() if problem]
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(f"{args.data}: {len(checked) - len(wrong)} of {len(checked)} configs are as they were built")
    return 1 if wrong else 0


CHECK = Command(CheckArguments, check)


def _severity(number: float) -> float:
    return number if number % 1 else int(number)


@dataclass(frozen=True, kw_only=True)
class PerturbArguments(Options):
    input: str = argument("audio file, any rate and number of channels", metavar="IN")
    output: str | None = argument("file to write, 16 kHz mono: .wav, .flac, .ogg or .mp3", None, metavar="OUT")
    scenario: str | None = option(None, "name of a scenario (`srb ls` lists them)", metavar="NAME")
    severity: float = option(0, "severity; 1 is the mildest, 2.5 lies between 2 and 3", metavar="N", parse=_severity)
    value: float | None = option(None, "any value of the scenario's parameter, instead of a severity", metavar="X")
    second: str | None = option(None, "second clip, for a scenario that mixes two", metavar="FILE")
    all: str | None = option(None, "write every scenario and severity to FOLDER, with an index.html", metavar="FOLDER")
    seed: str = option("", "seed, any text; another seed draws another noise or room", metavar="TEXT")
    json: bool = json_option()
    scenario_options: srb.ScenarioOptions = option_group(srb.ScenarioOptions)


def perturb(args: PerturbArguments) -> None:
    if bool(args.all) == bool(args.output) or bool(args.output) != bool(args.scenario):
        raise UserError("give either OUT and --scenario, or --all FOLDER")
    if args.all:
        reports = srb.perturb_all(args.input, args.all, seed=args.seed, scenario_options=args.scenario_options)
        print(json.dumps(reports) if args.json else f"{len(reports)} clips; open {Path(args.all) / 'index.html'}")
        return
    report = srb.perturb_file(
        args.input,
        str(args.output),
        str(args.scenario),
        args.severity,
        value=args.value,
        second=args.second,
        seed=args.seed,
        scenario_options=args.scenario_options,
    )
    print(json.dumps(report) if args.json else _line(report))


def _line(report: FileReport) -> str:
    drawn = ", ".join(f"{key} {value}" for key, value in report["parameters"].items())
    reached = "" if report["snr_db"] is None else f", SNR reached {report['snr_db']:.2f} dB"
    bank = f", {report['bank']}" if report["bank"] else ""
    return f"{report['output']}: {drawn or report['scenario']}{bank}{reached}, {report['clipped']} samples clipped"


PERTURB = Command(PerturbArguments, perturb)


@dataclass(frozen=True, kw_only=True)
class FrontArguments(Options):
    front: list[str] = option(
        [], "measure the clips before and after a front end or a chain, as in wpe+rnnoise", metavar="F", repeat=True
    )
    limit: int | None = limit_option()
    out: str | None = option(None, "file for the rows; rows in it are not measured again", metavar="FILE")
    json: bool = json_option("print the rows as JSON")


@dataclass(frozen=True, kw_only=True)
class QualityArguments(Options):
    configs: list[str] = configs_argument()
    data: str = option("srb", "built folder", metavar="FOLDER")
    pesq: bool = option(True, "add DNSMOS alone, which needs no clean clips")
    workers: int | None = option(None, "processes (default: one per core)", metavar="N", check=at_least(1))
    quiet: bool = quiet_option()
    fronts: FrontArguments = option_group(FrontArguments, "front ends (the configs stay unchanged)")


def quality(args: QualityArguments) -> None:
    data, progress = args.data, not args.quiet
    if not args.fronts.front:
        print(srb.add_quality(args.configs, data=data, pesq=args.pesq, workers=args.workers, progress=progress))
        return
    rows = srb.front_quality(
        args.fronts.front, args.configs, data=data, limit=args.fronts.limit, out=args.fronts.out, progress=progress
    )
    if args.fronts.json:
        print(json.dumps([row.as_json() for row in rows], indent=1))
    else:
        _show_quality(rows)


def _show_quality(rows: list) -> None:
    heads = (name.removeprefix("dnsmos_") for name in rows[0].measures)
    print(f"{'config':<28}{'front end':<18}" + "".join(f"{head:>10}" for head in heads))
    for row in rows:
        shown = "".join(f"{'-' if value is None else f'{value:.3f}':>10}" for value in row.measures.values())
        print(f"{row.config:<28}{row.front or '-':<18}{shown}")


QUALITY = Command(QualityArguments, quality)


@dataclass(frozen=True, kw_only=True)
class DifficultyArguments(Options):
    source: str | None = argument(
        "folder of built configs with quality columns (`srb quality`), or a CSV file with the columns dataset, "
        "augmentation, severity, metric, value",
        None,
    )
    difficulty_options: srb.DifficultyOptions = option_group(srb.DifficultyOptions)
    out: str | None = option(
        None, "write the table as CSV; `srb score --difficulty FILE` scores with it", metavar="FILE"
    )
    difficulty: str = option("paper-table3", "table to show, if there is no source", metavar="TABLE")
    explain: bool = option(False, "explain how the paper's table was made, and how srb-1 differs")


def difficulty(args: DifficultyArguments) -> None:
    from speech_robust_bench.core.progress import Console

    console = Console()
    if args.explain:
        lines, differences = srb.explain_difficulty()
        for line in lines:
            console.print(line)
        _show_difficulty(console, "srb-1 minus paper-table3", differences, sign="+")
        return
    table = srb.difficulty(args.source, table=args.difficulty, difficulty_options=args.difficulty_options)
    if args.out:
        Path(args.out).write_text(table.to_csv(), "utf-8")
        console.print(f"{len(table.rows)} difficulties written to {args.out}", highlight=False)
    else:
        _show_difficulty(console, f"difficulty, {table.name}", {key: row.avg for key, row in table.rows.items()})


def _show_difficulty(console, title: str, values: Mapping[str, float], sign: str = "") -> None:
    """A table with one scenario a line and its severities side by side; fits 80 columns."""
    from rich.table import Table

    grid: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        scenario, _, severity = key.partition("_sev")
        grid.setdefault(scenario, {})[severity] = value
    severities = sorted({s for row in grid.values() for s in row if s})
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("scenario")
    for head in ["no severity", *(f"sev {s}" for s in severities)]:
        shown.add_column(head, justify="right")
    for scenario, row in sorted(grid.items()):
        shown.add_row(scenario, *(f"{row[s]:{sign}.1f}" if s in row else "" for s in ["", *severities]))
    console.print(shown)


DIFFICULTY = Command(DifficultyArguments, difficulty)
