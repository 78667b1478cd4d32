"""`srb compare A B`: is one recogniser more robust than another, per category and overall?"""

from __future__ import annotations

import argparse

from speech_robust_bench.cli.options import add_normaliser_option

NAMED = 5  # missing configs that are named; the rest is counted


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("a", help="a run folder, runs/<model>")
    parser.add_argument("b", help="another run folder")
    parser.add_argument(
        "--by",
        choices=("category", "scenario", "config"),
        default="category",
        help="a row for each (default: category); by scenario or config also says where A helps and where it hurts",
    )
    parser.add_argument("--by-speaker", action="store_true", help="draw whole speakers instead of utterances")
    parser.add_argument("--table", default="paper-table3", help="difficulty table: a name, or the path of a CSV file")
    add_normaliser_option(parser)
    parser.add_argument("--floor", action="store_true", help="a negative WERD counts as 0, as in the authors' code")
    parser.add_argument("--replicates", type=int, default=1000, help="bootstrap replicates (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the bootstrap (default: 0)")
    parser.add_argument("--alpha", type=float, default=0.05, help="significance level after correction (default: 0.05)")
    parser.add_argument(
        "--difference",
        action="store_true",
        help="how far the two are from each other on every config; needs no reference",
    )
    parser.add_argument("--groups", metavar="COLUMN", help="on each group of clips by itself: domain, gender, ...")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON")


def run(args: argparse.Namespace) -> None:
    import json
    from dataclasses import asdict

    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.scoring.compare import compare, compare_groups
    from speech_robust_bench.scoring.runs import open_run
    from speech_robust_bench.scoring.scoring import versions

    runs = [open_run(args.a), open_run(args.b)]
    if args.difference:
        return _show_difference(runs, args)
    for each in runs:
        each.refuse_anchors()
    options = {key: getattr(args, key) for key in ("table", "floor", "by_speaker", "replicates", "seed", "by")}
    with progress(quiet=args.json) as bar:
        task = bar.add_task("counting errors", total=sum(len(r.configs) for r in runs))
        counts: list[list] = []
        for each in runs if not args.groups else ():
            counts.append([])
            for config in each.configs:
                read = each.read(config).transcribed
                counts[-1] += [read.count(args.normaliser)] if read.lines else []
                bar.advance(task)
    if args.groups:
        rows = compare_groups(runs[0], runs[1], args.groups, args.normaliser, **options)
    else:
        rows = compare(*counts, **options)
    how = {
        "a": runs[0].model,
        "b": runs[1].model,
        **versions(args.normaliser),
        "difficulty_table": args.table,
        "resampled": "speakers" if args.by_speaker else "utterances",
        "replicates": args.replicates,
        "seed": args.seed,
        "alpha": args.alpha,
        "by": args.by,
        "no_verdict": "; ".join(sorted({row.no_verdict for row in rows} - {""})),
    }
    if args.json:
        print(json.dumps({**how, "rows": [{**asdict(r), "better": r.better(args.alpha)} for r in rows]}, indent=2))
    else:
        _show(rows, how)


def _show_difference(runs: list, args: argparse.Namespace) -> None:
    import json

    from rich.table import Table
    from rich.text import Text

    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.core.progress import Console
    from speech_robust_bench.scoring.transcript_difference import between

    rows = between(runs[0], runs[1], args.normaliser, args.replicates, args.seed)
    if args.json:
        return print(json.dumps({"a": runs[0].model, "b": runs[1].model, "rows": rows}, indent=2))
    title = Text(
        for_terminal(f"words that differ between {runs[0].model} and {runs[1].model}, % of the longer transcript")
    )
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for head in ("", "clips", "differ %", "95 % interval"):
        table.add_column(head, justify="right" if table.columns else "left")
    for row in rows:
        span = "" if row["interval"] is None else f"{row['interval'][0]:.1f} {row['interval'][1]:.1f}"
        table.add_row(row["config"], str(row["clips"]), f"{row['difference']:.1f}", span)
    return Console().print(table)


def _show(rows, how) -> None:
    from rich.table import Table
    from rich.text import Text

    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.core.progress import Console

    console = Console()
    for language in dict.fromkeys(row.language for row in rows):
        table = Table(
            title=Text(for_terminal(f"A = {how['a']}, B = {how['b']} ({language})")),
            title_justify="left",
            box=None,
            pad_edge=False,
        )
        table.add_column("")
        table.add_column("")
        for head in ("A", "B", "A - B", "95 % interval", "p (Holm)"):
            table.add_column(head, justify="right")
        table.add_column("more robust")
        for row in (row for row in rows if row.language == language):
            better = row.better(how["alpha"])
            low, high = row.interval
            table.add_row(
                row.name + ("*" if row.missing else ""),
                row.measure.upper(),
                f"{row.a:.1f}",
                f"{row.b:.1f}",
                f"{row.difference:+.1f}",
                f"{low:+.1f} {high:+.1f}",
                f"{row.p_corrected:.3f}",
                better.upper() if better else "-",
            )
        console.print(table)
    if how["by"] != "category" and not how["no_verdict"]:
        _say_where(console, rows, how)
    missing = sorted({name for row in rows for name in row.missing})
    if missing:
        more = f" and {len(missing) - NAMED} more (--json names all)" if len(missing) > NAMED else ""
        console.print(f"* without: {', '.join(missing[:NAMED])}{more}", highlight=False)
    console.print(
        f"lower is more robust; paired bootstrap over {how['resampled']}, {how['replicates']} replicates, "
        f"seed {how['seed']};\n{how['normaliser']}, difficulty {how['difficulty_table']}; "
        f"p corrected for {len(rows)} comparisons",
        highlight=False,
    )
    if how["no_verdict"]:
        console.print(for_terminal(f"no verdict: {how['no_verdict']}"), highlight=False, markup=False, soft_wrap=True)


def _say_where(console, rows, how) -> None:
    """Where A, say a recogniser behind a front end, does better than B, where worse, and where nobody can tell."""
    from speech_robust_bench.core.escape import for_terminal

    sides = {"a": "helps", "b": "hurts", None: "cannot be told"}
    for side, verb in sides.items():
        where = [f"{row.name} ({row.difference:+.1f})" for row in rows if row.better(how["alpha"]) == side]
        if where:
            what = f"{for_terminal(how['a'])} in place of {for_terminal(how['b'])}" if side else "which is better"
            console.print(f"{what} {verb}: {', '.join(where)}", highlight=False, markup=False)
