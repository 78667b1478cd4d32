"""`srb run`: a recogniser over dataset configs, into one predictions file each."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

EPILOG = """examples:
  srb run --model moonshine 'en-demo_*'
  srb run --model hf:openai/whisper-tiny.en?dtype=float16 --device cuda en_clean 'en_noise_sev*'
  srb run --model python:mymodule:transcribe --data mshah1/speech_robust_bench_public en_gaussian_sev2 --limit 100
A run that was interrupted goes on where it stopped when the same command is given again."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "configs", nargs="*", metavar="CONFIG", help="configs or patterns (en_noise_sev*); all, if none"
    )
    parser.add_argument(
        "--model", required=True, metavar="M", help="adapter:target?option=value&...; see docs/models.md"
    )
    parser.add_argument(
        "--data", default="srb", help="a built folder, a name in the datasets cache, or a Hub dataset (default: srb)"
    )
    parser.add_argument("--out", default="runs", help="predictions go to OUT/<model>/<config>.jsonl (default: runs)")
    parser.add_argument("--name", help="the model's folder in OUT, where its own name will not do")
    parser.add_argument("--limit", type=_positive, metavar="N", help="only the first N clips of each config")
    parser.add_argument("--batch-size", type=_positive, metavar="N", help="clips at a time (default: the adapter's)")
    parser.add_argument("--batch-seconds", type=float, metavar="S", help="at most S seconds of padded audio at a time")
    parser.add_argument("--device", help="where the model runs, for adapters that have the choice: cpu, cuda, cuda:1")
    parser.add_argument("--retry-failed", action="store_true", help="try the clips again that failed before")
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="ray: spread configs over a cluster"
    )
    parser.add_argument(
        "--workers", type=_positive, help="with --engine ray: how many models (default: one per GPU, or per node)"
    )
    parser.add_argument("--quiet", action="store_true", help="no progress bar")


def _positive(text: str) -> int:
    if (value := int(text)) < 1:
        raise argparse.ArgumentTypeError("must be 1 or more")
    return value


def run(args: argparse.Namespace) -> int:
    from srb.cli.progress import progress
    from srb.models.data import open_data, select
    from srb.models.interface import check_spec, parse_spec
    from srb.models.runner import Runner

    spec = parse_spec(args.model)
    check_spec(spec)
    data = open_data(args.data)
    names = select(data, args.configs, args.data)
    folder = Path(args.out) / (args.name or spec.folder)
    settings: dict[str, Any] = {
        "spec": spec,
        "text": args.model,
        "folder": folder,
        "where": args.data,
        "device": args.device,
        "batch_size": args.batch_size,
        "batch_seconds": args.batch_seconds,
        "limit": args.limit,
        "retry_failed": args.retry_failed,
    }
    if args.engine == "ray":
        from srb.models.cluster import run_on_ray

        records = run_on_ray(settings, names, args.workers, args.quiet)
    else:
        runner = Runner(**settings)
        configs = [data.config(name) for name in names]
        total = sum(row.duration for config in configs for row in config.rows[: args.limit])
        records = {}
        with progress(args.quiet) as bar:
            task = bar.add_task("", total=round(total))
            done = 0.0

            def advance(seconds: float) -> None:
                nonlocal done
                done += seconds
                bar.update(task, completed=round(done))

            try:
                for number, config in enumerate(configs, 1):
                    bar.update(task, description=f"{config.name} {number}/{len(configs)}, audio s")
                    records[config.name] = runner.run(config, advance)
            finally:
                runner.close()
    summarise(folder, records)
    return 0


def summarise(folder: Path, records: dict[str, dict[str, Any]]) -> None:
    """Where the predictions are, how fast they came, and what failed."""
    rows, failed = (sum(record[key] for record in records.values()) for key in ("rows", "failed"))
    audio_s, seconds = (sum(record[key] for record in records.values()) for key in ("audio_s", "seconds"))
    speed = f", real-time factor {seconds / audio_s:.4f}" if audio_s and seconds else ""
    print(f"{folder}: {len(records)} configs, {rows} clips, {audio_s / 3600:.2f} h{speed}")
    if failed:
        print(f'{failed} clips failed; see "error" in the files, --retry-failed tries them again', file=sys.stderr)
