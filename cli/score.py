"""`srb score`: from predictions to `results.json`. Needs no model and no audio."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import allow_changed_option, runs_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    runs: list[str] = runs_argument("run folders, such as runs/moonshine")
    score_options: srb.ScoreOptions = option_group(srb.ScoreOptions)
    allow_changed: bool = allow_changed_option()


def run(args: Arguments) -> None:
    from speech_robust_bench.core.progress import progress

    scored = []
    with progress() as bar:
        task = bar.add_task("scoring", total=len(args.runs))
        for folder in args.runs:
            scored.append(srb.score_run(folder, args.score_options, allow_changed=args.allow_changed))
            bar.advance(task)
    for results in scored:
        headline = f", {results.headline}" if results.headline else ""
        print(f"{Path(results.folder) / 'results.json'}: {len(results.configs)} configs{headline}")
        for problem in results.problems:
            print(f"  {problem}", file=sys.stderr)


COMMAND = Command(Arguments, run)
