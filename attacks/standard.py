"""The settings of the attacks that are compared on the leaderboard: those of the paper's runs.

Nothing heavy is imported, because `srb verify` reads them without torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class StandardPgd:
    """Per utterance: 100 steps of 0.4 of the radius, a random start, the worst of every twentieth candidate."""

    steps: int = 100
    step: float = 0.4
    random_start: bool = True
    restarts: int = 1
    transcribe_every: int = 20
    target: str | None = None
    stop: float | None = None


@dataclass(frozen=True)
class StandardUniversal:
    """One perturbation for all: at most 10 epochs of 20 steps a clip."""

    epochs: int = 10
    learning_rate: float = 0.001
    seconds: float = 18.0
    clip_radius: float = 0.003
    cer: float = 0.7
    enough: float = 1.0
    transcribe_every: int = 1


@dataclass(frozen=True)
class StandardAuto:
    """The ensemble without knobs: as many gradient calls per clip as the standard PGD, and some queries."""

    steps: int = 100
    queries: int = 50
    first_step: float = 1.0  # radii; it adapts itself


PGD, UNIVERSAL, AUTO = StandardPgd(), StandardUniversal(), StandardAuto()
UNIVERSAL_STEPS = 20  # at most, per clip and epoch
EOT_DRAWS = 16  # per gradient of a randomised model (Olivier, 7.3.1)
STANDARDS: dict[str, Any] = {"pgd": PGD, "universal": UNIVERSAL, "auto": AUTO}
AT_LEAST = ("steps", "restarts", "epochs", "queries")
AT_MOST = ("transcribe_every",)


def weakness(attack: str, settings: Mapping[str, Any]) -> str | None:
    """How an attack's settings are milder than, or other than, the standard ones; None if they are not."""
    for name, standard in asdict(STANDARDS[attack]).items():
        value = settings.get(name)
        if name in AT_LEAST or name in AT_MOST:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                return f"'{name}' is {value!r}, the standard has {standard}"
            if (value < standard) if name in AT_LEAST else (value > standard):
                return f"'{name}' is {value}, the standard has {standard}"
        elif value != standard:
            return f"'{name}' is {value!r}, the standard has {standard!r}"
    if settings.get("precision") is not None:
        return "gradients were taken in mixed precision"
    draws = settings.get("eot")
    if draws is not None and (not isinstance(draws, int) or draws < EOT_DRAWS):
        return f"'eot' is {draws!r}, the standard has {EOT_DRAWS}"
    return None
