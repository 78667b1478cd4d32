"""`srb stability RUN RUN RUN ...`: how many configs and clips are enough to rank these recognisers.

`srb anchors RUN RUN RUN ...`: the few clips that tell most about the next recogniser, and what they say of it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, json_option, runs_argument
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, option, option_group
from speech_robust_bench.extensions.sampling.anchors_api import AnchorOptions
from speech_robust_bench.extensions.sampling.stability import StabilityOptions


@dataclass(frozen=True, kw_only=True)
class StabilityArguments(Options):
    runs: list[str] = runs_argument("three or more run folders on the same configs")
    stability_options: StabilityOptions = option_group(StabilityOptions)
    json: bool = json_option()


def stability(args: StabilityArguments) -> None:
    from rich.table import Table

    from speech_robust_bench.core.progress import Console

    found, options = srb.stability(args.runs, args.stability_options), args.stability_options
    if args.json:
        print(json.dumps(found.to_json(), indent=1))
        return
    console = Console(highlight=False)
    who = f" of {found.speakers} speakers" if found.speakers else ""
    console.print(f"{len(args.runs)} recognisers, {found.transcripts} transcripts{who} each\n")
    for what, rows in found.parts.items():
        title = f"Spearman's rho with the ranking by {options.measure.upper()} on all {rows[-1].of} {what}"
        table = Table(title=title, title_justify="left", box=None, pad_edge=False)
        for head in (what, "mean rho", "rho in 95 % of the subsets", "same order"):
            table.add_column(head, justify="right")
        for row in rows:
            table.add_row(str(row.size), f"{row.mean:.3f}", f"{row.low:.3f}", f"{100 * row.same_order:.0f} %")
        console.print(table)
        least = found.enough(what)
        console.print(f"{what} needed for a rho of {options.rho:g}: {least if least is not None else 'more'}\n")
    for ranks in found.settings:
        rho = "-" if ranks.spearman is None else f"{ranks.spearman:.3f}"
        order = sorted(ranks.scores.items(), key=lambda item: item[1])
        told = ", ".join(f"{name} {value:.1f}" for name, value in order)
        console.print(f"{ranks.setting}: Spearman {rho} ({told})", markup=False)


EPILOG = """examples:
  srb anchors runs/a runs/b runs/c --clips 600 --suite anchors.json      # choose: writes the file, says its error
  srb run --model NEW --suite anchors.json --data srb
  srb anchors runs/a runs/b runs/c --suite anchors.json --predict runs/new
"""


@dataclass(frozen=True, kw_only=True)
class AnchorArguments(Options):
    runs: list[str] = runs_argument("three or more runs on all clips of the same configs")
    suite: str = option(help="JSON file of the anchors", metavar="FILE")
    predict: str | None = option(
        None, "predict the score on all clips of this run, which has only the anchors", metavar="RUN"
    )
    anchor_options: AnchorOptions = option_group(AnchorOptions, "choosing anchors (without --predict)")
    json: bool = json_option()


def anchors(args: AnchorArguments) -> None:
    if args.predict is None:
        _choose(args)
        return
    if args.anchor_options != AnchorOptions():
        raise UserError(f"--predict takes the clips and how they are scored from {args.suite}; leave other options out")
    _predict(args.predict, args)


def _choose(args: AnchorArguments) -> None:
    from speech_robust_bench.core.progress import Console

    clips = args.anchor_options.clips
    off = srb.choose_anchors(args.runs, args.suite, args.anchor_options, progress=not args.json)
    mean = sum(off.values()) / len(off)
    if args.json:
        print(json.dumps({"clips": clips, "mean_error": mean, "of_each": off}, indent=1))
        return
    console = Console(highlight=False)
    console.print(f"{args.suite}: {clips} perturbed clips, to be run beside all of clean speech", markup=False)
    console.print(f"How far off such a prediction is: each of {len(off)} runs predicted from the others,")
    console.print(f"points of average NWERD, {mean:.1f} in the mean:")
    width = max(map(len, off))
    for model, error in off.items():
        console.print(f"  {model:<{width}} {error:5.1f}", markup=False)


def _predict(run: str, args: AnchorArguments) -> None:
    from speech_robust_bench.core.progress import Console

    prediction = srb.predict_from_anchors(run, args.runs, args.suite, progress=not args.json)
    if args.json:
        rows = {name: {"nwerd": value, "standard_error": error} for name, (value, error) in prediction.scores.items()}
        sizes = {name: getattr(prediction, name) for name in ("configs", "perturbed_clips", "clean_clips", "speakers")}
        print(json.dumps({**rows, "from": sizes}, indent=1))
        return
    console = Console(highlight=False)
    console.print(f"NWERD of all clips of {prediction.configs} configs, predicted, with 95 % intervals:")
    for name, (value, _) in prediction.scores.items():
        low, high = prediction.interval(name)
        console.print(f"  {name:<12} {value:6.1f}  ({low:.1f} to {high:.1f})")
    if prediction.missing:
        console.print(f"not in this average: {', '.join(prediction.missing)}")
    who = f" of {prediction.speakers} speakers" if prediction.speakers else ""
    console.print(
        f"from {prediction.perturbed_clips} perturbed clips, and {prediction.clean_clips} clean ones{who}; "
        "the intervals are of the clips that were not run; other speech would vary more"
    )


STABILITY = Command(StabilityArguments, stability)
ANCHORS = Command(AnchorArguments, anchors, EPILOG)
