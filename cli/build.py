"""`srb build`: materialise scenarios as dataset configs."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import configs_argument, corpus_option, limit_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument("configs or patterns, such as en_noise_sev3 or 'en-demo_*_sev3'")
    corpus: list[str] = corpus_option()
    limit: int | None = limit_option("only the first N clips of each corpus")
    out: str | None = option(None, "where the configs go (default: srb)", metavar="DIR")
    build_options: srb.BuildOptions = option_group(srb.BuildOptions)
    data_options: srb.DataOptions = option_group(srb.DataOptions)


def run(args: Arguments) -> None:
    result = srb.build(
        args.configs,
        corpus=args.corpus,
        limit=args.limit,
        out=args.out,
        data_options=args.data_options,
        build_options=args.build_options,
    )
    print(result)


COMMAND = Command(Arguments, run)
