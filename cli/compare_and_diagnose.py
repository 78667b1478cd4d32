"""The commands that look closer: `srb compare` two runs, `srb diagnose` one, which prints its system report card."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import groups_option, json_option, run_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.escape import for_terminal
from speech_robust_bench.core.options import (
    Options,
    Settings,
    above,
    argument,
    at_least,
    normaliser_option,
    option,
    option_group,
    resample_option,
)
from speech_robust_bench.core.progress import Console, progress
from speech_robust_bench.scoring.compare import Comparison, compare_groups, resampled
from speech_robust_bench.scoring.compare import compare as compare_runs
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import versions
from speech_robust_bench.scoring.transcript_difference import between

if TYPE_CHECKING:
    from rich.table import Table

    from speech_robust_bench.core.card_records import CardPart, LanguageComparison, ReportCard


NAMED = 5  # missing configs that are named; the rest is counted
BY = ("category", "scenario", "config")


@dataclass(frozen=True, kw_only=True)
class CompareArguments(Options):
    a: str = argument("run folder, such as runs/moonshine", metavar="A")
    b: str = argument("another run folder", metavar="B")
    by: str = option(
        "category",
        "one row per category, scenario or config; the last two also list where A helps and hurts",
        choices=BY,
    )
    resample: str = resample_option()
    table: str = option("paper-table3", "difficulty table: a name, or the path of a CSV file")
    normaliser: str = normaliser_option()
    floor: bool = option(False, "count a negative WERD as 0, as the authors' code does")
    replicates: int = option(1000, "bootstrap replicates", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of the bootstrap")
    alpha: float = option(0.05, "significance level after correction", check=above(0, 1))
    difference: bool = option(False, "measure how far apart the transcripts are on every config; needs no reference")
    groups: str | None = groups_option("compare within each group of clips")
    json: bool = json_option("print the rows as JSON")


def compare(args: CompareArguments) -> None:

    runs = [open_run(args.a), open_run(args.b)]
    if args.difference:
        return _show_difference(runs, args)
    for each in runs:
        each.refuse_anchors()
    options = {key: getattr(args, key) for key in ("table", "floor", "resample", "replicates", "seed", "by")}
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
        rows = compare_runs(*counts, **options)
    how = {
        "a": runs[0].model,
        "b": runs[1].model,
        **versions(args.normaliser),
        "difficulty_table": args.table,
        "resampled": resampled(rows),
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


def _show_difference(runs: list, args: CompareArguments) -> None:

    from rich.table import Table
    from rich.text import Text

    rows = between(runs[0], runs[1], args.normaliser, args.replicates, args.seed, args.resample)
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


def _show(rows: Sequence[Comparison], how: Settings) -> None:
    from rich.table import Table
    from rich.text import Text

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
        for head in ("A", "B", "A - B", "95 % interval", "n", "p (Holm)"):
            table.add_column(head, justify="right")
        table.add_column("more robust")
        for row in (row for row in rows if row.language == language):
            better = row.better(how["alpha"])
            table.add_row(
                row.name + ("*" if row.missing else ""),
                row.measure.upper(),
                f"{row.a:.1f}",
                f"{row.b:.1f}",
                f"{row.difference:+.1f}",
                f"{row.interval[0]:+.1f} {row.interval[1]:+.1f}" if row.interval else "",
                str(row.units),
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
        f"lower is more robust; n = {how['resampled']}; signs flipped and bootstrap, {how['replicates']} replicates, "
        f"seed {how['seed']};\n{how['normaliser']}, difficulty {how['difficulty_table']}; "
        f"p corrected for {len(rows)} comparisons",
        highlight=False,
    )
    if how["no_verdict"]:
        console.print(for_terminal(f"no verdict: {how['no_verdict']}"), highlight=False, markup=False, soft_wrap=True)


def _say_where(console, rows, how) -> None:
    """Where A, say a recogniser behind a front end, does better than B, where worse, and where nobody can tell."""

    sides = {"a": "helps", "b": "hurts", None: "cannot be told"}
    for side, verb in sides.items():
        where = [f"{row.name} ({row.difference:+.1f})" for row in rows if row.better(how["alpha"]) == side]
        if where:
            what = f"{for_terminal(how['a'])} in place of {for_terminal(how['b'])}" if side else "which is better"
            console.print(f"{what} {verb}: {', '.join(where)}", highlight=False, markup=False)


COMPARE = Command(CompareArguments, compare)


@dataclass(frozen=True, kw_only=True)
class DiagnoseArguments(Options):
    run: str = run_argument()
    diagnose_options: srb.DiagnoseOptions = option_group(srb.DiagnoseOptions)
    out: str | None = option(None, "write the card as a page (.html) or as data (.json)", metavar="FILE")
    json: bool = json_option("print the whole card as JSON")


def diagnose(args: DiagnoseArguments) -> None:
    diagnosis = srb.diagnose(args.run, args.diagnose_options)
    if args.out:
        print(f"{diagnosis.write(args.out)}: {diagnosis.model}, {', '.join(diagnosis.cards)}")
        return
    if args.json:
        print(diagnosis.to_json())
        return
    for card in diagnosis.cards.values():
        _show_card(card)
    if diagnosis.across:
        _show_languages(diagnosis.across)


def _show_card(card: ReportCard) -> None:

    console = Console(highlight=False)
    console.print(f"[bold]{card.model}[/] in {card.language}, {card.normaliser}")
    console.print(_card_table(card))
    for name, part in card.parts.items():
        _show_part(name, part, console)
    for row in (row for row in card.lwerr if row.severity is None and row.lwerr is not None):
        span = f" ({row.interval[0]:+.2f} to {row.interval[1]:+.2f})" if row.interval else ""
        console.print(f"  LWERR of women over men, {row.corpus} {row.category}: {row.lwerr:+.2f}{span}")
    if invented := card.reject:
        console.print(
            f"no speech: words in {invented.clips_with_words} of {invented.clips} clips, "
            f"{invented.words} words, {invented.loops} loops"
            + "".join(f"; '{text}' x {times}" for text, times in invented.phrases)
        )
    if written := card.untranscribed:
        console.print(
            f"no transcripts: {written.words} words in {written.clips} clips, "
            f"{written.clips - written.clips_with_words} clips without any, {written.loops} loops"
        )
    for kind, why in card.unknown.items():
        console.print(f"{kind}: {why}")


HEADLINE: tuple[tuple[str, Callable[[CardPart], str]], ...] = (
    ("WER", lambda part: f"{part.wer:.1f}"),
    ("clips", lambda part: str(part.clips)),
    (
        "median, 90th, 99th percentile clip",
        lambda part: f"{part.spread.p50:.0f} {part.spread.p90:.0f} {part.spread.p99:.0f}",
    ),
    ("bursts of inserted words", lambda part: str(part.hallucination.bursts)),
    ("repetition loops", lambda part: str(part.hallucination.loops)),
)


def _card_table(card: ReportCard) -> Table:
    table, parts = _table("", *card.parts), card.parts.values()
    for title, cell in HEADLINE:
        table.add_row(title, *(cell(part) for part in parts))
    table.add_row("[bold]missed, % of[/]")
    for kind in dict.fromkeys(kind for part in parts for kind in part.kinds):
        rows = [part.kinds[kind] for part in parts]
        table.add_row(f"  {kind}", *("" if row.rate is None else f"{row.rate:.1f} of {row.said}" for row in rows))
    for what in dict.fromkeys(what for part in parts for what in part.conditions):
        table.add_row(f"[bold]WER by {what}[/]")
        for label, bins in card.bins(what).items():
            cells = (bins.get(name) for name in card.parts)
            table.add_row(f"  {label}", *(f"{cell.wer:.1f} ({cell.clips})" if cell else "" for cell in cells))
    return table


def _show_part(name: str, part: CardPart, console: Console) -> None:
    for example in part.hallucination.examples[:3]:
        text = example.text if len(example.text) < 60 else example.text[:57] + "..."
        console.print(f"  {name} {example.kind} in {example.config} {example.id}: {text}", soft_wrap=True, markup=False)
    worst = ", ".join(f"{row.speaker} {row.wer:.1f}" for row in part.speakers.worst)
    if worst:
        console.print(f"  {name}, worst speakers: {worst}", soft_wrap=True, markup=False)
    for column, groups in part.groups.items():
        if groups.gap is not None:
            small = f", too small: {', '.join(groups.too_small)}" if groups.too_small else ""
            console.print(
                f"  {name}, {column}: gap {groups.gap:.1f} points from {groups.best} to {groups.worst}{small}",
                soft_wrap=True,
                markup=False,
            )


def _table(*columns: str) -> Table:
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _show_languages(across: LanguageComparison) -> None:

    table = _table("language against language", *across.languages)
    for row, cells in across.rows.items():
        scores = (cells.get(language) for language in across.languages)
        table.add_row(row, *(f"{score.value:.1f}" if score else "" for score in scores))
    Console(highlight=False).print(table)


DIAGNOSE = Command(DiagnoseArguments, diagnose)
