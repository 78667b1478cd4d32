"""`srb table`: the paper's Table 1 for any number of runs, on a terminal or for a paper."""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence

from speech_robust_bench.cli.score import add_allow_changed


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", metavar="RUN", help="run folders; one without results is scored first")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--markdown", action="store_true", help="for a README")
    form.add_argument("--latex", action="store_true", help="for a paper (booktabs)")
    form.add_argument("--csv", action="store_true", help="for a spreadsheet, with intervals, in full precision")
    form.add_argument("--streaming", action="store_true", help="latency and stability of streamed runs")
    form.add_argument("--ood", action="store_true", help="error rates out of domain, as of `srb run --suite ood`")
    form.add_argument("--adversarial", action="store_true", help="success of the attacks that a run was tested with")
    form.add_argument("--masked", action="store_true", help="how often masked words are written all the same")
    form.add_argument("--overlap", action="store_true", help="two talkers at once: WER of both, and of the better one")
    form.add_argument("--lenient", action="store_true", help="WER strict and lenient, and semantic error")
    form.add_argument("--confidence", action="store_true", help="does it know when it fails: ECE and AUC per config")
    parser.add_argument(
        "--by",
        metavar="COLUMN",
        help="a line for each `dataset` (the paper's Table 7), or for each group of clips: domain, gender, ...",
    )
    parser.add_argument("--intervals", action="store_true", help="with the bootstrap interval of each score")
    add_allow_changed(parser)


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.scoring import table1
    from speech_robust_bench.scoring.results import check_comparable, load, load_groups

    results = [load(folder, allow_changed=args.allow_changed) for folder in args.folder]
    if args.streaming:
        return print_streaming(results)
    if args.ood:
        return print_ood(results)
    if args.adversarial:
        return print_adversarial(results)
    if args.lenient:
        return print_lenient(results)
    if args.confidence:
        return print_confidence(results)
    if args.overlap:
        return print_overlap(results)
    if args.masked:
        return print_masked(args.folder, results)
    check_comparable(results)
    if args.by == "dataset":
        tables = [table1.dataset_table(results)]
    elif args.by:
        tables = table1.group_tables([load_groups(folder, args.by) for folder in args.folder])
    else:
        tables = [table1.paper_table(results), table1.beyond_table(results), table1.untranscribed_table(results)]
    tables = [table for table in tables if any(cell for line in table.lines for cell in line.cells)]
    if not tables:
        raise UserError(
            "nothing to show: WERD and NWERD are differences to clean speech, and no run has a scenario together with "
            "its clean config; run that one too (srb run ... en_clean)"
        )
    if args.csv:
        print(table1.to_csv(tables[0]), end="")
    elif args.markdown or args.latex:
        text = table1.to_markdown if args.markdown else table1.to_latex
        print("\n".join(text(table, args.intervals) for table in tables), end="")
        print(*map(for_terminal, tables[0].notes), sep="\n", end="\n" if tables[0].notes else "", file=sys.stderr)
    else:
        print_blocks(tables, args.intervals)


def print_streaming(results: list) -> None:
    """One table per model, one row per config."""
    from speech_robust_bench.scoring.stream_table import HEADS, stream_rows

    for result in results:
        _print_rows(result["model"], HEADS, stream_rows(result))


def print_adversarial(results: list) -> None:
    """One table per model, one row per adversarial config."""
    from speech_robust_bench.scoring.attack_success import HEADS, adversarial_rows

    for result in results:
        _print_rows(result["model"], HEADS, [row.cells() for row in adversarial_rows(result)])


def print_lenient(results: list) -> None:
    """One table per model, one row per config whose errors are counted in words."""
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.scoring.table1 import cell_text

    if not any(entry.get("wer_lenient") for result in results for entry in result["configs"].values()):
        raise UserError("these results have no WER lenient; score them again with `srb score`")
    for result in results:
        scored = {config: entry for config, entry in result["configs"].items() if entry.get("wer_lenient")}
        heads = {"wer": "WER strict", "wer_lenient": "WER lenient", "semantic_error": "semantic error"}
        shown = [key for key in heads if any(entry.get(key) for entry in scored.values())]
        rows = [(config, *(cell_text(entry.get(key), True) for key in shown)) for config, entry in scored.items()]
        _print_rows(result["model"], ("config", *(heads[key] for key in shown)), rows)


def print_confidence(results: list) -> None:
    """One table per model, one row per config whose words have confidences."""
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.scoring.calibration import HEADS, confidence_rows

    if not any(confidence_rows(result) for result in results):
        raise UserError("none of these recognisers told how sure it is of its words (docs/models.md says which do)")
    for result in results:
        _print_rows(result["model"], HEADS, confidence_rows(result))


def print_overlap(results: list) -> None:
    """One table per model, one row per config of two talkers."""
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.scoring.two_talkers import HEADS, overlap_rows

    if not any(overlap_rows(result) for result in results):
        raise UserError("these runs have no config of two talkers; run them on 'en_overlap_*'")
    for result in results:
        _print_rows(result["model"], HEADS, overlap_rows(result))


def print_ood(results: list) -> None:
    """One table per model, one row per task, and the average."""
    from speech_robust_bench.builders.suites import load
    from speech_robust_bench.scoring.ood_table import HEADS, ood_rows

    for result in results:
        _print_rows(result["model"], HEADS, ood_rows(result, load("ood").about["corpora"]))


def print_masked(folders: list[str], results: list) -> None:
    """One table per model, one row per config with masked words."""
    from speech_robust_bench.scoring.remembered_words import HEADS, masked_rows
    from speech_robust_bench.scoring.runs import open_run

    for folder, result in zip(folders, results, strict=True):
        _print_rows(result["model"], HEADS, [row.cells() for row in masked_rows(open_run(folder), result)])


def _print_rows(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.table import Table

    from speech_robust_bench.core.console import Console

    lines = [list(row) for row in rows]
    shown = [place for place in range(len(heads)) if any(row[place] for row in lines)]  # no empty columns
    widths = {place: max(map(len, (*heads[place].split(), *(row[place] for row in lines)))) for place in shown}
    console, table = Console(), Table(box=None, pad_edge=False, title=title, title_justify="left")
    left = console.width - sum(
        width + 2 for place, width in widths.items() if place
    )  # numbers are never cut; names fold
    for place in shown:
        table.add_column(
            "\n".join(textwrap.fill(line, widths[place]) for line in heads[place].split("\n")),
            justify="right" if place else "left",
            overflow="fold",
            min_width=widths[place] if place else min(widths[place], max(left, 12)),
        )
    for row in lines:
        table.add_row(*(row[place] for place in shown))
    console.print(table)


def print_blocks(tables: list, intervals: bool = False) -> None:
    """Tables on the terminal, in blocks that are no wider than it is."""
    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.escape import for_terminal

    console = Console()
    for table in (table.filled() for table in tables):
        for block in blocks(table, console.width, intervals):
            console.print(block)
        for note in table.notes:
            console.print(for_terminal(note), style="dim", markup=False)


def blocks(table, width: int, intervals: bool) -> Iterator:
    """The table cut into as few blocks as fit the width, each with the models' names."""
    from speech_robust_bench.scoring.table1 import cell_text

    names = max([len(line.model) for line in table.lines] + [5])
    several = len({line.language for line in table.lines}) > 1
    labels = max(len(line.language) for line in table.lines) + 4 if several else 2
    room = max(width - min(names, width // 3) - min(labels, width // 3) - 2, 12)
    start, used = 0, 0
    for index, column in enumerate(table.columns):
        texts = [cell_text(line.cells[index], intervals) for line in table.lines]
        words = [*column.title.split(), column.measure, *texts]
        need = max(map(len, words)) + 2
        if used and used + need > room:
            yield _block(table, range(start, index), intervals)
            start, used = index, 0
        used += need
    if table.columns:
        yield _block(table, range(start, len(table.columns)), intervals)


def _block(table, wanted: range, intervals: bool):
    from rich import box
    from rich.table import Table
    from rich.text import Text

    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.scoring.table1 import cell_text

    part = table.keep(wanted)
    block = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    several = len({line.language for line in table.lines}) > 1
    if several:
        block.add_column("", no_wrap=True)
    block.add_column("model", overflow="fold")
    for column in part.columns:
        block.add_column(
            f"{column.title.replace(' ', chr(10))}\n[dim]{column.measure}[/]", justify="right", no_wrap=True
        )
    previous = None
    for line in part.lines:
        if previous not in (None, line.language):
            block.add_section()
        previous = line.language
        cells = [
            Text(cell_text(cell, intervals), style="bold" if part.best(line, i) else "")
            for i, cell in enumerate(line.cells)
        ]
        block.add_row(*([Text(for_terminal(line.language))] if several else []), Text(for_terminal(line.model)), *cells)
    return block
