"""`srb table`: the paper's Table 1 for any number of runs, on a terminal or for a paper."""

from __future__ import annotations

import sys
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import allow_changed_option, groups_option, runs_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option

MEASURES = ("streaming", "ood", "adversarial", "masked", "overlap", "lenient", "confidence")


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    runs: list[str] = runs_argument()
    markdown: bool = option(False, "print Markdown, for a README", one_of="form")
    latex: bool = option(False, "print LaTeX, for a paper (booktabs)", one_of="form")
    csv: bool = option(False, "print CSV, with intervals and in full precision", one_of="form")
    streaming: bool = option(False, "latency and stability of streamed runs", one_of="form")
    ood: bool = option(False, "error rates out of domain, after `srb run --suite ood`", one_of="form")
    adversarial: bool = option(False, "success of the attacks that a run was tested with", one_of="form")
    masked: bool = option(False, "how often masked words are transcribed all the same", one_of="form")
    overlap: bool = option(False, "two talkers at once: WER of both, and of the better one", one_of="form")
    lenient: bool = option(False, "WER strict and lenient, and semantic error", one_of="form")
    confidence: bool = option(False, "calibration of word confidences: ECE and AUC per config", one_of="form")
    groups: str | None = groups_option("a line for each `dataset` (the paper's Table 7), or for each group of clips")
    intervals: bool = option(False, "show the bootstrap interval of each score")
    allow_changed: bool = allow_changed_option()


def run(args: Arguments) -> None:
    from speech_robust_bench.cli.rendering import print_blocks, print_measure
    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.reporting import to_csv, to_latex, to_markdown

    for measure in MEASURES:
        if getattr(args, measure):
            for each in srb.measure_tables(args.runs, measure, allow_changed=args.allow_changed):
                print_measure(each)
            return
    tables = srb.table(args.runs, groups=args.groups, allow_changed=args.allow_changed)
    if args.csv:
        print(to_csv(tables[0]), end="")
    elif args.markdown or args.latex:
        text = to_markdown if args.markdown else to_latex
        print("\n".join(text(table, args.intervals) for table in tables), end="")
        print(*map(for_terminal, tables[0].notes), sep="\n", end="\n" if tables[0].notes else "", file=sys.stderr)
    else:
        print_blocks(tables, args.intervals)


COMMAND = Command(Arguments, run)
