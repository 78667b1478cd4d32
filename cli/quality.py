"""`srb quality`: add DNSMOS and PESQ columns to configs that are already built."""

from __future__ import annotations

import argparse
import os
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder with built configs, as in srb")
    parser.add_argument(
        "configs", nargs="*", metavar="CONFIG", help="configs to score, or globs; all of them unless given"
    )
    parser.add_argument("--no-pesq", action="store_true", help="DNSMOS alone, which needs no clean clips")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    from srb.builders.content_check import matching_configs
    from srb.builders.quality import COLUMNS, DNSMOS_COLUMNS
    from srb.builders.quality_columns import score
    from srb.core.progress import tasks

    columns = DNSMOS_COLUMNS if args.no_pesq else COLUMNS
    configs = matching_configs(args.folder, args.configs)
    with tasks(args.quiet) as show:
        rows, done = score(args.folder, configs, show, columns=columns, workers=args.workers)
    print(f"{rows} rows scored; {done} of {len(configs)} configs had their columns already")
    return 0
