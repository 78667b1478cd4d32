"""`srb stability RUN RUN RUN ...`: how many configs and clips are enough to rank these recognisers."""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, json_option, runs_argument
from speech_robust_bench.core.options import Options, option_group
from speech_robust_bench.extensions.sampling.stability_api import StabilityOptions


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    runs: list[str] = runs_argument("three or more run folders on the same configs")
    stability_options: StabilityOptions = option_group(StabilityOptions)
    json: bool = json_option()


def run(args: Arguments) -> None:
    from rich.table import Table

    from speech_robust_bench.core.progress import Console

    stability, options = srb.stability(args.runs, args.stability_options), args.stability_options
    if args.json:
        print(json.dumps(stability.to_json(), indent=1))
        return
    console = Console(highlight=False)
    who = f" of {stability.speakers} speakers" if stability.speakers else ""
    console.print(f"{len(args.runs)} recognisers, {stability.transcripts} transcripts{who} each\n")
    for what, rows in stability.parts.items():
        title = f"Spearman's rho with the ranking by {options.measure.upper()} on all {rows[-1].of} {what}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for head in (what, "mean rho", "rho in 95 % of the subsets", "same order"):
            table.add_column(head, justify="right")
        for row in rows:
            table.add_row(str(row.size), f"{row.mean:.3f}", f"{row.low:.3f}", f"{100 * row.same_order:.0f} %")
        console.print(table)
        least = stability.enough(what)
        console.print(f"{what} needed for a rho of {options.rho:g}: {least if least is not None else 'more'}\n")
    for ranks in stability.settings:
        rho = "-" if ranks.spearman is None else f"{ranks.spearman:.3f}"
        order = sorted(ranks.scores.items(), key=lambda item: item[1])
        told = ", ".join(f"{name} {value:.1f}" for name, value in order)
        console.print(f"{ranks.setting}: Spearman {rho} ({told})", markup=False)


COMMAND = Command(Arguments, run)
