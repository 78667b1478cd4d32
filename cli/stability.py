"""`srb stability RUN RUN RUN ...`: how many configs and clips are enough to rank these recognisers."""

from __future__ import annotations

import argparse
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="three or more run folders on the same configs")
    parser.add_argument("--by", choices=("wer", "werd", "nwerd"), default="wer", help="what ranks them (default: wer)")
    parser.add_argument("--table", default="paper-table3", help="difficulty table of NWERD: a name, or a CSV file")
    parser.add_argument("--rho", type=float, default=0.95, help="the rank correlation that is enough (default: 0.95)")
    parser.add_argument("--trials", type=int, default=200, metavar="N", help="random parts of each size (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the random parts")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.extensions.sampling.rank_stability import (
        across_probe_settings,
        enough,
        of_random_parts,
        ranked_scores,
        sizes_of,
    )
    from speech_robust_bench.scoring.runs import open_run

    if len(args.runs) < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {len(args.runs)}")
    if args.trials < 1 or not 0 < args.rho <= 1:
        raise UserError("--trials is 1 or more, --rho above 0 and up to 1")
    runs = [open_run(folder) for folder in args.runs]
    ranked = ranked_scores(runs, args.by, args.table)
    how = {"trials": args.trials, "seed": args.seed}
    stabilities = {
        "configs": of_random_parts(
            lambda drawn: ranked.of_configs[:, drawn].mean(axis=1),
            len(ranked.configs),
            sizes_of(len(ranked.configs)),
            **how,
        ),
        "clips": of_random_parts(ranked.of_clips, len(ranked.clips), sizes_of(len(ranked.clips)), **how)
        if ranked.clips
        else [],
    }
    settings = across_probe_settings(runs, ranked.overall)
    if args.json:
        report: dict[str, Any] = {what: [asdict(row) for row in rows] for what, rows in stabilities.items()}
        report |= {"by": args.by, "settings": [asdict(row) for row in settings]}
        print(json.dumps(report, indent=1))
        return
    console = Console(highlight=False)
    for what, rows in stabilities.items():
        console.print(f"[bold]{what}[/]  by {args.by.upper()}")
        console.print(f"  Spearman with all {rows[-1].of}: mean, 19 of 20 parts reach, same order")
        for row in rows:
            console.print(f"  {row.size:>7}  {row.mean:.3f}  {row.low:.3f}  {100 * row.same_order:.0f} %")
        least = enough(rows, args.rho)
        console.print(f"  enough for {args.rho:g}: {least if least is not None else 'not even all but a few'}")
    for ranks in settings:
        rho = "-" if ranks.spearman is None else f"{ranks.spearman:.3f}"
        order = sorted(ranks.scores.items(), key=lambda item: item[1])
        told = ", ".join(f"{name} {value:.1f}" for name, value in order)
        console.print(f"{ranks.setting}: Spearman {rho} ({told})", markup=False)
