"""`srb gate`: exit code 1 when a new recogniser is significantly less robust than the one of a run folder."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.cli.options import add_corpus_options, add_normaliser_option, perturbed_configs, positive
from speech_robust_bench.core.errors import UserError

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import ConfigSource
    from speech_robust_bench.extensions.gate.result import GateOptions, GateResult
    from speech_robust_bench.scoring.aggregate import ConfigCounts
    from speech_robust_bench.scoring.runs import Run

EPILOG = """examples:
  srb gate --baseline runs/main --model hf:ORG/NEW
  srb gate --baseline runs/main --model cmd:./transcribe.sh --worst 0.02 --junit gate.xml --markdown gate.md
  srb gate --baseline runs/main --run runs/new 'en_noise_*'
The clips are those of the baseline, from where it was run on them, unless --data or --corpus says otherwise.
Exit code 1: significantly less robust; 0: not; 2: a mistake, or clips that failed.
docs/gate.md tells how it is tested."""

NARROWEST = 80  # columns of the table; a terminal that has fewer breaks the lines itself


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "configs",
        nargs="*",
        metavar="CONFIG",
        help="configs or patterns of the baseline; if none, all with perturbed or hard speech",
    )
    parser.add_argument("--baseline", required=True, metavar="RUN", help="the run folder of the model in use")
    new = parser.add_mutually_exclusive_group(required=True)
    new.add_argument("--model", metavar="M", help="the new model: adapter:target?option=value&...; docs/models.md")
    new.add_argument(
        "--run", dest="new_run", metavar="RUN", help="a run folder of the new model, instead of running it"
    )
    parser.add_argument(
        "--suite", metavar="NAME", help="instead of configs, a suite that the baseline was run on (srb ls --suite)"
    )
    parser.add_argument("--clips", type=positive, metavar="N", help="clips to transcribe at most (default: 1500)")
    parser.add_argument(
        "--worst", type=float, default=0.0, metavar="R", help="the rise of the noisy WER that is allowed; 0.05 is 5 %%"
    )
    parser.add_argument(
        "--detect", type=float, metavar="R", help="the rise that must not be missed (default: 10 %% above --worst)"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="share of false alarms allowed (default: 0.05)")
    add_normaliser_option(parser)
    parser.add_argument("--seed", type=int, default=0, help="another one plays other clips (default: 0)")
    parser.add_argument("--junit", type=Path, metavar="FILE", help="write the result as JUnit XML")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="write the result as Markdown")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--data", help="where the clips are, if not where the baseline was run on them")
    parser.add_argument("--out", default="gate", help="predictions go to OUT/<model> (default: gate)")
    parser.add_argument("--name", help="the model's name, and its folder in OUT (default: its own name)")
    parser.add_argument(
        "--env", action="append", default=[], metavar="REQ", help="run the model in an environment that has REQ"
    )
    parser.add_argument("--batch-size", type=positive, metavar="N", help="clips at a time (default: the adapter's)")
    parser.add_argument("--device", help="where the model runs, for adapters that have the choice: cpu, cuda, cuda:1")
    parser.add_argument("--yes", action="store_true", help="run a paid endpoint although it will cost more than 1 $")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    add_corpus_options(parser.add_argument_group("perturbing from another place than the baseline's"))


def run(args: argparse.Namespace) -> int:
    import json
    import time

    from speech_robust_bench.builders.suites import load
    from speech_robust_bench.core.files import write_atomically
    from speech_robust_bench.extensions.gate.result import CLIPS, GateOptions
    from speech_robust_bench.extensions.gate.run import baseline_counts, gate_run
    from speech_robust_bench.scoring.runs import open_run

    how = GateOptions(args.worst, args.detect, args.alpha, args.clips or CLIPS, args.normaliser, args.seed)
    baseline = open_run(args.baseline)
    counts = baseline_counts(baseline, args.configs, load(args.suite) if args.suite else None, how.normaliser)
    start = time.monotonic()
    if args.new_run:
        result = gate_run(open_run(args.new_run), baseline, counts, how)
    else:
        result = _run_model(args, baseline, counts, how)
    seconds = time.monotonic() - start
    if args.junit:
        write_atomically(args.junit, result.junit(seconds))
    if args.markdown:
        write_atomically(args.markdown, result.markdown())
    if args.json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        _show(result)
    return 0 if result.passed else 1


def _run_model(args: argparse.Namespace, baseline: Run, counts: list[ConfigCounts], how: GateOptions) -> GateResult:
    from contextlib import ExitStack, closing

    from speech_robust_bench.extensions.gate.run import data_of, gate_model
    from speech_robust_bench.models.interface import check_spec, parse_spec
    from speech_robust_bench.models.runner import RunJob

    if args.model.startswith("@"):
        raise UserError("the gate takes one model, not a file of them")
    spec = parse_spec(args.model)
    check_spec(spec)
    data: ConfigSource
    with ExitStack() as open_things:
        if args.corpus:
            perturbed = open_things.enter_context(closing(perturbed_configs(args)))
            data, where = perturbed, perturbed.where
        else:
            data, where = open_things.enter_context(data_of(baseline, args.data))
        options = RunJob(
            spec=spec,
            folder=Path(args.out) / (args.name or spec.folder),
            where=where,
            name=args.name,
            environment=tuple(args.env),
            device=args.device,
            batch_size=args.batch_size,
        )
        return gate_model(options, baseline, counts, data, how, pay=args.yes, quiet=args.quiet or args.json)


def _show(result: GateResult) -> None:
    from rich.table import Table
    from rich.text import Text

    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.escape import for_terminal

    console = Console()
    console.width = max(console.width, NARROWEST)
    title = f"{for_terminal(result.model)} against {for_terminal(result.baseline)}, noisy WER"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for place, cell in enumerate(result.head()):
        how: dict[str, Any] = {"no_wrap": True} if place else {"overflow": "fold"}
        table.add_column(cell.replace(" WER", "\nWER"), justify="right" if 0 < place < 6 else "left", **how)
    for line in result.rows():
        table.add_row(*line)
    console.print(table)
    console.print(f"{'passed' if result.passed else 'FAILED'}: {result.summary()}", highlight=False, soft_wrap=True)
