"""`srb difficulty`: how hard each scenario is, from the quality of its speech; the divisor of NWERD."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        nargs="?",
        help="a folder of built configs with quality columns (`srb quality`), or a CSV file with the columns dataset, "
        "augmentation, severity, metric, value",
    )
    parser.add_argument(
        "--ratings", metavar="CSV", help="from what people say instead: scenario, severity, rating; more means better"
    )
    parser.add_argument("--language", help="which language, if the folder holds several")
    parser.add_argument("--dataset", action="append", help="only these data sets of the CSV file (may be repeated)")
    parser.add_argument("--name", default="mine-1", help="name of the table, with a version in it (default: mine-1)")
    parser.add_argument("--out", help="write the table as CSV; score with it by giving the path")
    parser.add_argument("--table", default="paper-table3", help="without a source: which table to show")
    parser.add_argument("--explain", action="store_true", help="how the paper's table came about; how srb-1 differs")


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.core.console import Console
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.scoring.difficulty import compute_from_ratings, load, read_ratings

    console = Console()
    if args.explain:
        _explain(console)
        return
    if args.ratings and args.source:
        raise UserError("give a source of quality scores or --ratings, not both")
    if args.ratings:
        table = compute_from_ratings(read_ratings(args.ratings), args.name)
    else:
        table = _compute(args, console) if args.source else load(args.table)
    if args.out:
        Path(args.out).write_text(table.to_csv(), "utf-8")
        console.print(f"{len(table.rows)} difficulties written to {args.out}", highlight=False)
    else:
        _show(console, f"difficulty, {table.name}", {key: row.avg for key, row in table.rows.items()})


def _compute(args, console):
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.scoring.difficulty import compute, means, read_quality
    from speech_robust_bench.scoring.quality_from_builds import read_built

    if Path(args.source).is_dir():
        lines, bare = read_built(args.source, args.language)
        if bare:
            console.print(f"without quality columns, left out: {', '.join(bare)}", highlight=False)
    else:
        lines = read_quality(args.source)
        if args.dataset:
            known = sorted({line.dataset for line in lines})
            unknown = [d for d in args.dataset if d not in known]
            if unknown:
                raise UserError(f"{args.source} has no data set '{unknown[0]}'; it has {', '.join(known)}")
            lines = [line for line in lines if line.dataset in args.dataset]
    return compute(means(lines), args.name)


def _show(console, title, values, sign: str = "") -> None:
    """A table with one scenario a line and its severities side by side; fits 80 columns."""
    from rich.table import Table

    grid: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        scenario, _, severity = key.partition("_sev")
        grid.setdefault(scenario, {})[severity] = value
    severities = sorted({s for row in grid.values() for s in row if s})
    shown = Table(title=title, title_justify="left", box=None, pad_edge=False)
    shown.add_column("scenario")
    for head in ["no severity", *(f"sev {s}" for s in severities)]:
        shown.add_column(head, justify="right")
    for scenario, row in sorted(grid.items()):
        shown.add_row(scenario, *(f"{row[s]:{sign}.1f}" if s in row else "" for s in ["", *severities]))
    console.print(shown)


def _explain(console) -> None:
    from speech_robust_bench.scoring.difficulty import differences, load
    from speech_robust_bench.scoring.paper_table3 import PESQ_OFFSET, POLLUTED, paper_table, quality_scores, srb_1

    lines, paper, shipped = quality_scores(), load("paper-table3"), load("srb-1")
    again = paper_table(lines)
    console.print("The paper's Table 3, computed again from the authors' quality scores, with what they did:")
    console.print(f"  PESQ has mean {50 + PESQ_OFFSET} instead of 50; Spanish DNSMOS and PESQ rows were not merged.")
    for measure in ("avg", "dnsmos", "pesq"):
        off = {k: getattr(r, measure) - getattr(paper.rows[k], measure) for k, r in again.rows.items()}
        near = sum(abs(v) <= 0.3 for v in off.values())
        far = ", ".join(f"{k} {v:+.1f}" for k, v in off.items() if abs(v) > 0.3)
        console.print(f"  {measure:6} {near} of {len(off)} cells within 0.3" + (f"; {far}" if far else ""))
    console.print(f"  Polluted cells, each with a stray PESQ mean in it: {', '.join(POLLUTED)}\n")
    off = differences(srb_1(lines), shipped)
    console.print(f"srb-1, computed again: {sum(abs(v) < 0.001 for v in off.values())} of {len(off)} as shipped.\n")
    _show(console, "srb-1 minus paper-table3", differences(shipped, paper), sign="+")
