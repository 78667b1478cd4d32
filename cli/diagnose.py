"""`srb diagnose RUN`: the system report card of a recogniser, in words or as JSON."""

from __future__ import annotations

import argparse
from typing import Any

from speech_robust_bench.cli.options import add_normaliser_option

Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", help="a run folder, runs/<model>")
    parser.add_argument("--language", help="default: every language of the run")
    parser.add_argument("--minimum", type=int, default=10, metavar="N", help="clips that a group needs (default: 10)")
    parser.add_argument("--frequencies", metavar="CSV", help="word,count: how common words are, instead of in the run")
    parser.add_argument("--names", metavar="FILE", help="words that are names, one on a line, instead of by capitals")
    add_normaliser_option(parser)
    parser.add_argument("--out", metavar="FILE", help="write the card as a page (.html) or as data (.json)")
    parser.add_argument("--json", action="store_true", help="the whole card, for programs")


def run(args: argparse.Namespace) -> None:
    import json

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.names import parse
    from speech_robust_bench.scoring.disparity import languages
    from speech_robust_bench.scoring.report_card import aligned, card
    from speech_robust_bench.scoring.results import load
    from speech_robust_bench.scoring.runs import open_run
    from speech_robust_bench.scoring.word_errors import read_frequencies, read_names

    run_folder = open_run(args.folder)
    there = sorted({parse(config).language for config in run_folder.configs})
    if args.language and args.language not in there:
        raise UserError(f"{args.folder} has nothing in '{args.language}'; it has {', '.join(there)}")
    cards = {
        language: card(
            aligned(run_folder, language, args.normaliser),
            minimum=args.minimum,
            frequency=read_frequencies(args.frequencies, args.normaliser) if args.frequencies else None,
            names=read_names(args.names, args.normaliser) if args.names else None,
        )
        for language in ([args.language] if args.language else there)
    }
    across = languages(load(args.folder)) if len(cards) > 1 else None
    text = json.dumps({"cards": cards, "across": across}, indent=1, ensure_ascii=False, allow_nan=False)
    if args.out:
        _write(args.out, run_folder.model, cards, text)
        return
    if args.json:
        print(text)
        return
    for language_card in cards.values():
        _show(language_card)
    if across:
        _show_languages(across)


def _write(out: str, model: str, cards: dict[str, Json], text: str) -> None:
    from pathlib import Path

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.files import replacing
    from speech_robust_bench.report.html import tag
    from speech_robust_bench.report.page import document
    from speech_robust_bench.report.sections.words import LEAD, card

    if Path(out).suffix not in (".html", ".json"):
        raise UserError(f"--out {out}: a card is a page, .html, or data, .json")
    if out.endswith(".html"):
        parts = [tag("section", tag("h2", language), card(language_card)) for language, language_card in cards.items()]
        text = document(tag("div", tag("p", LEAD, class_="lead"), parts), f"System report card: {model}")
    with replacing(Path(out)) as part:
        part.write_text(text, encoding="utf-8")
    print(f"{out}: {model}, {', '.join(cards)}")


def _show(card: Json) -> None:
    from speech_robust_bench.core.console import Console

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
    from speech_robust_bench.core.console import Console

    table = _table("language against language", *across["languages"])
    for row, cells in across["rows"].items():
        values = (cells.get(language) for language in across["languages"])
        table.add_row(row, *(f"{cell['value']:.1f}" if cell else "" for cell in values))
    Console(highlight=False).print(table)
