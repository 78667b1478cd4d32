"""`srb report`: one self-contained page about any number of runs."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import BUILT, corpus_option, runs_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    runs: list[str] = runs_argument()
    out: str = option("report.html", "page to write; the report cards go beside it as .json", metavar="FILE")
    report_options: srb.ReportOptions = option_group(srb.ReportOptions)
    data: str | None = option(None, f"{BUILT}: has the audio of the worst clips")
    corpus: list[str] = corpus_option()
    data_options: srb.DataOptions = option_group(srb.DataOptions, "with --corpus, as in `srb run`")


def run(args: Arguments) -> None:
    page, cards = srb.write_report(
        args.runs,
        args.out,
        data=args.data,
        corpus=args.corpus,
        data_options=args.data_options,
        report_options=args.report_options,
    )
    print(f"{page}: {len(args.runs)} models, {page.stat().st_size / 1e6:.1f} MB; report cards as data: {cards}")


COMMAND = Command(Arguments, run)
