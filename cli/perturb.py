"""`srb perturb`: one audio file under one scenario, or under all of them with a page to look at and listen to."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from pathlib import Path

from speech_robust_bench.cli.options import add_bank_options, add_scenarios_option


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("input", metavar="IN", help="an audio file, any rate and number of channels")
    parser.add_argument("output", metavar="OUT", nargs="?", help="16 kHz mono; .wav, .flac, .ogg or .mp3")
    parser.add_argument("--scenario", help="a name from `srb ls`")
    parser.add_argument("--severity", type=_severity, default=0, help="1 is the mildest; 2.5 lies between 2 and 3")
    parser.add_argument("--value", type=float, help="in place of a severity: any value of the scenario's parameter")
    parser.add_argument("--second", metavar="FILE", help="of overlap: the clip of the second talker")
    parser.add_argument("--all", metavar="DIR", help="write every scenario and severity to DIR, with DIR/index.html")
    parser.add_argument("--seed", default="", help="draw another noise, room, ...: any text")
    parser.add_argument("--json", action="store_true", help="print what was done as JSON")
    add_bank_options(parser)
    add_scenarios_option(parser)


def _severity(text: str) -> float:
    return float(text) if float(text) % 1 else int(float(text))


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.builders.banks import Banks
    from speech_robust_bench.builders.custom import load_table
    from speech_robust_bench.core.errors import UserError

    if bool(args.all) == bool(args.output) or bool(args.output) != bool(args.scenario):
        raise UserError("say either OUT and --scenario, or --all DIR")
    table = load_table(args.scenarios)
    banks = Banks(args.noise_dir, args.rir_dir)
    if args.all:
        _all(args, table, banks)
        return
    _keep(args.input, [Path(args.output)], "OUT another name")
    scenario = _find(args, table)
    if args.second and scenario.maker != "mixing":
        raise UserError(f"scenario '{scenario.name}' takes no second clip; only overlap does")
    clip = _read(args.input)
    report = _perturb(args, scenario, args.severity, clip, banks, Path(args.output))
    print(json.dumps(report) if args.json else _line(report))


def _keep(recording: str, outputs: Iterable[Path], instead: str) -> None:
    """Refuse to write over what is read."""
    from speech_robust_bench.core.errors import UserError

    for path in outputs:
        if path.resolve() == Path(recording).resolve():
            raise UserError(f"{path} is the recording itself; give {instead}")


def _find(args: argparse.Namespace, table: dict):
    """The scenario asked for, checked before any audio is read."""
    from speech_robust_bench.builders.scenarios import find

    return find(args.scenario, table).chosen(args.severity, args.value)


def _read(path: str):
    from speech_robust_bench.core import audio
    from speech_robust_bench.core.errors import UserError

    clip = audio.read(path)
    if not len(clip):
        raise UserError(f"{path}: holds no samples")
    return clip


def _perturb(args: argparse.Namespace, scenario, severity: float, clip, banks, out: Path) -> dict:
    from speech_robust_bench.builders.apply import FILE_CORPUS, mix_talkers, perturb_clip
    from speech_robust_bench.core import audio
    from speech_robust_bench.core.seeding import content_id

    if args.second and not args.all:
        perturbed = mix_talkers(clip, _read(args.second), scenario.value(severity))
    else:
        clip_id = content_id(clip)
        perturbed = perturb_clip(scenario, severity, clip, banks, corpus=FILE_CORPUS, clip_id=clip_id, seed=args.seed)
    audio.write(out, perturbed.samples)
    return {
        "input": args.input,
        "output": str(out),
        "scenario": scenario.name,
        "severity": severity,
        "parameters": perturbed.parameters,
        "bank": banks.describe(*scenario.banks),
        "snr_db": perturbed.snr_db,
        "clipped": perturbed.clipped,
        "duration": len(perturbed.samples) / audio.RATE,
    }


def _line(report: dict) -> str:
    drawn = ", ".join(f"{key} {value}" for key, value in report["parameters"].items())
    reached = "" if report["snr_db"] is None else f", SNR reached {report['snr_db']:.2f} dB"
    bank = f", {report['bank']}" if report["bank"] else ""
    return f"{report['output']}: {drawn or report['scenario']}{bank}{reached}, {report['clipped']} samples clipped"


def _all(args: argparse.Namespace, table: dict, banks) -> None:
    from speech_robust_bench.builders import gallery
    from speech_robust_bench.builders.scenarios import perturbations
    from speech_robust_bench.core import audio
    from speech_robust_bench.core.progress import progress

    folder = Path(args.all)
    clean = folder / "clean.flac"
    jobs = {
        folder / (scenario.name + (f"_sev{severity}" if severity else "") + ".flac"): (scenario, severity)
        for scenario in perturbations(table)
        for severity in scenario.levels
    }
    _keep(args.input, [clean, *jobs], "--all another folder")
    clip = _read(args.input)
    gallery.make_folder(folder)
    audio.write(clean, clip)
    reports = []
    with progress() as bar:
        task = bar.add_task("perturbing", total=len(jobs))
        for path, (scenario, severity) in jobs.items():
            reports.append(_perturb(args, scenario, severity, clip, banks, path))
            bar.advance(task)
    gallery.write_page(folder, args.input, table, reports)
    print(json.dumps(reports) if args.json else f"{len(reports)} clips; open {folder / 'index.html'}")
