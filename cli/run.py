"""`srb run`: a recogniser over dataset configs, into one predictions file each."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import (
    BUILT,
    configs_argument,
    corpus_option,
    limit_option,
    model_option,
    quiet_option,
)
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option, option_group

EPILOG = """examples:
  srb run --model moonshine 'en-demo_*' --corpus en-demo
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --noise-dir noises/
  srb run --model hf:openai/whisper-tiny.en?dtype=float16 --device cuda en_clean 'en_noise_sev*'
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --until 1.0
  srb run --model moonshine --suite fast --corpus en=LibriSpeech --tts espeak
  srb run --model python:mymodule:transcribe --data mshah1/speech_robust_bench_public en_gaussian_sev2 --limit 100
With --corpus the clips are perturbed while the model works, and no audio is stored; with --data they were built before.
Repeat a command that was interrupted to go on where it stopped."""


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument()
    model: str = model_option("model: adapter:target?option=value&..., or @models.yaml (docs/models.md)")
    out: str = option("runs", "predictions go to OUT/<model>/<config>.jsonl", metavar="OUT")
    data: str | None = option(None, f"{BUILT} (default: srb)")
    limit: int | None = limit_option()
    run_options: srb.RunOptions = option_group(srb.RunOptions)
    quiet: bool = quiet_option()
    stream: bool = option(False, "use the model live, chunk by chunk, and store when each word came")
    stream_options: srb.StreamOptions = option_group(srb.StreamOptions, "with --stream")
    corpus: list[str] = corpus_option()
    data_options: srb.DataOptions = option_group(
        srb.DataOptions, "with --corpus, to perturb clips while the model works"
    )


def run(args: Arguments) -> int:
    """Run the model, or each model of a file; the exit code is 1 if every clip of one failed."""
    options = replace(args.run_options, stream=args.stream_options if args.stream else False)
    how: dict[str, Any] = {
        "corpus": args.corpus,
        "data": args.data,
        "limit": args.limit,
        "data_options": args.data_options,
        "run_options": options,
        "progress": not args.quiet,
    }
    if args.model.startswith("@"):
        return max([show(summary) for summary in srb.run_models(args.model, args.configs, out=args.out, **how)])
    out = srb.run_folder(args.model, args.out, options)
    return show(srb.run(args.model, args.configs, out=out, **how))


def show(summary: srb.RunSummary) -> int:
    """Say where the predictions are, how fast they came, and what failed."""
    print(summary, flush=True)
    if summary.failed:
        print(
            f'{summary.failed} clips failed; see "error" in the files, --retry-failed tries them again', file=sys.stderr
        )
    if summary.cost:
        print(f"cost: about {summary.cost:.2f} $ by the price list")
    if summary.error:
        print(f"every clip failed, the first with: {summary.error}", file=sys.stderr)
    return 1 if summary.error else 0


COMMAND = Command(Arguments, run, EPILOG)
