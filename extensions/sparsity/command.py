"""`srb sparsity`: how many directions around a clip are adversarial?"""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    BUILT,
    Command,
    Corpora,
    corpus_option,
    json_option,
    limit_option,
    model_option,
    quiet_option,
)
from speech_robust_bench.core.options import Options, argument, option, option_group
from speech_robust_bench.extensions.sparsity.api import SparsityOptions
from speech_robust_bench.extensions.sparsity.result import HEADS, rows_of

EPILOG = """examples:
  srb sparsity en_clean --model hf:facebook/wav2vec2-base-960h --limit 20
  srb table runs/wav2vec2-base-960h --sparsity
If the command is interrupted, repeat it to continue."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    config: str = argument("clean config", metavar="CONFIG")
    model: str = model_option("recogniser with gradients, such as hf:openai/whisper-tiny.en")
    data: str | None = option(None, f"{BUILT} (default: srb)")
    corpus: Corpora = corpus_option()
    out: str | None = option(None, "output folder (default: the model's run folder)", metavar="FOLDER")
    limit: int | None = limit_option("only the first N clips")
    sparsity_options: SparsityOptions = option_group(SparsityOptions)
    json: bool = json_option()
    quiet: bool = quiet_option()


def run(args: Arguments) -> None:
    found = srb.sparsity(
        args.model,
        args.config,
        data=args.data,
        corpus=args.corpus,
        limit=args.limit,
        out=args.out,
        sparsity_options=args.sparsity_options,
        progress=not (args.quiet or args.json),
    )
    if args.json:
        print(json.dumps(found.as_json(), indent=1))
        return
    from rich.table import Table

    from speech_robust_bench.core.progress import Console

    table = Table(title=f"{found.model}, {found.config}", title_justify="left", box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head)
    for row in rows_of(found, None):
        table.add_row(*row)
    Console(highlight=False).print(table)


COMMAND = Command(Arguments, run, EPILOG)
