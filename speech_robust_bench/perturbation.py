"""Clips under scenarios: `srb.perturb` for arrays and files, `srb.Perturb` and `srb.RandomPerturb` for training.

`srb.perturb`: one clip under one scenario, the same samples as that row of the dataset config. `srb.perturb_file` does
it with an audio file; `srb.perturb_all` makes a page to listen to, with every scenario.

`srb.Perturb` and `srb.RandomPerturb`: the scenarios as training-time augmentation. They are called as audiomentations'
transforms are, `augment(samples=..., sample_rate=...)`, and fit into its `Compose`; called with an example or a batch
of `datasets` they perturb its audio column, for `set_transform` and `map`. The draw depends on the seed, the epoch and
the clip alone: on its corpus and id where the example has them, on its samples otherwise. So it is the same in every
worker, with any number of them, in any order.
"""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders import gallery
from speech_robust_bench.builders.apply import (
    FILE_CORPUS,
    Draw,
    Perturbed,
    RandomScenarios,
    draw_for_clip,
    mix_clips,
    perturb_clip,
)
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.custom import load_table, transform_scenario
from speech_robust_bench.builders.gallery import FileReport
from speech_robust_bench.builders.scenario import Scenario, check_can_perturb
from speech_robust_bench.builders.scenarios import find, perturbations
from speech_robust_bench.core import audio
from speech_robust_bench.core.audio import (
    RATE,
    channels_of,
    check_rate,
    encode_flac,
    from_pcm16,
    like,
    mono_at_benchmark_rate,
    read,
    resample,
    to_pcm16,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.rows import Parameters, RowDict
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


class _Transform:
    """What both transforms share: how they are called, and how a draw follows from the clip."""

    def __init__(
        self, p: float, seed: int | str, audio_column: str, noise_dir: Folder, rir_dir: Folder, scenario_file: Folder
    ) -> None:
        if not 0 <= p <= 1:
            raise UserError(f"p={p}: a probability lies between 0 and 1")
        self.p = p
        self.seed = seed
        self.epoch = 0
        self.audio_column = audio_column
        self._folders = noise_dir, rir_dir, scenario_file
        self.parameters: Parameters = {}
        self.are_parameters_frozen = False
        self._draw: Draw | None = None

    def choose(self, rng: np.random.Generator) -> tuple[Scenario, float]:
        """The scenario and severity for one clip."""
        raise NotImplementedError

    def set_epoch(self, epoch: int) -> None:
        """Draw anew for every clip from here on; call it where the data loader's workers start anew, once an epoch."""
        self.epoch = int(epoch)

    def __call__(self, samples: Any, sample_rate: int | None = None) -> Any:
        """Perturb a clip at its own rate, each channel alike; or the audio column of an example or batch."""
        if isinstance(samples, Mapping):
            return self._mapping(samples)
        if sample_rate is None:
            raise UserError("sample_rate is missing: call it with samples=..., sample_rate=...")
        return self._clip(samples, check_rate(sample_rate))

    def randomize_parameters(self, samples: Any, sample_rate: int) -> None:
        """Draw for a clip, as `Compose` asks for it."""
        first = resample(channels_of(samples)[0], check_rate(sample_rate), RATE)
        self._draw = self._drawn(FILE_CORPUS, content_id(first))

    def freeze_parameters(self) -> None:
        """Go on with the last draw for whatever clips come."""
        self.are_parameters_frozen = True

    def unfreeze_parameters(self) -> None:
        """Draw for each clip again."""
        self.are_parameters_frozen = False

    def serialize_parameters(self) -> Parameters:
        """The draw for the last clip."""
        return dict(self.parameters)

    def to_dict_private(self) -> dict[str, str | float]:
        """The settings that audiomentations shows in `repr(Compose)`."""
        return {"__class_fullname__": type(self).__name__, "p": self.p, "seed": self.seed}

    def __getstate__(self) -> dict[str, object]:
        """Without the last draw, which says nothing about the next one and would make every pickle another."""
        return {**self.__dict__, "parameters": {}, "_draw": self._draw if self.are_parameters_frozen else None}

    def _mapping(self, given: Mapping[str, Any]) -> RowDict:
        if self.audio_column not in given:
            raise UserError(f"no column '{self.audio_column}'; there are {', '.join(map(str, given))}")
        audio = given[self.audio_column]
        if not isinstance(audio, list):
            return {**given, self.audio_column: self._audio(audio, given.get("corpus"), given.get("id"))}
        absent = [None] * len(audio)
        columns = zip(audio, given.get("corpus", absent), given.get("id", absent), strict=True)
        return {**given, self.audio_column: [self._audio(*values) for values in columns]}

    def _audio(self, audio: Any, corpus: str | None, clip_id: str | None) -> RowDict:
        """What `datasets` has in an audio column: an array and its rate, or the bytes or path of a file."""
        where = audio.get("path") if isinstance(audio, Mapping) else None
        if isinstance(audio, Mapping) and audio.get("array") is None:
            source = where if audio.get("bytes") is None else audio["bytes"]
            if source is None:
                raise UserError(f"the column '{self.audio_column}' holds neither an array nor bytes nor a path")
            samples, rate = read(source), RATE
        else:
            samples, rate = audio["array"], check_rate(audio["sampling_rate"])
        return {"array": self._clip(samples, rate, corpus, clip_id), "sampling_rate": rate, "path": where}

    def _clip(self, samples: Any, rate: int, corpus: str | None = None, clip_id: str | None = None) -> Any:
        channels = channels_of(samples)
        at_benchmark_rate = [resample(channel, rate, RATE) for channel in channels]
        if not self.are_parameters_frozen or self._draw is None:
            named = corpus is not None and clip_id is not None
            key = (str(corpus), str(clip_id)) if named else (FILE_CORPUS, content_id(at_benchmark_rate[0]))
            self._draw = self._drawn(*key)
        self.parameters = {"should_apply": self._draw.scenario is not None}
        if self._draw.scenario is None:
            return samples
        perturbed = [self._perturbed(clip) for clip in at_benchmark_rate]
        self.parameters |= {
            "scenario": self._draw.scenario.name,
            "severity": self._draw.severity,
            **perturbed[0].parameters,
        }
        stored = [resample(from_pcm16(to_pcm16(each.samples)), RATE, rate) for each in perturbed]
        shape = np.shape(samples)
        if len(shape) == 1:
            return like(stored[0], samples)
        together = np.stack(stored)
        return like(together.T if shape[0] > shape[1] else together, samples)

    def _perturbed(self, clip: np.ndarray) -> Perturbed:
        draw = self._draw
        assert draw is not None
        assert draw.scenario is not None
        banks = open_banks(*self._folders[:2])
        return perturb_clip(
            draw.scenario, draw.severity, clip, banks, corpus=draw.corpus, clip_id=draw.clip_id, seed=draw.seed
        )

    def _drawn(self, corpus: str, clip_id: str) -> Draw:
        return draw_for_clip(
            self.choose, corpus, clip_id, p=self.p, seed=self.seed, epoch=self.epoch, stream=type(self).__name__
        )


class Perturb(_Transform):
    """One scenario at one severity as an augmentation.

    With the ids and corpus of the clean config it gives the rows of the scenario's own config, sample by sample.

    Args:
        scenario, severity: as in `srb.perturb`.
        p: share of the clips to perturb; the others stay as they are.
        seed: any number or text; another seed makes another draw.
        audio_column: where `datasets` has the audio.
        noise_dir, rir_dir, scenario_file: as in `srb.perturb`.
    """

    def __init__(
        self,
        scenario: str,
        severity: float = 0,
        *,
        p: float = 1.0,
        seed: int | str = "",
        audio_column: str = "audio",
        noise_dir: Folder = None,
        rir_dir: Folder = None,
        scenario_file: Folder = None,
    ) -> None:
        super().__init__(p, seed, audio_column, noise_dir, rir_dir, scenario_file)
        self.scenario = check_scenario(scenario, severity, scenario_file).name
        self.severity = severity

    def choose(self, rng: np.random.Generator) -> tuple[Scenario, float]:
        return find(self.scenario, load_table(self._folders[2])), self.severity

    def __repr__(self) -> str:
        return f"Perturb({self.scenario!r}, severity={self.severity:g}, p={self.p:g}, seed={self.seed!r})"


class RandomPerturb(_Transform):
    """A scenario drawn for each clip, at a severity drawn between the table's values where there is anything between.

    Args:
        scenarios: names of scenarios or categories; without any, every scenario that leaves the speech in the clip.
        severity: the range to draw from, (1, 4) for the paper's; a scenario that has fewer takes its own.
        p, seed, audio_column, noise_dir, rir_dir, scenario_file: as in `Perturb`.
    """

    def __init__(
        self,
        scenarios: str | Iterable[str] = (),
        severity: tuple[float, float] = (1, 4),
        *,
        p: float = 1.0,
        seed: int | str = "",
        audio_column: str = "audio",
        noise_dir: Folder = None,
        rir_dir: Folder = None,
        scenario_file: Folder = None,
    ) -> None:
        super().__init__(p, seed, audio_column, noise_dir, rir_dir, scenario_file)
        names = [scenarios] if isinstance(scenarios, str) else list(scenarios)
        chosen = RandomScenarios.named(names, severity, load_table(scenario_file))
        self.scenarios = tuple(row.name for row in chosen.rows)
        self.severity = chosen.severity

    def choose(self, rng: np.random.Generator) -> tuple[Scenario, float]:
        table = load_table(self._folders[2])
        return RandomScenarios(tuple(table[name] for name in self.scenarios), self.severity).choose(rng)

    def __repr__(self) -> str:
        named = ", ".join(self.scenarios[:3]) + (f" and {len(self.scenarios) - 3} more" if self.scenarios[3:] else "")
        return f"RandomPerturb({named}; severity {self.severity[0]:g} to {self.severity[1]:g}, p={self.p:g})"
