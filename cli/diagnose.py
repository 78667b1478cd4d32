"""`srb diagnose RUN`: the system report card of a recogniser, in words or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import json_option, run_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option, option_group

Json = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    run: str = run_argument()
    diagnose_options: srb.DiagnoseOptions = option_group(srb.DiagnoseOptions)
    out: str | None = option(None, "write the card as a page (.html) or as data (.json)", metavar="FILE")
    json: bool = json_option("print the whole card as JSON")


def run(args: Arguments) -> None:
    diagnosis = srb.diagnose(args.run, args.diagnose_options)
    if args.out:
        print(f"{diagnosis.write(args.out)}: {diagnosis.model}, {', '.join(diagnosis.cards)}")
        return
    if args.json:
        print(diagnosis.to_json())
        return
    for card in diagnosis.cards.values():
        _show(card)
    if diagnosis.across:
        _show_languages(diagnosis.across)


def _show(card: Json) -> None:
    from speech_robust_bench.core.progress import Console

    console = Console(highlight=False)
    console.print(f"[bold]{card['model']}[/] in {card['language']}, {card['normaliser']}")
    parts = [name for name in ("clean", "hard") if name in card]
    table = _table("", *parts)
    for title, cell in (
        ("WER", lambda part: f"{part['wer']:.1f}"),
        ("clips", lambda part: str(part["clips"])),
        ("median, 90th, 99th percentile clip", lambda part: " ".join(f"{part['spread'][p]:.0f}" for p in _P)),
        ("bursts of inserted words", lambda part: str(part["hallucination"]["bursts"])),
        ("repetition loops", lambda part: str(part["hallucination"]["loops"])),
    ):
        table.add_row(title, *(cell(card[name]) for name in parts))
    table.add_row("[bold]missed, % of[/]")
    for kind in dict.fromkeys(kind for name in parts for kind in card[name]["kinds"]):
        rows = [card[name]["kinds"][kind] for name in parts]
        table.add_row(f"  {kind}", *("" if r["rate"] is None else f"{r['rate']:.1f} of {r['said']}" for r in rows))
    for what in dict.fromkeys(what for name in parts for what in card[name]["conditions"]):
        table.add_row(f"[bold]WER by {what}[/]")
        bins = {name: {row["bin"]: row for row in card[name]["conditions"].get(what, [])} for name in parts}
        starts = {label: row["from"] for rows in bins.values() for label, row in rows.items()}
        for label in sorted(starts, key=lambda label: (starts[label] is not None, starts[label])):
            cells = (bins[name].get(label) for name in parts)
            table.add_row(f"  {label}", *(f"{c['wer']:.1f} ({c['clips']})" if c else "" for c in cells))
    console.print(table)
    for name in parts:
        _show_part(name, card[name], console)
    for row in (r for r in card["lwerr"] if r["severity"] is None and r["lwerr"] is not None):
        span = f" ({row['interval'][0]:+.2f} to {row['interval'][1]:+.2f})" if row["interval"] else ""
        console.print(f"  LWERR of women over men, {row['corpus']} {row['category']}: {row['lwerr']:+.2f}{span}")
    if card["reject"]:
        invented = card["reject"]
        console.print(
            f"no speech: words in {invented['clips_with_words']} of {invented['clips']} clips, "
            f"{invented['words']} words, {invented['loops']} loops"
            + "".join(f"; '{text}' x {times}" for text, times in invented["phrases"])
        )
    if card.get("untranscribed"):
        written = card["untranscribed"]
        console.print(
            f"no transcripts: {written['words']} words in {written['clips']} clips, "
            f"{written['clips'] - written['clips_with_words']} clips without any, {written['loops']} loops"
        )
    for kind, why in card["unknown"].items():
        console.print(f"{kind}: {why}")


_P = ("p50", "p90", "p99")


def _show_part(name: str, part: Json, console) -> None:
    for example in part["hallucination"]["examples"][:3]:
        text = example["text"] if len(example["text"]) < 60 else example["text"][:57] + "..."
        console.print(
            f"  {name} {example['kind']} in {example['config']} {example['id']}: {text}", soft_wrap=True, markup=False
        )
    worst = ", ".join(f"{row['speaker']} {row['wer']:.1f}" for row in part["speakers"]["worst"])
    if worst:
        console.print(f"  {name}, worst speakers: {worst}", soft_wrap=True, markup=False)
    for column, disparity in part["groups"].items():
        if disparity["gap"] is not None:
            small = f", too small: {', '.join(disparity['too_small'])}" if disparity["too_small"] else ""
            console.print(
                f"  {name}, {column}: gap {disparity['gap']:.1f} points "
                f"from {disparity['best']} to {disparity['worst']}{small}",
                soft_wrap=True,
                markup=False,
            )


def _table(*columns: str):
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _show_languages(across: Json) -> None:
    from speech_robust_bench.core.progress import Console

    table = _table("language against language", *across["languages"])
    for row, cells in across["rows"].items():
        values = (cells.get(language) for language in across["languages"])
        table.add_row(row, *(f"{cell['value']:.1f}" if cell else "" for cell in values))
    Console(highlight=False).print(table)


COMMAND = Command(Arguments, run)
