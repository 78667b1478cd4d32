"""`srb quality`: add DNSMOS and PESQ columns to built configs, or say what front ends do to their sound."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import configs_argument, json_option, limit_option, quiet_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, at_least, option, option_group

FACTS = ("config", "front", "clips", "content_sha256")  # of a row; the others are measures


@dataclass(frozen=True, kw_only=True)
class FrontArguments(Options):
    front: list[str] = option(
        [], "measure the clips before and after a front end or a chain, as in wpe+rnnoise", metavar="F", repeat=True
    )
    limit: int | None = limit_option()
    out: str | None = option(None, "keep the rows; those in it are not measured again", metavar="FILE")
    json: bool = json_option("print the rows as JSON")


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    configs: list[str] = configs_argument()
    data: str = option("srb", "built folder", metavar="FOLDER")
    pesq: bool = option(True, "add DNSMOS alone, which needs no clean clips")
    workers: int | None = option(None, "processes (default: one per core)", metavar="N", check=at_least(1))
    quiet: bool = quiet_option()
    fronts: FrontArguments = option_group(FrontArguments, "front ends (nothing is added to the configs)")


def run(args: Arguments) -> None:
    how: dict[str, Any] = {"data": args.data, "progress": not args.quiet}
    if not args.fronts.front:
        print(srb.add_quality(args.configs, pesq=args.pesq, workers=args.workers, **how))
        return
    rows = srb.front_quality(args.fronts.front, args.configs, limit=args.fronts.limit, out=args.fronts.out, **how)
    if args.fronts.json:
        print(json.dumps(rows, indent=1))
    else:
        _show(rows)


def _show(rows: list) -> None:
    measures = [name for name in rows[0] if name not in FACTS]
    heads = (name.removeprefix("dnsmos_") for name in measures)
    print(f"{'config':<28}{'front end':<18}" + "".join(f"{head:>10}" for head in heads))
    for row in rows:
        values = (row[name] for name in measures)
        shown = "".join(f"{'-' if value is None else f'{value:.3f}':>10}" for value in values)
        print(f"{row['config']:<28}{row['front'] or '-':<18}{shown}")


COMMAND = Command(Arguments, run)
