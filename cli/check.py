"""`srb check`: hash everything that was built again."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import configs_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, at_least, option


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument()
    data: str = option("srb", "built folder", metavar="FOLDER")
    workers: int = option(1, "processes", metavar="N", check=at_least(1))


def run(args: Arguments) -> int:
    checked = srb.check(args.configs, data=args.data, workers=args.workers)
    wrong = [problem for problem in checked.values() if problem]
    for problem in wrong:
        print(problem, file=sys.stderr)
    print(f"{args.data}: {len(checked) - len(wrong)} of {len(checked)} configs are as they were built")
    return 1 if wrong else 0


COMMAND = Command(Arguments, run)
