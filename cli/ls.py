"""`srb ls`: the scenario table, by category, or a small subset of it that keeps the ranking of recognisers."""

from __future__ import annotations

import argparse
import json

from srb.cli.options import add_scenarios_option
from srb.core.categories import CATEGORIES


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = (
        "A config names a scenario at a severity (en_noise_sev3) or at any value of its parameter, written without the "
        "unit (en_noise_snr-5, en_lowpass_corner3400)."
    )
    parser.add_argument("--subset", metavar="NAME", help="`fast`: the few configs that rank recognisers as all do")
    parser.add_argument("category", nargs="*", help="only these categories or scenarios")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs: one JSON list")
    form.add_argument("--markdown", action="store_true", help="for documents: one table")
    add_scenarios_option(parser)


def run(args: argparse.Namespace) -> None:
    from srb.builders.custom import load_table
    from srb.builders.scenario_listing import as_markdown, as_record
    from srb.builders.scenarios import choose
    from srb.core.errors import UserError

    if args.subset:
        if args.category:
            raise UserError("--subset names its configs itself; leave the categories out")
        _print_subset(args.subset, args.json)
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
    from srb.builders.scenario_listing import as_text
    from srb.core.console import Console

    console = Console(highlight=False)
    for line in as_text(rows).splitlines():
        heading = line.split("  ", 1)
        if heading[0] in CATEGORIES and len(heading) == 2:
            console.print(f"[bold]{heading[0]}[/]  {heading[1]}", soft_wrap=True)
        else:
            console.print(line, soft_wrap=True, markup=False)


def _print_subset(name: str, as_json: bool) -> None:
    from srb.diagnosis.rank_stability import load

    subset = load(name)
    if as_json:
        print(json.dumps(subset, indent=1))
        return
    for category, configs in subset["configs"].items():
        print(f"{category:<14}{' '.join(configs)}")
    measured, other = subset["measured"], subset["measured"]["other_language"]
    origin = f"{measured['models']} models; {measured['source']}"
    print(f"\nSpearman with the whole ranking: {measured['spearman']:.2f} ({origin}),")
    print(f"at least {measured['spearman_least_without_one_model']:.2f} without any one model;")
    print(
        f"{other['language']}: {other['spearman']:.2f}, {other['spearman_without_accent']:.2f} if accents are left out."
    )
    for row in subset["simulated"]["rows"]:
        if row["clips"] == 200:
            print(f"simulated, these configs and 200 clips, deviation {row['deviation']:g}: {row['spearman_mean']:.2f}")
    names = " ".join(f"en_{config}" for configs in subset["configs"].values() for config in configs)
    print(f"\nsrb build en_clean {names}")
