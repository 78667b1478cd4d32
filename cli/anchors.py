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
    parser.add_argument("--suite", required=True, type=Path, metavar="FILE", help="the JSON file of the anchors")
    parser.add_argument(
        "--predict", metavar="RUN", help="say what all clips would say of this run, which has only the anchors"
    )
    choice = parser.add_argument_group("choosing anchors (without --predict)")
    choice.add_argument("--clips", type=int, metavar="N", help="perturbed clips to choose, beside all clean ones (300)")
    choice.add_argument("--clean", metavar="CONFIG", help="the clean config of the corpus, where the runs have several")
    choice.add_argument("--normaliser", help="how transcripts are normalised, as in srb score (srb-paper-1)")
    choice.add_argument("--seed", type=int, help="another seed draws other clips (0)")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")


def run(args: argparse.Namespace) -> None:
    if args.predict:
        _predict(args)
    else:
        _choose(args)


def _choose(args: argparse.Namespace) -> None:
    import json

    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.extensions.sampling import anchors
    from speech_robust_bench.scoring.runs import open_run

    runs, clips = [open_run(folder) for folder in args.runs], 300 if args.clips is None else args.clips
    with progress(quiet=args.json) as bar:
        task = bar.add_task("reading runs, predicting each from the others", total=len(runs) + anchors.DRAWS)
        off = anchors.choose(
            *(runs, args.suite, clips),
            normaliser=args.normaliser or "srb-paper-1",
            seed=args.seed or 0,
            clean=args.clean,
            advance=lambda: bar.advance(task),
        )
    mean = sum(off.values()) / len(off)
    if args.json:
        print(json.dumps({"clips": clips, "mean_error": mean, "of_each": off}, indent=1))
        return
    console = Console(highlight=False)
    console.print(f"{args.suite}: {clips} perturbed clips, to be run beside all of clean speech", markup=False)
    console.print("How far off such a prediction is: each run predicted from the others,")
    console.print(f"points of average NWERD, {mean:.1f} in the mean:")
    width = max(map(len, off))
    for model, error in off.items():
        console.print(f"  {model:<{width}} {error:5.1f}", markup=False)


def _predict(args: argparse.Namespace) -> None:
    import json

    from speech_robust_bench.builders.suites import load
    from speech_robust_bench.core.categories import AVERAGED
    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.extensions.sampling import anchors
    from speech_robust_bench.scoring.runs import open_run

    for option in ("clips", "clean", "normaliser", "seed"):
        if getattr(args, option) is not None:
            raise UserError(f"--{option} is of choosing anchors; --predict takes everything from {args.suite}")
    runs, about = [open_run(folder) for folder in args.runs], load(str(args.suite)).about
    with progress(quiet=args.json) as bar:
        task = bar.add_task("reading runs", total=len(runs) + 1)
        rows = anchors.predict(open_run(args.predict), runs, about, lambda: bar.advance(task))
    if args.json:
        scores = {name: {"nwerd": value, "standard_error": error} for name, (value, error) in rows.items()}
        print(json.dumps(scores, indent=1))
        return
    console = Console(highlight=False)
    console.print(f"NWERD of all clips of {len(about['configs'])} configs, predicted, with 95 % intervals:")
    for name, (value, error) in rows.items():
        low, high = value - anchors.Z * error, value + anchors.Z * error
        console.print(f"  {name:<12} {value:6.1f}  ({low:.1f} to {high:.1f})")
    if missing := [category for category in AVERAGED if category not in rows]:
        console.print(f"not in this average: {', '.join(missing)}")
    console.print("the intervals are of the clips that were not run; other speech would vary more")
