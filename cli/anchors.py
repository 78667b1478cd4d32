"""`srb anchors RUN RUN RUN ...`: the few clips that tell most about the next recogniser, and what they say of it."""

from __future__ import annotations

import argparse
from pathlib import Path

EPILOG = """examples:
  srb anchors runs/a runs/b runs/c --clips 600 --suite anchors.json      # choose: writes the file, says its error
  srb run --model NEW --suite anchors.json --data srb
  srb anchors runs/a runs/b runs/c --suite anchors.json --predict runs/new
"""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument("runs", nargs="+", metavar="RUN", help="three or more runs on all clips of the same configs")
    parser.add_argument("--suite", required=True, type=Path, metavar="FILE", help="the anchors, a JSON file")
    parser.add_argument(
        "--clips", type=int, default=300, metavar="N", help="of perturbed speech, beside all of clean speech (300)"
    )
    parser.add_argument("--clean", metavar="CONFIG", help="which corpus, by its clean config, where there are several")
    parser.add_argument(
        "--predict", metavar="RUN", help="what the whole benchmark would say of this run on the anchors"
    )
    parser.add_argument("--normaliser", default="srb-paper-1", help="of the transcripts, as in srb score")
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--json", action="store_true", help="for programs")


def run(args: argparse.Namespace) -> None:
    import json

    from srb.core.console import Console
    from srb.diagnosis import anchors
    from srb.diagnosis.suites import load
    from srb.metrics.runs import open_run

    runs, console = [open_run(folder) for folder in args.runs], Console(highlight=False)
    if args.predict:
        rows = anchors.predict(open_run(args.predict), runs, load(str(args.suite)).about)
        if args.json:
            scores = {name: {"nwerd": value, "standard_error": error} for name, (value, error) in rows.items()}
            print(json.dumps(scores, indent=1))
            return
        console.print("NWERD of the whole benchmark, from the anchors, with 95 % intervals:")
        for name, (value, error) in rows.items():
            low, high = value - anchors.Z * error, value + anchors.Z * error
            console.print(f"  {name:<12} {value:6.1f}  ({low:.1f} to {high:.1f})")
        return
    how = {"normaliser": args.normaliser, "seed": args.seed, "clean": args.clean}
    off = anchors.choose(runs, args.suite, args.clips, **how)
    mean = sum(off.values()) / len(off)
    if args.json:
        print(json.dumps({"clips": args.clips, "mean_error": mean, "of_each": off}, indent=1))
        return
    console.print(f"{args.suite}: {args.clips} clips, to be run beside all of clean speech", markup=False)
    console.print(f"from the others and its own anchors, the average NWERD of a run is off by {mean:.1f} points:")
    for model, error in off.items():
        console.print(f"  {model}  {error:.1f}", markup=False)
