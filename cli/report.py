"""`srb report`: one self-contained page about any number of runs."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", metavar="RUN", help="run folders; one without results is scored first")
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE",
        help="the page (default: report.html); its cards go beside it as .json",
    )
    parser.add_argument("--data", help="where the configs are, for the audio of the worst clips")
    parser.add_argument(
        "--embed-audio", type=int, metavar="N", help="of the N worst clips of each model (6 with --data)"
    )
    parser.add_argument(
        "--meta", metavar="CSV", help="what is known of the models: model, parameters, hours, architecture"
    )
    parser.add_argument("--title", default="Speech Robust Bench", help="above the page")


def run(args: argparse.Namespace) -> None:
    from srb.builders.errors import UserError
    from srb.cli.progress import progress
    from srb.report import metadata
    from srb.report.gather import gather
    from srb.report.page import write

    if args.embed_audio and not args.data:
        raise UserError("--embed-audio needs --data, the folder or dataset that the clips are in")
    embed = args.embed_audio if args.embed_audio is not None else 6 if args.data else 0
    if embed < 0:
        raise UserError("--embed-audio is a number of clips, 0 for none")
    known = metadata.read(args.meta) if args.meta else None
    with progress() as bar:
        task = bar.add_task("scoring, looking at words", total=2 * len(args.folder))
        made = gather(args.folder, meta=known, data=args.data, embed=embed, advance=lambda: bar.advance(task))
    page, cards = write(made, args.out, args.title)
    print(f"{page}: {len(args.folder)} models, {page.stat().st_size / 1e6:.1f} MB; report cards as data: {cards}")
