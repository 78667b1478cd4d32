"""`srb leaderboard`: verified results as a page in the browser."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    results: str = option("verified", "folder of verified results", metavar="FOLDER")
    port: int | None = option(None, "port to listen on (default: the first free one from 7860)", metavar="N")
    host: str = option("127.0.0.1", "address to listen on")
    export: str | None = option(None, "write the files of a static Space instead", metavar="FOLDER")


def run(args: Arguments) -> None:
    if args.export:
        print(srb.export_leaderboard(args.results, args.export))
        return
    srb.leaderboard(
        args.results,
        host=args.host,
        port=args.port,
        ready=lambda address: print(f"{address}  (Ctrl-C ends it)", flush=True),
    )


COMMAND = Command(Arguments, run)
