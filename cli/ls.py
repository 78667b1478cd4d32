"""`srb ls`: the scenario table, by category, or a suite: a part of the benchmark that stands for all of it."""

from __future__ import annotations

import argparse
import json
from typing import Any

from speech_robust_bench.cli.options import add_scenarios_option
from speech_robust_bench.core.categories import CATEGORIES


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "A config names a scenario at a severity (en_noise_sev3) or at any value of its parameter, written without the "
        "unit (en_noise_snr-5, en_lowpass_corner3400)."
    )
    parser.add_argument(
        "--suite",
        "--subset",
        nargs="?",
        const="",
        metavar="NAME",
        help="a part of the benchmark that stands for all of it; without NAME, which there are",
    )
    parser.add_argument("category", nargs="*", help="only these categories or scenarios")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs: one JSON list")
    form.add_argument("--markdown", action="store_true", help="for documents: one table")
    add_scenarios_option(parser)


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.builders.custom import load_table
    from speech_robust_bench.builders.scenario_listing import as_markdown, as_record
    from speech_robust_bench.builders.scenarios import choose
    from speech_robust_bench.core.errors import UserError

    if args.suite is not None:
        if args.category:
            raise UserError("--suite names its configs itself; leave the categories out")
        _print_suite(args.suite, args.json)
        return
    table = load_table(args.scenarios)
    rows = choose(args.category, table)
    if args.json:
        print(json.dumps([as_record(row) for row in rows], indent=1))
    elif args.markdown:
        print(as_markdown(rows))
    else:
        _print_table(rows)


def _print_table(rows: list) -> None:
    from speech_robust_bench.builders.scenario_listing import as_text
    from speech_robust_bench.core.console import Console

    console = Console(highlight=False)
    for line in as_text(rows).splitlines():
        heading = line.split("  ", 1)
        if heading[0] in CATEGORIES and len(heading) == 2:
            console.print(f"[bold]{heading[0]}[/]  {heading[1]}", soft_wrap=True)
        else:
            console.print(line, soft_wrap=True, markup=False)


def _print_suite(name: str, as_json: bool) -> None:
    from speech_robust_bench.builders.suites import SUITES, load

    if not name:
        print(json.dumps(SUITES, indent=1) if as_json else "\n".join(f"{key:<12}{SUITES[key]}" for key in SUITES))
        return
    suite = load(name)
    if as_json:
        print(json.dumps(suite.about, indent=1))
        return
    if "cells" in suite.about:
        print("\n".join(f"{config}  {len(clips)} clips" for config, clips in suite.about["cells"].items()))
        return
    for category, configs in suite.about["configs"].items():
        print(f"{category:<14}{' '.join(configs)}")
    print()
    print("\n".join(suite.about["summary"] if "summary" in suite.about else _summary_of_fast(suite.about)))
    corpus = "LANGUAGE-NAME=FOLDER ..." if "corpora" in suite.about else "en=LibriSpeech"
    print(f"\nsrb run --suite {name} --model MODEL --corpus {corpus}")


def _summary_of_fast(about: dict[str, Any]) -> list[str]:
    measured, other = about["measured"], about["measured"]["other_language"]
    origin = f"{measured['models']} models; {measured['source']}"
    return [
        f"Spearman with the whole ranking: {measured['spearman']:.2f} ({origin}),",
        f"at least {measured['spearman_least_without_one_model']:.2f} without any one model;",
        f"{other['language']}: {other['spearman']:.2f}, without accents {other['spearman_without_accent']:.2f}.",
        *(
            f"simulated, these configs and 200 clips, deviation {row['deviation']:g}: {row['spearman_mean']:.2f}"
            for row in about["simulated"]["rows"]
            if row["clips"] == 200
        ),
    ]
