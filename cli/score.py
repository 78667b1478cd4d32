"""`srb score`: from predictions to `results.json`. Needs no model and no audio."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from speech_robust_bench.cli.options import add_normaliser_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="+", metavar="RUN", help="run folders, as in runs/moonshine")
    add_scoring_options(parser)
    add_allow_changed(parser)


def add_allow_changed(parser: argparse.ArgumentParser) -> None:
    """For commands that read run folders: take edited files as they are."""
    parser.add_argument(
        "--allow-changed", action="store_true", help="take predictions or results that were edited after the run"
    )


def add_scoring_options(parser: argparse.ArgumentParser) -> None:
    """How to score: the fields of `scoring.results.Options`."""
    add_normaliser_option(parser)
    parser.add_argument(
        "--conventions",
        metavar="CSV",
        help="more of what may be written in several ways, for WER lenient (docs/metrics.md)",
    )
    parser.add_argument(
        "--embeddings", metavar="FOLDER", help="a sentence-embedding model: how far the meaning is from what was said"
    )
    parser.add_argument("--unit", choices=("word", "char", "char-nospace"), help="default: what the language calls for")
    parser.add_argument(
        "--table", dest="difficulty", default="paper-table3", help="difficulty table: a name, or the path of a CSV file"
    )
    parser.add_argument("--floor", action="store_true", help="count a negative WERD as 0, as the authors' code does")
    parser.add_argument("--by-speaker", action="store_true", help="resample speakers instead of clips")
    parser.add_argument("--replicates", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1000)")
    parser.add_argument("--level", type=float, default=0.95, help="of the intervals (default: 0.95)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")


def run(args: argparse.Namespace) -> None:
    from dataclasses import fields
    from pathlib import Path

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.scoring.results import NAME, Options, all_entries, score_run

    if args.replicates < 0 or not 0 < args.level < 1:
        raise UserError("--replicates is 0 or more, --level between 0 and 1")
    options = Options(**{field.name: getattr(args, field.name) for field in fields(Options)})
    scored = []
    with progress() as bar:
        task = bar.add_task("scoring", total=len(args.folder))
        for folder in args.folder:
            scored.append(score_run(folder, options, allow_changed=args.allow_changed))
            bar.advance(task)
    for folder, results in zip(args.folder, scored, strict=True):
        print(f"{Path(folder) / NAME}: {len(all_entries(results))} configs{_headline(results)}")
        for problem in _problems(results):
            print(f"  {problem}", file=sys.stderr)


def _headline(results: dict[str, Any]) -> str:
    parts = []
    for language, rows in results["languages"].items():
        clean = [row["wer"]["value"] for row in rows["clean"].values() if row["wer"]]
        lenient = [results["configs"][config].get("wer_lenient") for config in rows["clean"]]
        known = [score["value"] for score in lenient if score]
        both = f" / lenient {sum(known) / len(known):.1f}" if known else ""
        parts += [f"{language} clean WER {sum(clean) / len(clean):.1f}{both}"] if clean else []
        parts += [f"NWERD {rows['overall']['nwerd']['value']:.1f}"] if rows["overall"]["nwerd"] else []
    return "".join(f", {part}" for part in parts)


def _problems(results: dict[str, Any]) -> list[str]:
    """What a reader of the numbers has to know: failed clips, unfinished configs, scores that cannot be given."""
    from speech_robust_bench.scoring.results import all_entries

    failed = {config: entry for config, entry in all_entries(results).items() if entry["failed"]}
    lines = [f"{c}: {e['failed']} clips failed, scored as if their transcripts were empty" for c, e in failed.items()]
    lines += [f"{config}: not finished; `srb run` goes on with it" for config in results["unfinished"]]
    lost = {config: e["why"]["werd"] for config, e in results["configs"].items() if "werd" in e["why"]}
    lines += [f"{config}: no WERD, {why}" for config, why in lost.items()]
    unknown = results.get("untranscribed", {})
    return lines + [
        f"{config}: no WER of {entry['rows']} clips without a transcript" for config, entry in unknown.items()
    ]
