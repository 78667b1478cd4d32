"""`srb biasing`: recall gained and false alarms caused by a list of terms."""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    BUILT,
    Command,
    Corpora,
    configs_argument,
    corpus_option,
    json_option,
    limit_option,
    quiet_option,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, option, option_group
from speech_robust_bench.extensions.biasing.effect import FIGURES, BiasingOptions, BiasingResult, Change, biasing

EPILOG = """examples:
  srb biasing 'en_*clean' --model faster-whisper:tiny.en --terms names.txt --corpus en=LibriSpeech
  srb biasing --plain runs/plain --biased runs/with-terms --terms names.txt
Clips in which a term is said show what the list gains, all others what it breaks."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument()
    model: str | None = option(None, "recogniser that takes terms, adapter:target?option=value&...", metavar="M")
    terms: str = option(help="file with one term on each line", metavar="FILE")
    plain: str | None = option(None, "run folder without terms, instead of --model", metavar="RUN")
    biased: str | None = option(None, "run folder with terms, instead of --model", metavar="RUN")
    out: str = option("runs", "folder for both runs", metavar="OUT")
    data: str | None = option(None, f"{BUILT} (default: srb)")
    limit: int | None = limit_option()
    json: bool = json_option()
    biasing_options: BiasingOptions = option_group(BiasingOptions, "how the runs are compared", advanced=True)
    corpus: Corpora = corpus_option()
    model_options: srb.ModelOptions = option_group(srb.ModelOptions, "how the model is run", advanced=True)
    data_options: srb.DataOptions = option_group(srb.DataOptions, "with --corpus, as in `srb run`", advanced=True)
    quiet: bool = quiet_option(advanced=True)


def run(args: Arguments) -> None:
    if bool(args.model) == bool(args.plain and args.biased):
        raise UserError("name a recogniser with --model, or two run folders with --plain and --biased")
    result = biasing(
        args.model or (str(args.plain), str(args.biased)),
        args.terms,
        args.configs,
        corpus=args.corpus,
        data=args.data,
        limit=args.limit,
        out=args.out,
        biasing_options=args.biasing_options,
        data_options=args.data_options,
        model_options=args.model_options,
        progress=not (args.quiet or args.json),
    )
    if args.json:
        print(json.dumps(result.as_json(), indent=1, ensure_ascii=False))
    else:
        show(result)


def show(result: BiasingResult) -> None:
    """Print a row for each config."""
    from rich.table import Table

    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.core.progress import Console

    console = Console(highlight=False)
    title = f"{for_terminal(result.model)}, {result.terms.partition(',')[0]}"
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    heads = ("config", "recall of terms", "false alarms %", "WER of the other clips", "n", "verdict")
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place in (0, 5) else "right", overflow="fold", no_wrap=not place)
    for config, effect in result.configs.items():
        n = f"{effect.said} said in {effect.biased_clips} clips, {effect.anti_clips} others"
        figures = (_cell(getattr(effect, figure), effect.unit) for figure in FIGURES)
        table.add_row(config, *figures, n, effect.verdict)
    console.print(table)
    if result.no_verdict:
        console.print(f"no verdict: {result.no_verdict}", soft_wrap=True, markup=False)


def _cell(change: Change | None, unit: str) -> str:
    if change is None:
        return ""
    span = change.change.interval
    interval = f" ({span[0]:+.1f} to {span[1]:+.1f})" if span else ""
    return (
        f"{change.without:.1f} -> {change.with_terms:.1f}\n{change.change.value:+.1f}{interval}\n"
        f"p {change.p:.3f}, {change.units} {unit}"
    )


COMMAND = Command(Arguments, run, EPILOG)
