"""`srb build`: materialise scenarios as dataset configs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from srb.cli.options import add_bank_options, add_scenarios_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="*", metavar="CONFIG", help="names or globs: en_noise_sev3, 'en-demo_*_sev3'")
    parser.add_argument("--all", action="store_true", help="every config of the corpora given")
    parser.add_argument("--out", default="srb", metavar="DIR", help="where the configs go (default: srb)")
    parser.add_argument(
        "--corpus",
        action="append",
        default=[],
        metavar="LANG[-NAME]=PATH",
        help="where a corpus is, as in en=LibriSpeech or en-tedlium=TEDLIUM_release-3; `demo` is built in",
    )
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N clips")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help="where the work runs")
    parser.add_argument("--address", help="of the Ray cluster; without it, Ray starts on this machine")
    parser.add_argument("--on-error", choices=["stop", "skip"], default="stop", help="what to do about bad clips")
    parser.add_argument("--overwrite", action="store_true", help="build anew what was built from something else")
    parser.add_argument(
        "--tts", metavar="ENGINE", help="for *_tts configs: espeak, flite, yourtts, bark, mms, hf:MODEL"
    )
    parser.add_argument("--to-cache", action="store_true", help='make load_dataset("srb", ...) work from any folder')
    parser.add_argument("--quality", action="store_true", help="add DNSMOS and PESQ columns")
    add_bank_options(parser)
    add_scenarios_option(parser)


def run(args: argparse.Namespace) -> None:
    from srb.builders.banks import Banks
    from srb.builders.build import build
    from srb.builders.corpora import parse_flags
    from srb.builders.custom import load_table
    from srb.builders.engines import open_engine
    from srb.builders.errors import UserError
    from srb.builders.plan import DEMO, available, plan
    from srb.cli.progress import tasks

    if bool(args.all) == bool(args.config):
        raise UserError("say which configs: names, globs such as 'en-demo_*_sev3', or --all")
    if args.workers < 1 or (args.limit is not None and args.limit < 1):
        raise UserError("--workers and --limit are 1 or more")
    table = load_table(args.scenarios)
    given = parse_flags(args.corpus)
    sources = {**DEMO, **given}
    jobs = available(given or DEMO, table) if args.all else plan(args.config, sources, table)
    out = Path(args.out)
    engine = open_engine(args.engine, args.workers, args.address)
    with tasks() as show:
        try:
            built = build(
                jobs,
                sources,
                out,
                engine,
                show,
                banks=Banks(args.noise_dir, args.rir_dir),
                limit=args.limit,
                tts=args.tts,
                on_error=args.on_error,
                overwrite=args.overwrite,
                report=lambda problem: print(problem, file=sys.stderr),
            )
        finally:
            engine.close()
        names = [str(job.name) for job in jobs]
        if args.quality:
            from srb.builders.quality_columns import score

            score(out, names, show, workers=args.workers)
        if args.to_cache:
            from srb.builders.dataset import to_cache

            advance = show("to the datasets cache", len(names))
            for name in names:
                to_cache(out, name)
                advance(1)
    skipped = f", {len(built.problems)} clips left out" if built.problems else ""
    print(f"{out}: {len(built.made)} configs built, {len(built.reused)} already there{skipped}")
