"""Dataset configs as everything that reads them sees them, stored (`stored_config`) or perturbed on the fly
(`live_config`): the clips in order, what is known of each, and their audio, some clips at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.records import ConfigData
from speech_robust_bench.core.rows import Columns


@dataclass(frozen=True, slots=True)
class ClipRow:
    """One clip of a config, without its audio."""

    position: int
    id: str
    text: str | None  # None where nobody has transcribed the clip
    duration: float
    language: str | None
    speaker: str | None
    gender: str | None
    age: str | None
    accent: str | None
    facts: Mapping[str, Any] = field(default_factory=dict)  # of how the clip was made, told to the prediction
    columns: Columns = ()  # what else the corpus says: region, domain, device, ...


class Window(Protocol):
    """Some clips of a config whose audio is in memory together."""

    @property
    def rows(self) -> Sequence[ClipRow]: ...

    def decode(self, row: ClipRow) -> Samples:
        """The clip's samples at the benchmark's rate; the error of a clip that has none is raised here."""


class Config(Protocol):
    """One dataset config, wherever its audio comes from."""

    @property
    def name(self) -> str: ...

    @property
    def rows(self) -> list[ClipRow]:
        """Every clip in the config's order."""

    @property
    def about(self) -> ConfigData:
        """What run.json says of the config and a score depends on."""

    def content_sha256(self, known: ConfigData, changed: bool) -> str | None:
        """The hash of the config's content, if it can be known.

        `known` is what run.json has of an earlier run, `changed` whether this one transcribed anything.
        """

    def stored_audio(self, ids: set[str]) -> list[tuple[str, bytes]]:
        """The FLAC files of some clips, as the config stores them."""

    def windows(self, wanted: set[int]) -> Iterator[Window]:
        """The clips at the wanted positions, some at a time."""


class ConfigSource(Protocol):
    """A place that holds configs."""

    def names(self) -> list[str]:
        """The configs that are there, by our names."""

    def config(self, name: str) -> Config:
        """Open the config of that name."""


def clip_facts(names: Iterable[str], value_of: Callable[[str], Any]) -> dict[str, str]:
    """What the prediction of a row is told of how its clip was made (`Scenario.facts`): lists of places, as texts."""
    values = {name: value_of(name) for name in names}
    return {
        name: " ".join(str(int(v)) for v in value) for name, value in values.items() if isinstance(value, list | tuple)
    }


def category_of(scenario: str) -> str | None:
    """The category of a scenario in the table, None if it has no row."""
    return SCENARIOS[scenario].category if scenario in SCENARIOS else None
