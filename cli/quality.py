"""`srb quality`: add DNSMOS and PESQ columns to configs that are already built."""

from __future__ import annotations

import argparse
import os
from fnmatch import fnmatchcase
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
    from srb.builders.quality import COLUMNS, DNSMOS_COLUMNS
    from srb.builders.quality_columns import score
    from srb.cli.progress import tasks

    columns = DNSMOS_COLUMNS if args.no_pesq else COLUMNS
    configs = _select(args.folder, args.configs)
    with tasks(args.quiet) as show:
        rows, done = score(args.folder, configs, show, columns=columns, workers=args.workers)
    print(f"{rows} rows scored; {done} of {len(configs)} configs had their columns already")
    return 0


def _select(folder: Path, patterns: list[str]) -> list[str]:
    """The configs of a folder that the names and globs mean."""
    from difflib import get_close_matches

    from srb.builders.errors import UserError

    built = sorted({path.parent.name for path in folder.glob("*/test-*.parquet")})
    if not built:
        raise UserError(f"{folder} has no built configs; make some with srb build CONFIG --out {folder}")
    chosen: list[str] = []
    for pattern in patterns or ["*"]:
        found = [config for config in built if fnmatchcase(config, pattern)]
        if not found:
            near = get_close_matches(pattern, built) or built[:3]
            raise UserError(f"{folder} has no config '{pattern}'; it has {', '.join(near)}")
        chosen += [config for config in found if config not in chosen]
    return chosen
