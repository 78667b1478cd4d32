"""`srb run`: a recogniser over dataset configs, into one predictions file each."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.cli.options import add_corpus_options, perturbed_configs, positive
from speech_robust_bench.core.errors import UserError

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import ConfigSource
    from speech_robust_bench.builders.live_config import LiveConfig, LiveConfigs
    from speech_robust_bench.builders.suites import Suite
    from speech_robust_bench.core.records import RunConfig
    from speech_robust_bench.models.model_file import ModelEntry

EPILOG = """examples:
  srb run --model moonshine 'en-demo_*' --corpus en-demo
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --noise-dir noises/
  srb run --model hf:openai/whisper-tiny.en?dtype=float16 --device cuda en_clean 'en_noise_sev*'
  srb run --model moonshine 'en_*' --corpus en=LibriSpeech --until 1.0
  srb run --model moonshine --suite fast --corpus en=LibriSpeech --tts espeak
  srb run --model python:mymodule:transcribe --data mshah1/speech_robust_bench_public en_gaussian_sev2 --limit 100
With --corpus the clips are perturbed while the model works, and no audio is stored; with --data they were built before.
A run that was interrupted goes on where it stopped when the same command is given again."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    parser.add_argument(
        "configs", nargs="*", metavar="CONFIG", help="configs or patterns (en_noise_sev*); all, if none"
    )
    parser.add_argument(
        "--suite",
        metavar="NAME",
        help="instead: a part of the benchmark (`srb ls --suite` lists them), or a file of `srb anchors`",
    )
    parser.add_argument(
        "--model",
        required=True,
        metavar="M",
        help="adapter:target?option=value&..., or @models.yaml; docs/models.md",
    )
    parser.add_argument("--data", help="a built folder, a name in the datasets cache, or a Hub dataset (default: srb)")
    parser.add_argument("--out", default="runs", help="predictions go to OUT/<model>/<config>.jsonl (default: runs)")
    parser.add_argument("--name", help="the model's name in all tables, and its folder in OUT (default: its own name)")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="REQ",
        help="run the model in an environment that has REQ",
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="only the first N clips of each config")
    parser.add_argument(
        "--until",
        type=_points,
        metavar="POINTS",
        help="go on, where it helps most, until the interval of the average NWERD is narrower than that",
    )
    parser.add_argument("--batch-size", type=positive, metavar="N", help="clips at a time (default: the adapter's)")
    parser.add_argument("--batch-seconds", type=float, metavar="S", help="at most S seconds of padded audio at a time")
    parser.add_argument("--device", help="where the model runs, for adapters that have the choice: cpu, cuda, cuda:1")
    parser.add_argument("--retry-failed", action="store_true", help="try the clips again that failed before")
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="ray: spread configs over a cluster"
    )
    parser.add_argument(
        "--workers", type=positive, help="with --engine ray: how many models (default: one per GPU, or per node)"
    )
    parser.add_argument("--stream", action="store_true", help="use it live: chunk by chunk, timelines are stored")
    parser.add_argument("--chunk-ms", type=positive, default=100, metavar="MS", help="of --stream (default: 100)")
    parser.add_argument(
        "--speed", type=float, default=1.0, metavar="F", help="of --stream: as on a machine F times as fast"
    )
    parser.add_argument(
        "--realtime", action="store_true", help="of --stream: wait for the audio to be spoken, as servers need it"
    )
    parser.add_argument(
        "--processor-time",
        action="store_true",
        help="of --stream: count the processor time of srb itself, all threads; for a busy machine",
    )
    parser.add_argument(
        "--repeats",
        type=positive,
        default=1,
        metavar="N",
        help="of --stream: send every clip N times, the quickest of each call counts; for a busy machine",
    )
    parser.add_argument("--yes", action="store_true", help="run a paid endpoint although it will cost more than 1 $")
    parser.add_argument("--quiet", action="store_true", help="no progress bar")
    perturbing = parser.add_argument_group("perturbing instead of reading what was built")
    add_corpus_options(perturbing)
    perturbing.add_argument("--perturb-workers", type=positive, metavar="N", help="processes that perturb")


def _points(text: str) -> float:
    from speech_robust_bench.models.adaptive_run import check_width

    value: Any = text
    with contextlib.suppress(ValueError):
        value = float(text)
    try:
        check_width(value)
    except UserError as wrong:
        raise argparse.ArgumentTypeError(str(wrong)) from None
    return value


def run(args: argparse.Namespace) -> int:
    """The model, or each model of a file; the exit code is that of the worst."""
    if not args.model.startswith("@"):
        return _run_one(args)
    from speech_robust_bench.models.model_file import read_models

    if args.name:
        raise UserError("--name is for one model; the models of a file have their names there")
    entries = read_models(args.model)
    if args.engine == "ray":
        return _run_models_on_ray(args, entries)
    return max(_run_one(_for_entry(args, entry)) for entry in entries)


def _for_entry(args: argparse.Namespace, entry: ModelEntry) -> argparse.Namespace:
    """The same command for one model of a file."""
    chosen = {"model": entry.spec, "name": entry.name, "env": [*entry.env, *args.env]}
    return argparse.Namespace(**{**vars(args), **chosen})


def _run_models_on_ray(args: argparse.Namespace, entries: list[ModelEntry]) -> int:
    """Every model is one worker's, with a GPU of its own where there are enough; one after another on each."""
    from speech_robust_bench.core.engines import RayActors

    commands = [_for_entry(args, entry) for entry in entries]
    local = [(argparse.Namespace(**{**vars(command), "engine": "local", "quiet": True}),) for command in commands]
    actors = RayActors(ModelWorker, (str(Path.cwd()),), args.workers, most=len(local))
    codes = []
    try:
        for code, printed in actors.map_unordered("run", local):
            print(printed, end="", flush=True)
            codes.append(code)
    finally:
        actors.close()
    return max(codes)


class ModelWorker:
    """Runs whole models on a cluster, in the folder that the command was given in."""

    def __init__(self, folder: str) -> None:
        os.chdir(folder)

    def run(self, args: argparse.Namespace) -> tuple[int, str]:
        """The exit code, and what was printed."""
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = _run_one(args)
        return code, printed.getvalue()


def _run_one(args: argparse.Namespace) -> int:
    from speech_robust_bench.models.costs import check_cost, estimated_cost
    from speech_robust_bench.models.interface import check_spec, parse_spec
    from speech_robust_bench.models.predictions import error_of_all
    from speech_robust_bench.models.runner import RunJob, run_with_progress
    from speech_robust_bench.models.streaming.replay import StreamOptions

    spec = parse_spec(args.model)
    check_spec(spec)
    perturbed = perturbed_configs(args) if args.corpus else None
    suite = _suite(args)
    if perturbed:
        wanted = suite.configs(perturbed.sources, tts=bool(args.tts)) if suite else args.configs
        names, where = perturbed.select(wanted), perturbed.where
    else:
        data, names, where = _stored(args, suite)
    if args.until is not None:
        names = _with_clean(names, None if perturbed else data.names(), args.quiet)
    suffix = "-live" if args.stream and spec.adapter != "live" else ""
    options = RunJob(
        spec=spec,
        folder=Path(args.out) / (args.name or spec.folder + suffix),
        where=where,
        name=args.name,
        environment=tuple(args.env),
        device=args.device,
        batch_size=args.batch_size,
        batch_seconds=args.batch_seconds,
        limit=None if perturbed else args.limit,
        retry_failed=args.retry_failed,
        pace=StreamOptions(args.chunk_ms, args.speed, args.realtime, args.processor_time, args.repeats)
        if args.stream
        else None,
        source=perturbed,
        suite=suite,
    )
    try:
        configs = _opened(perturbed, names, args.quiet) if perturbed else [data.config(name) for name in names]
        cost = estimated_cost(options, configs)
        check_cost(cost, args.yes)
        if args.until is not None:
            from speech_robust_bench.models.adaptive_run import run_until

            say, warn = (lambda line: None) if args.quiet else print, partial(print, file=sys.stderr)
            records = run_until(options, configs, args.until, say, warn)
        elif args.engine == "ray":
            from speech_robust_bench.models.ray_run import run_on_ray

            records = run_on_ray(options, names, args.workers, args.quiet)
        else:
            records = run_with_progress(options, configs, args.quiet)
    finally:
        if perturbed:
            perturbed.close()
    summarise(options.folder, records)
    if cost:
        print(f"cost: about {cost:.2f} $ by the price list")
    if error := error_of_all(options.folder, records):
        print(f"every clip failed, the first with: {error}", file=sys.stderr)
    return 1 if error else 0


def _suite(args: argparse.Namespace) -> Suite | None:
    from speech_robust_bench.builders.suites import load

    if args.suite and args.configs:
        raise UserError("say either configs or --suite")
    if args.until is not None:
        from speech_robust_bench.models.adaptive_run import check_until

        check_until(args.until, suite=bool(args.suite), stream=args.stream, ray=args.engine == "ray")
    return load(args.suite) if args.suite else None


def _stored(args: argparse.Namespace, suite: Suite | None) -> tuple[ConfigSource, list[str], str]:
    from speech_robust_bench.builders.config_sources import open_data, select

    where = args.data or "srb"
    data = open_data(where)
    return data, select(data, suite.on_data(data.names()) if suite else args.configs, where), where


def _with_clean(names: list[str], there: list[str] | None, quiet: bool) -> list[str]:
    """The configs and the clean ones that --until compares them with; those that were not asked for are named."""
    from speech_robust_bench.core.names import with_clean

    chosen = with_clean(names, there)
    if (added := [name for name in chosen if name not in names]) and not quiet:
        print(f"added {', '.join(added)}, which the others are compared with")
    return chosen


def _opened(perturbed: LiveConfigs, names: list[str], quiet: bool) -> list[LiveConfig]:
    """The configs, once every clip has been checked."""
    from speech_robust_bench.core.progress import tasks

    with tasks(quiet) as show:
        perturbed.progress = show
        return perturbed.configs(names)


def summarise(folder: Path, records: dict[str, RunConfig]) -> None:
    """Where the predictions are, how fast they came, and what failed."""
    rows, failed = (sum(getattr(record, key) for record in records.values()) for key in ("rows", "failed"))
    audio_s, seconds = (sum(getattr(record, key) for record in records.values()) for key in ("audio_s", "seconds"))
    speed = f", real-time factor {seconds / audio_s:.4f}" if audio_s and seconds else ""
    print(f"{folder}: {len(records)} configs, {rows} clips, {audio_s / 3600:.2f} h{speed}")
    if failed:
        print(f'{failed} clips failed; see "error" in the files, --retry-failed tries them again', file=sys.stderr)
