"""The commands that look closer: `srb compare` two runs, `srb diagnose` one, which prints its system report card."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, json_option, run_argument
from speech_robust_bench.core.errors import for_terminal
from speech_robust_bench.core.options import Options, argument, option, option_group
from speech_robust_bench.core.progress import Console

if TYPE_CHECKING:
    from rich.table import Table

    from speech_robust_bench.reporting import CardPart, LanguageComparison, ReportCard

NAMED = 5  # missing configs that are named; the rest is counted


@dataclass(frozen=True, kw_only=True)
class CompareArguments(Options):
    a: str = argument("run folder, such as runs/moonshine", metavar="A")
    b: str = argument("another run folder", metavar="B")
    compare_options: srb.CompareOptions = option_group(srb.CompareOptions)
    difference: bool = option(False, "measure how far apart the transcripts are on every config; needs no reference")
    json: bool = json_option("print the rows as JSON")


def compare(args: CompareArguments) -> None:
    if args.difference:
        _show_difference(args)
        return
    rows = srb.compare(args.a, args.b, args.compare_options, progress=not args.json)
    if args.json:
        print(rows.to_json())
    else:
        _show(rows)


def _show_difference(args: CompareArguments) -> None:
    from speech_robust_bench.cli.rendering import plain_table
    from speech_robust_bench.comparison import model_names

    rows = srb.difference(args.a, args.b, args.compare_options)
    names = model_names(args.a, args.b)
    if args.json:
        print(json.dumps({"a": names[0], "b": names[1], "rows": rows}, indent=2))
        return
    title = f"words that differ between {names[0]} and {names[1]}, % of the longer transcript"
    table = plain_table(title, "", "clips", "differ %", "95 % interval")
    for row in rows:
        span = "" if row["interval"] is None else f"{row['interval'][0]:.1f} {row['interval'][1]:.1f}"
        table.add_row(row["config"], str(row["clips"]), f"{row['difference']:.1f}", span)
    Console().print(table)


def _show(rows: srb.Comparisons) -> None:
    console, options = Console(), rows.options
    for language in dict.fromkeys(row.language for row in rows):
        console.print(_comparison_table(rows, language))
    if options.by != "category":
        _say_where(console, rows)
    missing = sorted({name for row in rows for name in row.missing})
    if missing:
        more = f" and {len(missing) - NAMED} more (--json names all)" if len(missing) > NAMED else ""
        console.print(f"* without: {', '.join(missing[:NAMED])}{more}", highlight=False)
    console.print(
        f"lower is more robust; n = {rows.resampled}; signs flipped and bootstrap, {options.replicates} replicates, "
        f"seed {options.seed};\n{rows.normaliser}, difficulty {options.difficulty}; "
        f"p corrected for {len(rows)} comparisons",
        highlight=False,
    )
    if rows.no_verdict:
        console.print(for_terminal(f"no verdict: {rows.no_verdict}"), highlight=False, markup=False, soft_wrap=True)


def _comparison_table(rows: srb.Comparisons, language: str) -> Table:
    from speech_robust_bench.cli.rendering import plain_table

    title = f"A = {rows.a}, B = {rows.b} ({language})"
    table = plain_table(title, "", "", "A", "B", "A - B", "95 % interval", "n", "p (Holm)", "more robust")
    table.columns[1].justify = table.columns[-1].justify = "left"
    for row in (row for row in rows if row.language == language):
        table.add_row(
            row.name + ("*" if row.missing else ""),
            row.measure.upper(),
            f"{row.a:.1f}",
            f"{row.b:.1f}",
            f"{row.difference:+.1f}",
            f"{row.interval[0]:+.1f} {row.interval[1]:+.1f}" if row.interval else "",
            str(row.units),
            f"{row.p_corrected:.3f}",
            (rows.better(row) or "-").upper(),
        )
    return table


def _say_where(console: Console, rows: srb.Comparisons) -> None:
    """Say where A does better than B, where worse, and where there is no verdict."""
    sides = {"a": "helps", "b": "hurts", None: "no verdict"}
    for side, verb in sides.items():
        where = [
            f"{row.name} ({row.difference:+.1f})" for row in rows if rows.better(row) == side and not row.no_verdict
        ]
        if where:
            what = f"{for_terminal(rows.a)} in place of {for_terminal(rows.b)} {verb}" if side else verb
            console.print(f"{what}: {', '.join(where)}", highlight=False, markup=False)


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
    if card.no_verdict:
        console.print(f"no verdict on this recogniser: {card.no_verdict}", soft_wrap=True)
    console.print(_card_table(card))
    for name, part in card.parts.items():
        _show_part(name, part, console)
    for row in (row for row in card.lwerr if row.severity is None and row.lwerr is not None):
        span = f" ({row.interval[0]:+.2f} to {row.interval[1]:+.2f}; {row.over})" if row.interval else ""
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
    from speech_robust_bench.cli.rendering import plain_table

    table, parts = plain_table("", "", *card.parts), card.parts.values()
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
    worst = ", ".join(f"{row.speaker} {row.wer:.1f} ({row.clips} clips)" for row in part.speakers.worst)
    if worst:
        console.print(f"  {name}, worst speakers: {worst}", soft_wrap=True, markup=False)
    for column, groups in part.groups.items():
        if groups.gap is not None:
            small = f", too small: {', '.join(groups.too_small)}" if groups.too_small else ""
            ends = f"from {groups.sized(groups.best)} to {groups.sized(groups.worst)}"
            console.print(
                f"  {name}, {column}: gap {groups.gap:.1f} points {ends}{small}",
                soft_wrap=True,
                markup=False,
            )


def _show_languages(across: LanguageComparison) -> None:
    from speech_robust_bench.cli.rendering import plain_table

    table = plain_table("", "language against language", *across.languages)
    for row, cells in across.rows.items():
        scores = (cells.get(language) for language in across.languages)
        table.add_row(row, *(f"{score.value:.1f}" if score else "" for score in scores))
    Console(highlight=False).print(table)


DIAGNOSE = Command(DiagnoseArguments, diagnose)
