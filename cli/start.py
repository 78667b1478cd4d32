"""The commands for the first hour: `srb demo` goes the whole way on what is installed, `srb ls` lists the scenarios.

The demo runs two recognisers, scores them and writes a report, offline. It gives the very commands that a user would,
shows them, and can be killed and repeated at any point as they can.
"""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, argument, option

CLIPS = 8  # the first of the demo corpus: six voices, as many women as men
SCENARIOS = (
    *("noise", "crosstalk", "gaussian", "rir", "echo", "lowpass", "gain", "tempo_up", "pitch_up", "tremolo"),
    *("opus", "packet_loss"),
)
SEVERITIES = (2, 4)
WITHOUT_SPEECH = ("silence", "noise_only")
# PocketSphinx with a bounded search: a demonstration need not wait for its last half point of accuracy.
MODELS = {"moonshine": "moonshine", "pocketsphinx": "pocketsphinx?fwdflat=no&maxhmmpf=3000&maxwpf=5"}


@dataclass(frozen=True, kw_only=True)
class DemoArguments(Options):
    out: str = option("srb-demo", "where everything goes", metavar="FOLDER")


def demo(args: DemoArguments) -> int:
    from speech_robust_bench.cli.main import main

    for command in demo_commands(Path(args.out)):
        print(f"$ srb {shlex.join(command)}", flush=True)
        if code := main(command):
            return code
    report = (Path(args.out) / "report.html").resolve()
    print(
        f"Open {report.as_uri()} in a browser. "
        "This is a demonstration, not a ranking: few clips, most of them synthetic voices."
    )
    return 0


def demo_commands(out: Path) -> list[list[str]]:
    """The commands of the demo, one after the other."""
    runs, report = str(out / "runs"), str(out / "report.html")
    corpus = ["--corpus", "en-demo"]
    configs = [f"en-demo_{name}" for name in ("clean", *WITHOUT_SPEECH)]
    configs += [f"en-demo_{name}_sev{severity}" for name in SCENARIOS for severity in SEVERITIES]
    folders = [str(out / "runs" / name) for name in MODELS]
    return [
        *(
            ["run", "--model", model, "--name", name, *corpus, "--limit", str(CLIPS), "--out", runs, *configs]
            for name, model in MODELS.items()
        ),
        ["score", *folders],
        ["table", *folders],
        ["report", *folders, *corpus, "--embed-audio", "6", "--out", report],
    ]


DEMO = Command(DemoArguments, demo)


LS_EPILOG = """A config names a scenario at a severity (en_noise_sev3) or at any value of its parameter, written
without the unit (en_noise_snr-5, en_lowpass_corner3400)."""
ALL = "*"  # instead of the name of a suite


@dataclass(frozen=True, kw_only=True)
class ListArguments(Options):
    names: list[str] = argument("only these categories or scenarios", [], metavar="NAME")
    suite: str | None = option(
        None,
        "show a suite, a part of the benchmark that stands for all of it; without NAME, list the suites",
        metavar="NAME",
        bare=ALL,
    )
    json: bool = option(False, "print one JSON list", one_of="form")
    markdown: bool = option(False, "print one Markdown table", one_of="form")
    scenario_file: str | None = option(
        None, "YAML file with scenarios of your own (audiomentations transforms)", metavar="FILE"
    )


def ls(args: ListArguments) -> None:
    if args.suite is not None:
        if args.names:
            raise UserError("--suite names its configs itself; leave the categories out")
        _print_suite(args.suite, args.json)
        return
    table = srb.scenarios(*args.names, scenario_file=args.scenario_file)
    if args.json:
        print(json.dumps(table.to_records(), indent=1))
    elif args.markdown:
        print(table.to_markdown())
    else:
        _print_table(table)


def _print_table(table: srb.ScenarioTable) -> None:
    from speech_robust_bench.core.progress import Console

    console, categories = Console(highlight=False), {row.category for row in table}
    for line in repr(table).splitlines():
        heading = line.split("  ", 1)
        if heading[0] in categories and len(heading) == 2:
            console.print(f"[bold]{heading[0]}[/]  {heading[1]}", soft_wrap=True)
        else:
            console.print(line, soft_wrap=True, markup=False)


def _print_suite(name: str, as_json: bool) -> None:
    if name == ALL:
        known = srb.suites()
        print(json.dumps(known, indent=1) if as_json else "\n".join(f"{key:<12}{known[key]}" for key in known))
        return
    suite = srb.suite(name)
    if as_json:
        print(json.dumps(suite.about.as_json(), indent=1))
        return
    about = suite.about
    if hasattr(about, "cells"):
        print("\n".join(f"{config}  {len(clips)} clips" for config, clips in about.cells.items()))
        return
    for category, configs in about.configs.items():
        print(f"{category:<14}{' '.join(configs)}")
    print()
    print("\n".join(about.summary or _summary_of_fast(about.measured, about.simulated)))
    corpus = "LANGUAGE-NAME=FOLDER ..." if about.corpora else "en=LibriSpeech"
    print(f"\nsrb run --suite {name} --model MODEL --corpus {corpus}")


def _summary_of_fast(measured: Any, simulated: Any) -> list[str]:
    other = measured["other_language"]
    origin = f"{measured['models']} models; {measured['source']}"
    return [
        f"Spearman with the whole ranking: {measured['spearman']:.2f} ({origin}),",
        f"at least {measured['spearman_least_without_one_model']:.2f} without any one model;",
        f"{other['language']}: {other['spearman']:.2f}, without accents {other['spearman_without_accent']:.2f}.",
        *(
            f"simulated, these configs and 200 clips, deviation {row['deviation']:g}: {row['spearman_mean']:.2f}"
            for row in simulated["rows"]
            if row["clips"] == 200
        ),
    ]


LS = Command(ListArguments, ls, LS_EPILOG)
