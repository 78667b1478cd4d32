"""`srb report`: one self-contained page about any number of runs."""

from __future__ import annotations

import argparse

from speech_robust_bench.cli.options import add_corpus_options, config_source, shares


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", metavar="RUN", help="run folders; one without results is scored first")
    parser.add_argument(
        "--out",
        default="report.html",
        metavar="FILE",
        help="the page (default: report.html); its cards go beside it as .json",
    )
    parser.add_argument("--data", help="where the built configs are, for the audio of the worst clips")
    add_corpus_options(parser.add_argument_group("the audio of a run that was not built, as for `srb run`"))
    parser.add_argument(
        "--embed-audio", type=int, metavar="N", help="of the N worst clips of each model (6 with --data or --corpus)"
    )
    parser.add_argument(
        "--meta", metavar="CSV", help="what is known of the models: model, parameters, hours, architecture, family"
    )
    parser.add_argument(
        "--population", nargs="+", metavar="GROUP=SHARE", help="shares of groups of speakers, as in female=0.5 male=0.5"
    )
    parser.add_argument("--title", default="Speech Robust Bench", help="above the page")


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.report import report_data
    from speech_robust_bench.report.page import write
    from speech_robust_bench.report.report_data import gather

    data = config_source(args) if args.data or args.corpus else None
    if args.embed_audio and not data:
        raise UserError("--embed-audio needs --data, the folder or dataset that the clips are in, or --corpus")
    embed = args.embed_audio if args.embed_audio is not None else 6 if data else 0
    if embed < 0:
        raise UserError("--embed-audio is a number of clips, 0 for none")
    known = report_data.read(args.meta) if args.meta else None
    population = shares("--population", args.population)
    with progress() as bar:
        task = bar.add_task("scoring, looking at words", total=2 * len(args.folder))
        report = gather(
            args.folder,
            meta=known,
            data=data,
            embed=embed,
            population=population,
            advance=lambda: bar.advance(task),
        )
    page, cards = write(report, args.out, args.title)
    print(f"{page}: {len(args.folder)} models, {page.stat().st_size / 1e6:.1f} MB; report cards as data: {cards}")
