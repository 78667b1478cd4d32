"""`srb ls`: the scenario table, by category, or a small subset of it that keeps the ranking of recognisers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable

from srb.cli.options import add_scenarios_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--subset", metavar="NAME", help="`fast`: the few configs that rank recognisers as all do")
    parser.add_argument("category", nargs="*", help="only these categories or scenarios")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="for programs: one JSON list")
    form.add_argument("--markdown", action="store_true", help="for documents: one table")
    add_scenarios_option(parser)


def run(args: argparse.Namespace) -> None:
    from srb.builders.custom import load_table
    from srb.builders.errors import UserError
    from srb.builders.scenarios import CATEGORIES, nearest

    if args.subset:
        if args.category:
            raise UserError("--subset names its configs itself; leave the categories out")
        _print_subset(args.subset, args.json)
        return
    table = load_table(args.scenarios)
    for wanted in args.category:
        if wanted not in table and wanted not in CATEGORIES:
            raise UserError(f"no category or scenario '{wanted}'{nearest(wanted, [*CATEGORIES, *table])}")
    rows = [row for row in table.values() if not args.category or {row.name, row.category} & set(args.category)]
    if args.json:
        print(json.dumps([_as_json(row) for row in rows], indent=1))
    elif args.markdown:
        print(as_markdown(rows))
    else:
        _print_table(rows, CATEGORIES)


def _as_json(row) -> dict:
    return {
        "name": row.name,
        "category": row.category,
        "help": row.help,
        "maker": row.maker,
        "parameter": row.parameter,
        "severities": dict(zip(row.levels, row.severities, strict=True)) if row.graded else {},
        "bank": row.bank,
        "has_speech": row.has_speech,
        "source": row.source,
    }


def as_markdown(rows: Iterable) -> str:
    """The rows as a Markdown table."""
    lines = ["| scenario | category | what | parameter | severities | source |", "|---|---|---|---|---|---|"]
    for row in rows:
        values = ", ".join(str(value) for value in row.severities if value is not None)
        cells = (f"`{row.name}`", row.category, row.help, row.parameter or "", values, row.source)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _print_table(rows: list, categories: dict[str, str]) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for category, title in categories.items():
        chosen = [row for row in rows if row.category == category]
        if chosen:
            console.print(f"\n[bold]{category}[/]  {title}", soft_wrap=True)
        for row in chosen:
            values = " ".join(str(value) for value in (row.parameter, *row.severities) if value is not None)
            console.print(f"  {row.name:<18}{row.help:<28} {values}".rstrip(), soft_wrap=True, markup=False)
    configs = sum(len(row.levels) for row in rows)
    console.print(f"\n{len(rows)} scenarios, {configs} with their severities")


def _print_subset(name: str, as_json: bool) -> None:
    from srb.diagnosis.stability import load

    subset = load(name)
    if as_json:
        print(json.dumps(subset, indent=1))
        return
    for category, configs in subset["configs"].items():
        print(f"{category:<14}{' '.join(configs)}")
    found, other = subset["measured"], subset["measured"]["other_language"]
    print(f"\nSpearman with the whole ranking: {found['spearman']:.2f} ({found['models']} models; {found['source']}),")
    print(f"at least {found['spearman_least_without_one_model']:.2f} without any one model;")
    print(
        f"{other['language']}: {other['spearman']:.2f}, {other['spearman_without_accent']:.2f} if accents are left out."
    )
    for row in subset["simulated"]["rows"]:
        if row["clips"] == 200:
            print(f"simulated, these configs and 200 clips, deviation {row['deviation']:g}: {row['spearman_mean']:.2f}")
    names = " ".join(f"en_{config}" for configs in subset["configs"].values() for config in configs)
    print(f"\nsrb build en_clean {names}")
