"""`srb stability RUN RUN RUN ...`: how many configs and clips are enough to rank these recognisers."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="three or more run folders on the same configs")
    parser.add_argument("--rho", type=float, default=0.95, help="the rank correlation that is enough (default: 0.95)")
    parser.add_argument("--trials", type=int, default=200, metavar="N", help="random parts of each size (default: 200)")
    parser.add_argument("--seed", type=int, default=0, help="of the random parts")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    import numpy as np

    from srb.core.console import Console
    from srb.core.errors import UserError
    from srb.diagnosis.rank_stability import enough, matrix, of_parts, sizes_of
    from srb.metrics.runs import open_run

    if len(args.runs) < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {len(args.runs)}")
    if args.trials < 1 or not 0 < args.rho <= 1:
        raise UserError("--trials is 1 or more, --rho above 0 and up to 1")
    runs = [open_run(folder) for folder in args.runs]
    configs, rates, counts = matrix(runs)
    how = {"trials": args.trials, "seed": args.seed}
    stabilities = {"configs": of_parts(rates, np.ones_like(rates), sizes_of(len(configs)), **how)}
    # Clips: a part has the same clips in every config, which is what `--limit` gives.
    clips = sorted(set.intersection(*(set(c.ids) for c in counts[0])))
    place = {clip: i for i, clip in enumerate(clips)}
    errors, lengths = np.zeros((2, len(runs), len(clips)))
    for model, row in enumerate(counts):
        for config in row:
            there = [(j, place[clip]) for j, clip in enumerate(config.ids) if clip in place]
            of, at = np.array(there).reshape(-1, 2).T
            np.add.at(errors[model], at, config.counts.errors[of])
            np.add.at(lengths[model], at, config.counts.lengths[of])
    stabilities["clips"] = of_parts(errors, lengths, sizes_of(len(clips)), **how)
    if args.json:
        print(json.dumps({what: [asdict(one) for one in rows] for what, rows in stabilities.items()}, indent=1))
        return
    console = Console(highlight=False)
    for what, rows in stabilities.items():
        console.print(f"[bold]{what}[/]  Spearman with all {rows[-1].of}: mean, 19 of 20 parts reach, same order")
        for one in rows:
            console.print(f"  {one.size:>7}  {one.mean:.3f}  {one.low:.3f}  {100 * one.same_order:.0f} %")
        least = enough(rows, args.rho)
        console.print(f"  enough for {args.rho:g}: {least if least is not None else 'not even all but a few'}")
