"""`srb quality`: add DNSMOS and PESQ columns to built configs, or say what front ends do to their sound."""

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
    front = parser.add_argument_group("front ends (nothing is added to the configs)")
    front.add_argument(
        "--front",
        action="append",
        metavar="F",
        help="measure the clips before and after a front end or a chain, as in wpe+rnnoise; can be repeated",
    )
    front.add_argument("--limit", type=int, metavar="N", help="only the first N clips of each config")
    front.add_argument("--out", type=Path, metavar="FILE", help="keep the rows; those in it are not measured again")
    front.add_argument("--json", action="store_true", help="print the rows as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> int:
    from speech_robust_bench.builders.content_check import matching_configs
    from speech_robust_bench.builders.quality import COLUMNS, DNSMOS_COLUMNS
    from speech_robust_bench.builders.quality_columns import score
    from speech_robust_bench.core.progress import tasks

    if args.front:
        return _measure_fronts(args)
    columns = DNSMOS_COLUMNS if args.no_pesq else COLUMNS
    configs = matching_configs(args.folder, args.configs)
    with tasks(args.quiet) as show:
        rows, done = score(args.folder, configs, show, columns=columns, workers=args.workers)
    print(f"{rows} rows scored; {done} of {len(configs)} configs had their columns already")
    return 0


def _measure_fronts(args: argparse.Namespace) -> int:
    import json

    from speech_robust_bench.builders.config_sources import open_data, select
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import tasks
    from speech_robust_bench.extensions.front_ends.quality import MEASURES, front_quality

    if args.limit is not None and args.limit < 1:
        raise UserError("--limit is 1 or more")
    data = open_data(str(args.folder))
    configs = select(data, args.configs, str(args.folder))
    with tasks(args.quiet) as show:
        rows = front_quality(data, configs, args.front, limit=args.limit, out=args.out, progress=show)
    if args.json:
        print(json.dumps(rows, indent=1))
        return 0
    heads = (name.removeprefix("dnsmos_") for name in (*MEASURES, "rtf"))
    print(f"{'config':<28}{'front end':<18}" + "".join(f"{head:>10}" for head in heads))
    for row in rows:
        values = (row[name] for name in (*MEASURES, "rtf"))
        shown = "".join(f"{'-' if value is None else f'{value:.3f}':>10}" for value in values)
        print(f"{row['config']:<28}{row['front'] or '-':<18}{shown}")
    return 0
