"""`srb try-it`: the leaderboard with the page on which visitors try the scenarios, served or as a gradio Space."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option
from speech_robust_bench.extensions.try_it import space
from speech_robust_bench.push.leaderboard import board, site


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    results: str = option("verified", "folder of verified results", metavar="FOLDER")
    port: int = option(7860, "port to listen on", metavar="N")
    host: str = option("127.0.0.1", "address to listen on")
    export: str | None = option(None, "write the files of a gradio Space instead", metavar="FOLDER")


def run(args: Arguments) -> None:
    if args.export:
        print(space.export(args.results, args.export))
        return
    with tempfile.TemporaryDirectory(prefix="srb-") as scratch:
        files = Path(scratch) / "board"
        site.write(site.files(board.load(args.results), space.TAB), files)
        space.serve(files, args.host, args.port, lambda address: print(f"{address}  (Ctrl-C ends it)", flush=True))


COMMAND = Command(Arguments, run)
