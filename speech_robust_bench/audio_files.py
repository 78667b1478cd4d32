"""`srb.perturb`: one clip under one scenario, the same samples as that row of the dataset config.

`srb.perturb_file` does it with an audio file; `srb.perturb_all` makes a page to listen to, with every scenario.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

from speech_robust_bench.builders import gallery
from speech_robust_bench.builders.apply import FILE_CORPUS, mix_clips, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.custom import load_table, transform_scenario
from speech_robust_bench.builders.gallery import FileReport
from speech_robust_bench.builders.scenario import Scenario, check_can_perturb
from speech_robust_bench.builders.scenarios import find, perturbations
from speech_robust_bench.core import audio
from speech_robust_bench.core.audio import RATE, encode_flac, from_pcm16, like, mono_at_benchmark_rate, to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.rows import Parameters
from speech_robust_bench.core.seeding import content_id
from speech_robust_bench.options import Folder, Place, ScenarioOptions


@dataclass(frozen=True)
class PerturbedClip:
    """A clip under a scenario: mono samples at 16 kHz, rounded to 16 bits as stored, and what was drawn for it."""

    samples: Any = field(repr=False)  # float32 in [-1, 1], numpy or torch as the clip was given
    scenario: str
    severity: float
    parameters: Parameters
    snr_db: float | None  # the SNR reached, where noise was added
    clipped: int  # samples that left [-1, 1]
    rate: int = RATE

    @property
    def duration(self) -> float:
        """How long the clip is, in seconds."""
        return len(self.samples) / self.rate

    def _repr_html_(self) -> str:
        """A player for notebooks."""

        import numpy as np

        sound = b64encode(encode_flac(to_pcm16(np.asarray(self.samples)))).decode()
        drawn = ", ".join(f"{key} {value}" for key, value in self.parameters.items())
        title = f"{self.scenario}{f' {self.severity:g}' if self.severity else ''}"

        return (
            f"<figure><figcaption>{escape(f'{title}: {drawn}' if drawn else title)}</figcaption>"
            f'<audio controls src="data:audio/flac;base64,{sound}"></audio></figure>'
        )


def perturb(
    samples: Any,
    rate: int,
    scenario: Any,
    severity: float = 0,
    *,
    value: float | None = None,
    corpus: str = FILE_CORPUS,
    id: str | None = None,
    seed: str = "",
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    scenario_file: Folder = None,
    second: Any = None,
) -> PerturbedClip:
    """Apply a scenario to a clip.

    Args:
        samples: the clip, numpy or torch, int16 or float in [-1, 1], any number of channels (they are averaged).
        rate: its sample rate in Hz; it is converted to 16 kHz.
        scenario: a name of `srb.scenarios()`, or a transform of audiomentations.
        severity: 1 is the mildest, 2.5 lies between 2 and 3; leave it out where the scenario has none.
        value: in place of a severity, any value of the scenario's parameter: `perturb(x, 16000, "noise", value=-5)`.
        corpus, id: the clip's name. The clip of that id in the dataset config gets the same samples. Without an
            id the draw depends on the samples themselves.
        seed: any text; another seed makes another draw.
        noise_dir, rir_dir: recordings to draw noises and rooms from; the built-in ones otherwise.
        scenario_file: a YAML file with scenarios of your own.
        second: for a scenario that mixes two clips, the second one, at the same rate.
    """
    if second is not None:
        return _with_second_talker(samples, second, rate, scenario, severity, value)
    if isinstance(scenario, str) or not callable(scenario):
        row = check_scenario(scenario, severity, scenario_file, value)
    else:
        row, severity = transform_scenario(scenario), 0
    clip = mono_at_benchmark_rate(samples, rate)
    clip_id = content_id(clip) if id is None else str(id)
    banks = open_banks(noise_dir, rir_dir)
    drawn = perturb_clip(row, severity, clip, banks, corpus=corpus, clip_id=clip_id, seed=seed)
    stored = from_pcm16(to_pcm16(drawn.samples))
    return PerturbedClip(like(stored, samples), row.name, severity, drawn.parameters, drawn.snr_db, drawn.clipped)


def _with_second_talker(
    samples: Any, second: Any, rate: int, scenario: str, severity: float, value: float | None
) -> PerturbedClip:
    row = find(scenario).chosen(severity, value)
    mixed = mix_clips(row, severity, mono_at_benchmark_rate(samples, rate), mono_at_benchmark_rate(second, rate))
    stored = like(from_pcm16(to_pcm16(mixed.samples)), samples)
    return PerturbedClip(stored, row.name, severity, mixed.parameters, None, mixed.clipped)


def check_scenario(name: str, severity: Any, scenario_file: Folder = None, value: float | None = None) -> Scenario:
    """The scenario of that name if it perturbs clips and has that severity; else one clear error."""
    if not isinstance(name, str):
        raise UserError(f"a scenario is a name such as 'noise', not {name!r}")
    if isinstance(severity, bool) or not isinstance(severity, int | float):
        raise UserError(f"a severity is a number, 1 for the mildest, not {severity!r}")
    scenario = find(name, load_table(scenario_file))
    check_can_perturb(scenario)
    return scenario.chosen(severity, value)


_opened: dict[tuple[str, str], Banks] = {}


def open_banks(noise_dir: Folder, rir_dir: Folder) -> Banks:
    """The banks of two folders; listed once in a process, so that a call per clip is cheap."""
    key = str(noise_dir or ""), str(rir_dir or "")
    if key not in _opened:
        _opened[key] = Banks(noise_dir and os.path.abspath(noise_dir), rir_dir and os.path.abspath(rir_dir))
    return _opened[key]


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
) -> FileReport:
    """Apply a scenario to an audio file, write it (16 kHz, mono), and return what was drawn.

    Args:
        recording: an audio file, any rate and number of channels.
        out: .wav, .flac, .ogg or .mp3.
        scenario, severity, value, seed: as in `srb.perturb`.
        second: for a scenario that mixes two clips, the second recording.
        scenario_options: where noises, rooms and scenarios of your own come from.
    """
    _keep(recording, [Path(out)], "OUT another name")
    row = find(scenario, load_table(scenario_options.scenario_file)).chosen(severity, value)
    clip, banks = _read(recording), open_banks(scenario_options.noise_dir, scenario_options.rir_dir)
    if second is None:
        return _perturbed(recording, clip, Path(out), row, severity, banks, seed)
    mixed = mix_clips(row, severity, clip, _read(second))
    return _written(recording, Path(out), row, severity, banks, mixed)


def perturb_all(
    recording: Place,
    folder: Place,
    *,
    seed: str = "",
    scenario_options: ScenarioOptions = ScenarioOptions(),
    progress: bool = True,
) -> list[FileReport]:
    """Apply every scenario and severity to an audio file, and write a page with players and spectrograms.

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
) -> FileReport:
    clip_id = content_id(clip)
    perturbed = perturb_clip(scenario, severity, clip, banks, corpus=FILE_CORPUS, clip_id=clip_id, seed=seed)
    return _written(recording, out, scenario, severity, banks, perturbed)


def _written(
    recording: Place, out: Path, scenario: Scenario, severity: float, banks: Banks, perturbed: Any
) -> FileReport:
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
