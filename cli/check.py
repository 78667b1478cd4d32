"""`srb check`: hash everything that was built again."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DATA", help="folder with built configs, as in srb")
    parser.add_argument("configs", nargs="*", metavar="CONFIG", help="names or globs; all of them unless given")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")


def run(args: argparse.Namespace) -> int:
    from speech_robust_bench.builders.content_check import check_configs, matching_configs
    from speech_robust_bench.core.engines import open_engine
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import tasks

    if args.workers < 1:
        raise UserError("--workers is 1 or more")
    configs = matching_configs(args.folder, args.configs)
    engine = open_engine("local", args.workers)
    with tasks() as show:
        try:
            wrong = check_configs(args.folder, configs, engine, show)
        finally:
            engine.close()
    for reason in wrong.values():
        print(reason, file=sys.stderr)
    print(f"{args.folder}: {len(configs) - len(wrong)} of {len(configs)} configs are as they were built")
    return 1 if wrong else 0
