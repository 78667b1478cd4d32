"""`srb.Perturb` and `srb.RandomPerturb`: the scenarios as training-time augmentation.

They are called as audiomentations' transforms are, `augment(samples=..., sample_rate=...)`, and fit into its `Compose`;
called with an example or a batch of `datasets` they perturb its audio column, for `set_transform` and `map`. The draw
depends on the seed, the epoch and the clip alone: on its corpus and id where the example has them, on its samples
otherwise. So it is the same in every worker, with any number of them, in any order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from speech_robust_bench.audio_files import Folder, check_scenario, open_banks
from speech_robust_bench.builders.apply import (
    FILE_CORPUS,
    Draw,
    Perturbed,
    RandomScenarios,
    draw_for_clip,
    perturb_clip,
)
from speech_robust_bench.builders.custom import load_table
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.builders.scenarios import find
from speech_robust_bench.core.audio import RATE, channels_of, check_rate, from_pcm16, like, read, resample, to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import Parameters, RowDict
from speech_robust_bench.core.seeding import content_id


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
