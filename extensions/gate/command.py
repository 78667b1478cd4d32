"""`srb gate`: exit code 1 when a new recogniser is significantly less robust than the one of a run folder."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    BUILT,
    Command,
    Corpora,
    configs_argument,
    corpus_option,
    json_option,
    quiet_option,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, option, option_group
from speech_robust_bench.extensions.gate.run import GateOptions, GateResult

EPILOG = """examples:
  srb gate --baseline runs/main --model hf:ORG/NEW
  srb gate --baseline runs/main --model cmd:./transcribe.sh --worst 0.02 --junit gate.xml --markdown gate.md
  srb gate --baseline runs/main --run runs/new 'en_noise_*'
The clips are those of the baseline, from where it was run on them, unless --data or --corpus is given.
Exit code 0: not significantly less robust; 1: significantly less robust; 2: invalid arguments, or clips that failed.
docs/concepts/gate.md explains the test."""

NARROWEST = 80  # columns of the table; a terminal that has fewer breaks the lines itself


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument(
        "configs or patterns of the baseline (default: all with perturbed or hard speech)"
    )
    baseline: str = option(help="run folder of the model in use", metavar="RUN")
    model: str | None = option(None, "the new model, adapter:target?option=value&...", metavar="M", one_of="model")
    run: str | None = option(None, "run folder of the new model, instead of running it", metavar="RUN", one_of="model")
    gate_options: GateOptions = option_group(GateOptions)
    junit: Path | None = option(None, "write the result as JUnit XML", metavar="FILE")
    markdown: Path | None = option(None, "write the result as Markdown", metavar="FILE")
    json: bool = json_option()
    data: str | None = option(None, f"{BUILT} (default: where the baseline was run)")
    out: str = option("gate", "folder for predictions, OUT/<model>", metavar="OUT")
    model_options: srb.ModelOptions = option_group(srb.ModelOptions)
    quiet: bool = quiet_option(advanced=True)
    corpus: Corpora = corpus_option(advanced=True)
    data_options: srb.DataOptions = option_group(
        srb.DataOptions, "with --corpus, to use other data than the baseline's", advanced=True
    )


def run(args: Arguments) -> int:
    if bool(args.model) == bool(args.run):
        raise UserError("name the new model with --model, or a run of it with --run")
    start = time.monotonic()
    result = srb.gate(
        args.model or srb.read_run(str(args.run)),
        args.baseline,
        args.configs,
        corpus=args.corpus,
        data=args.data,
        out=args.model and srb.run_folder(args.model, args.out, args.model_options),
        gate_options=args.gate_options,
        data_options=args.data_options,
        model_options=args.model_options,
        progress=not (args.quiet or args.json),
    )
    result.write(junit=args.junit, markdown=args.markdown, seconds=time.monotonic() - start)
    if args.json:
        print(json.dumps(result.to_json(), indent=2))
    else:
        show(result)
    return 0 if result.passed else 1


def show(result: GateResult) -> None:
    """Print the table of the parts, and the verdict."""
    from rich.table import Table
    from rich.text import Text

    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.core.progress import Console

    console = Console()
    console.width = max(console.width, NARROWEST)
    title = f"{for_terminal(result.model)} against {for_terminal(result.baseline)}, noisy WER"
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    head = result.head()
    for place, cell in enumerate(head):
        inside = 0 < place < len(head) - 1
        justify: Literal["left", "right"] = "right" if inside else "left"
        overflow: Literal["fold", "ellipsis"] = "ellipsis" if place else "fold"
        table.add_column(cell.replace(" WER", "\nWER"), justify=justify, no_wrap=bool(place), overflow=overflow)
    for line in result.rows():
        table.add_row(*line)
    console.print(table)
    console.print(f"{'passed' if result.passed else 'FAILED'}: {result.summary()}", highlight=False, soft_wrap=True)


COMMAND = Command(Arguments, run, EPILOG)
