"""`srb build`: materialise scenarios as dataset configs."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from speech_robust_bench.cli.options import add_corpus_options


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="*", metavar="CONFIG", help="names or globs: en_noise_sev3, 'en-demo_*_sev3'")
    parser.add_argument("--all", action="store_true", help="every config of the corpora given")
    parser.add_argument(
        "--split",
        choices=["test", "dev"],
        default="test",
        help="dev: of LibriSpeech, MLS, TED-LIUM, as en-tedliumdev_...",
    )
    parser.add_argument("--out", metavar="DIR", help="where the configs go (default: srb)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N clips")
    parser.add_argument("--workers", type=int, default=1, metavar="N", help="processes (default: 1)")
    parser.add_argument("--engine", choices=["local", "ray"], default="local", help="where the work runs")
    parser.add_argument("--address", help="of the Ray cluster; without it, Ray starts on this machine")
    parser.add_argument("--overwrite", action="store_true", help="build anew what was built from something else")
    parser.add_argument(
        "--secret", metavar="FILE", help="a private edition: the secret in FILE is mixed into everything that is drawn"
    )
    parser.add_argument(
        "--to-cache",
        action="store_true",
        help='make load_dataset("srb", ...) work from any folder; without --out and ./srb, the cache has the only copy',
    )
    parser.add_argument("--quality", action="store_true", help="add DNSMOS and PESQ columns")
    add_corpus_options(parser)


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.builders.banks import Banks
    from speech_robust_bench.builders.build import BuildOptions, build
    from speech_robust_bench.builders.build_size import BuildSize
    from speech_robust_bench.builders.corpora import dev_splits, parse_flags
    from speech_robust_bench.builders.custom import load_table
    from speech_robust_bench.builders.plan import DEMO, available, plan, uninstalled, unspoken
    from speech_robust_bench.core.about import install_hint
    from speech_robust_bench.core.engines import open_engine
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import tasks
    from speech_robust_bench.core.seeding import read_secret
    from speech_robust_bench.scoring.bank_provenance import is_stand_in

    if bool(args.all) == bool(args.config):
        raise UserError("say which configs: names, globs such as 'en-demo_*_sev3', or --all")
    if args.workers < 1 or (args.limit is not None and args.limit < 1):
        raise UserError("--workers and --limit are 1 or more")
    table = load_table(args.scenarios)
    given = parse_flags(args.corpus, args.follow_links)
    if args.split == "dev":
        given, args.config = dev_splits(given, args.config)
    sources = {**DEMO, **given}
    jobs = available(given or DEMO, table) if args.all else plan(args.config, sources, table)
    for name in unspoken(["*"] if args.all else args.config, given or DEMO):
        print(f"not {name}, which needs a voice: srb build {name} --tts ENGINE (docs/corpora.md)", file=sys.stderr)
    if left_out := uninstalled(["*"] if args.all else args.config, given or DEMO, table):
        print(f"not {', '.join(left_out)}, which need more packages: {install_hint('codecs')}", file=sys.stderr)
    out, copy_to_cache = _places(args.out, args.to_cache)
    banks = Banks(args.noise_dir, args.rir_dir)

    def announce(size: BuildSize) -> None:
        again = ", and as much again in the datasets cache" if copy_to_cache else ""
        print(f"{out}: {size}{again}", file=sys.stderr, flush=True)
        if any(is_stand_in(banks.describe(*job.scenario.banks)) for job in jobs):
            print("noises or rooms are of the built-in bank, not the paper's: --noise-dir, --rir-dir", file=sys.stderr)

    secret = read_secret(Path(args.secret)) if args.secret else b""
    options = BuildOptions(args.limit, args.tts, args.on_error, args.overwrite, secret)
    engine = open_engine(
        args.engine, args.workers, args.address, preload=["speech_robust_bench.builders.forkserver_preload"]
    )
    with tasks() as show:
        try:
            built = build(
                jobs,
                sources,
                out,
                engine,
                show,
                banks,
                options,
                lambda problem: print(problem, file=sys.stderr),
                announce,
            )
        finally:
            engine.close()
        names = [str(job.name) for job in jobs]
        if args.quality:
            from speech_robust_bench.builders.quality_columns import score

            score(out, names, show, workers=args.workers)
        if copy_to_cache:
            from speech_robust_bench.builders.dataset import to_cache

            advance = show("to the datasets cache", len(names))
            for name in names:
                to_cache(out, name)
                advance(1)
    skipped = f", {len(built.problems)} clips left out" if built.problems else ""
    print(f"{out}: {len(built.made)} configs built, {len(built.reused)} already there{skipped}")


def _places(given: str | None, to_cache: bool) -> tuple[Path, bool]:
    """Where the configs go, and whether the `datasets` cache gets a copy of them.

    With --to-cache and no folder, the cache itself is where they go, and `./srb` a link to it: so the names of its
    configs can be listed here.
    """
    from speech_robust_bench.builders.manifests import CACHE_MARKER

    out = Path(given or "srb")
    links_to_a_cache = out.is_symlink() and (out / CACHE_MARKER).is_file()
    if given or not to_cache or (out.is_dir() and not links_to_a_cache):
        return out, to_cache
    from speech_robust_bench.builders.dataset import open_cache_folder

    folder = open_cache_folder()
    try:
        if links_to_a_cache:
            if not out.samefile(folder):
                print(f"srb: is a link to {folder} from now on; before, it was to {out.readlink()}", file=sys.stderr)
            out.unlink()
        out.symlink_to(folder.absolute(), target_is_directory=True)
    except OSError:  # no links here
        return folder, False
    return out, False
