"""`srb quality`: add DNSMOS and PESQ columns to configs that are already built."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, help="folder with built configs, as in srb")
    parser.add_argument(
        "configs", nargs="*", metavar="CONFIG", help="configs to score, or globs; all of them unless given"
    )
    parser.add_argument("--no-pesq", action="store_true", help="DNSMOS alone, which needs no clean clips")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one per core)")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    import multiprocessing

    import pyarrow.parquet as pq

    from srb.builders.quality import COLUMNS, DNSMOS_COLUMNS
    from srb.builders.quality_columns import CleanClips, add_columns, missing, publish, ready, shards
    from srb.cli.progress import progress

    wanted = DNSMOS_COLUMNS if args.no_pesq else COLUMNS
    configs = {config: shards(args.folder, config) for config in _select(args.folder, args.configs)}
    lacking = {shard: columns for files in configs.values() for shard in files if (columns := missing(shard, wanted))}
    todo = {shard for shard, columns in lacking.items() if not ready(shard, columns)}
    rows = sum(pq.read_metadata(shard).num_rows for shard in todo)
    clean = CleanClips(args.folder)
    pool: Any = nullcontext()
    if args.workers > 1 and rows > 1:
        # Not forked: the networks' threads and pyarrow's do not survive one.
        pool = ProcessPoolExecutor(args.workers, mp_context=multiprocessing.get_context("spawn"))
    with pool as executor, progress(args.quiet) as bar:
        task = bar.add_task("quality", total=rows)
        for files in configs.values():
            for shard in files:
                if shard in todo:
                    for scored in add_columns(shard, lacking[shard], clean, executor.map if executor else map):
                        bar.advance(task, scored)
            publish(shard for shard in files if shard in lacking)
    done = sum(not any(shard in lacking for shard in files) for files in configs.values())
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
