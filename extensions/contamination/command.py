"""`srb contamination`: was this speech in a model's training data?"""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, Corpora, corpus_option, json_option, model_option, quiet_option
from speech_robust_bench.core.options import Options, option, option_group
from speech_robust_bench.extensions.contamination.api import ContaminationOptions
from speech_robust_bench.extensions.contamination.result import HEADS, Contamination, conclusion, lines

EPILOG = """examples:
  srb contamination --model hf:openai/whisper-tiny.en --suspects en=LibriSpeech/test-clean --fresh en-mine=recordings
  srb contamination --model hf:A --reference hf:B --suspects en=LibriSpeech --fresh en-mine=recordings --limit 200
If the command is interrupted, repeat it to continue."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    model: str = model_option()
    suspects: Corpora = corpus_option("speech that may be in its training data")
    fresh: Corpora = corpus_option("speech that cannot be, of the same kind if possible")
    reference: str | None = option(None, "a model that has seen neither, for comparison", metavar="M")
    out: str | None = option(None, "output folder (default: the model's run folder)", metavar="FOLDER")
    contamination_options: ContaminationOptions = option_group(ContaminationOptions)
    json: bool = json_option()
    quiet: bool = quiet_option()


def run(args: Arguments) -> None:
    result = srb.contamination(
        args.model,
        args.suspects,
        args.fresh,
        reference=args.reference,
        out=args.out,
        contamination_options=args.contamination_options,
        progress=not (args.quiet or args.json),
    )
    print(json.dumps(result.as_json(), indent=1)) if args.json else show(result)


def show(result: Contamination) -> None:
    """Print the table, and what may be concluded."""
    from rich.table import Table

    from speech_robust_bench.core.progress import Console

    console = Console(highlight=False)
    table = Table(
        title=f"{result.model}: suspects against fresh speech", title_justify="left", box=None, pad_edge=False
    )
    for head in HEADS:
        table.add_column(head)
    for line in lines(result):
        table.add_row(*line)
    console.print(table)
    if result.why:
        console.print(f"No losses were used: {result.why}", markup=False, soft_wrap=True)
    left_out = result.suspects.left_out + result.fresh.left_out
    if left_out:
        console.print(f"{left_out} clips were left out: no transcript, too long, or not to be written by the model")
    console.print(conclusion(result), markup=False, soft_wrap=True)


COMMAND = Command(Arguments, run, EPILOG)
