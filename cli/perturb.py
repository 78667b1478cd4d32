"""`srb perturb`: one audio file under one scenario, or under all of them with a page to look at and listen to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import json_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, argument, option, option_group


def _severity(number: float) -> float:
    return number if number % 1 else int(number)


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    input: str = argument("audio file, any rate and number of channels", metavar="IN")
    output: str | None = argument("file to write, 16 kHz mono: .wav, .flac, .ogg or .mp3", None, metavar="OUT")
    scenario: str | None = option(None, "name of a scenario (`srb ls` lists them)", metavar="NAME")
    severity: float = option(0, "1 is the mildest; 2.5 lies between 2 and 3", metavar="N", parse=_severity)
    value: float | None = option(None, "any value of the scenario's parameter, instead of a severity", metavar="X")
    second: str | None = option(None, "clip of the second talker, for the scenario overlap", metavar="FILE")
    all: str | None = option(None, "write every scenario and severity to DIR, with DIR/index.html", metavar="DIR")
    seed: str = option("", "any text; another one draws another noise, room, ...", metavar="TEXT")
    json: bool = json_option()
    scenario_options: srb.ScenarioOptions = option_group(srb.ScenarioOptions)


def run(args: Arguments) -> None:
    if bool(args.all) == bool(args.output) or bool(args.output) != bool(args.scenario):
        raise UserError("give either OUT and --scenario, or --all DIR")
    how: dict[str, Any] = {"seed": args.seed, "scenario_options": args.scenario_options}
    if args.all:
        reports = srb.perturb_all(args.input, args.all, **how)
        print(json.dumps(reports) if args.json else f"{len(reports)} clips; open {Path(args.all) / 'index.html'}")
        return
    report = srb.perturb_file(
        args.input, str(args.output), str(args.scenario), args.severity, value=args.value, second=args.second, **how
    )
    print(json.dumps(report) if args.json else _line(report))


def _line(report: dict[str, Any]) -> str:
    drawn = ", ".join(f"{key} {value}" for key, value in report["parameters"].items())
    reached = "" if report["snr_db"] is None else f", SNR reached {report['snr_db']:.2f} dB"
    bank = f", {report['bank']}" if report["bank"] else ""
    return f"{report['output']}: {drawn or report['scenario']}{bank}{reached}, {report['clipped']} samples clipped"


COMMAND = Command(Arguments, run)
