"""`srb.perturb_file`: an audio file under one scenario; `srb.perturb_all`: under all of them, with a page to listen."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from speech_robust_bench.builders import gallery
from speech_robust_bench.builders.apply import FILE_CORPUS, mix_talkers, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.scenarios import Scenario, find, perturbations
from speech_robust_bench.core import audio
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.seeding import content_id
from speech_robust_bench.data_source import Place
from speech_robust_bench.one_clip import open_banks
from speech_robust_bench.options import ScenarioOptions


def perturb_file(
    recording: Place,
    out: Place,
    scenario: str,
    severity: float = 0,
    *,
    value: float | None = None,
    second: Place | None = None,
    seed: str = "",
    scenario_options: ScenarioOptions = ScenarioOptions(),
) -> dict[str, Any]:
    """Write an audio file under a scenario, 16 kHz and mono, and return what was done to it.

    Args:
        recording: an audio file, any rate and number of channels.
        out: .wav, .flac, .ogg or .mp3.
        scenario, severity, value, seed: as in `srb.perturb`.
        second: for `overlap`, the recording of the second talker.
        scenario_options: where noises, rooms and scenarios of your own come from.
    """
    _keep(recording, [Path(out)], "OUT another name")
    row = find(scenario, load_table(scenario_options.scenario_file)).chosen(severity, value)
    if second is not None and row.maker != "mixing":
        raise UserError(f"scenario '{row.name}' takes no second clip; only overlap does")
    clip, banks = _read(recording), open_banks(scenario_options.noise_dir, scenario_options.rir_dir)
    if second is None:
        return _perturbed(recording, clip, Path(out), row, severity, banks, seed)
    mixed = mix_talkers(clip, _read(second), row.value(severity))
    return _written(recording, Path(out), row, severity, banks, mixed)


def perturb_all(
    recording: Place,
    folder: Place,
    *,
    seed: str = "",
    scenario_options: ScenarioOptions = ScenarioOptions(),
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Write an audio file under every scenario and severity, with a page to look at and listen to.

    Args:
        recording: an audio file.
        folder: where the files and `index.html` go.
        seed, scenario_options: as in `srb.perturb_file`.
        progress: show progress.
    """
    table, place = load_table(scenario_options.scenario_file), Path(folder)
    jobs = {
        place / (scenario.name + (f"_sev{severity}" if severity else "") + ".flac"): (scenario, severity)
        for scenario in perturbations(table)
        for severity in scenario.levels
    }
    _keep(recording, [place / "clean.flac", *jobs], "--all another folder")
    clip, banks = _read(recording), open_banks(scenario_options.noise_dir, scenario_options.rir_dir)
    gallery.make_folder(place)
    audio.write(place / "clean.flac", clip)
    reports = []
    with progress_bar(not progress) as bar:
        task = bar.add_task("perturbing", total=len(jobs))
        for path, (scenario, severity) in jobs.items():
            reports.append(_perturbed(recording, clip, path, scenario, severity, banks, seed))
            bar.advance(task)
    gallery.write_page(place, str(recording), table, reports)
    return reports


def _keep(recording: Place, outputs: Iterable[Path], instead: str) -> None:
    """Refuse to write over what is read."""
    for path in outputs:
        if path.resolve() == Path(recording).resolve():
            raise UserError(f"{path} is the recording itself; give {instead}")


def _read(path: Place) -> Any:
    clip = audio.read(path)
    if not len(clip):
        raise UserError(f"{path}: holds no samples")
    return clip


def _perturbed(
    recording: Place, clip: Any, out: Path, scenario: Scenario, severity: float, banks: Banks, seed: str
) -> dict[str, Any]:
    clip_id = content_id(clip)
    perturbed = perturb_clip(scenario, severity, clip, banks, corpus=FILE_CORPUS, clip_id=clip_id, seed=seed)
    return _written(recording, out, scenario, severity, banks, perturbed)


def _written(
    recording: Place, out: Path, scenario: Scenario, severity: float, banks: Banks, perturbed: Any
) -> dict[str, Any]:
    audio.write(out, perturbed.samples)
    return {
        "input": str(recording),
        "output": str(out),
        "scenario": scenario.name,
        "severity": severity,
        "parameters": perturbed.parameters,
        "bank": banks.describe(*scenario.banks),
        "snr_db": perturbed.snr_db,
        "clipped": perturbed.clipped,
        "duration": len(perturbed.samples) / audio.RATE,
    }
