"""One clip under one scenario: draw the material, apply the function, clip to what can be stored, say what was done.

Scenarios drawn at random for training: which one a clip gets, and how severe, from its name, the seed and the epoch.

The draw depends on nothing else, so it is the same in every worker and after every interruption. `srb.RandomPerturb`
and `srb probe train --train-augment` draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.perturb.environment import snr_db
from speech_robust_bench.builders.scenario import BANKS, Scenario, check_can_perturb
from speech_robust_bench.builders.scenarios import SCENARIOS, choose
from speech_robust_bench.core.audio import RATE, Samples, clip_in_place
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import Parameters
from speech_robust_bench.core.seeding import clip_rng

FILE_CORPUS = "file"  # of a clip that belongs to no corpus


@dataclass(frozen=True)
class Perturbed:
    """A perturbed clip, in [-1, 1], and its provenance."""

    samples: Samples
    parameters: Parameters = field(default_factory=dict)
    snr_db: float | None = None
    clipped: int = 0


def perturb_clip(
    scenario: Scenario,
    severity: float,
    samples: Samples,
    banks: Banks,
    *,
    corpus: str,
    clip_id: str,
    seed: str = "",
    prepared: Any = None,
) -> Perturbed:
    """A clip (mono, 16 kHz) under a scenario, drawn from its own random stream: the same as in the dataset config."""
    rng = clip_rng(corpus, clip_id, scenario.rng_key, severity, seed)
    return apply(scenario, severity, samples, rng, banks, prepared)


def apply(
    scenario: Scenario,
    severity: float,
    samples: Samples,
    rng: np.random.Generator,
    banks: Banks,
    prepared: Any = None,
) -> Perturbed:
    """Put a clip (mono, 16 kHz) under a scenario at a severity, with material from `banks`.

    `prepared` is what `scenario.prepare` gave for this clip, where the caller has it from another severity.
    """
    value = scenario.value(severity)
    check_can_perturb(scenario)
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    if not np.isfinite(samples).all():
        raise UserError("the clip holds NaN or infinite samples; re-export it as 16-bit PCM")
    if not len(samples):  # no samples: every scenario leaves it empty
        return Perturbed(samples)
    if scenario.parts:
        return _chained(scenario, severity, samples, rng, banks)
    assert scenario.function
    parameters = {scenario.parameter: value} if scenario.parameter else {}
    material: list[Any] = []
    if scenario.bank:
        recording = banks.get(scenario.bank).draw(rng, clip=samples, severity=int(severity))
        parameters[BANKS[scenario.bank]] = recording.name
        parameters |= {key: round(value, 3) for key, value in recording.measures.items()}
        material.append(recording)
    if scenario.prepare:
        material.append(scenario.prepare(samples) if prepared is None else prepared)

    perturbed = scenario.function(samples, RATE, value, rng, *material)
    if not len(perturbed):  # one sample at a high tempo: a file without samples could not be read again
        perturbed = np.zeros(1, np.float32)
    if np.may_share_memory(perturbed, samples):  # a transform that had nothing to do
        perturbed = perturbed.copy()
    reached_snr_db = snr_db(samples, perturbed) if scenario.has_snr else None
    return Perturbed(perturbed, parameters, reached_snr_db, clip_in_place(perturbed))


def mix_clips(scenario: Scenario, severity: float, first: Samples, second: Samples) -> Perturbed:
    """Two clips as one, under a scenario that is made of two."""

    if not scenario.mix:
        raise UserError(f"scenario '{scenario.name}' takes no second clip")
    value = scenario.value(severity)
    mixed = scenario.mix(first, second, value)
    return Perturbed(mixed, {str(scenario.parameter): value}, None, clip_in_place(mixed))


def _chained(
    scenario: Scenario, severity: float, samples: Samples, rng: np.random.Generator, banks: Banks
) -> Perturbed:
    """The steps of a chain: each has what the one before it made, clipped, and goes on drawing from one stream."""
    output, clipped = samples, 0
    drawn = []
    for step, level in scenario.steps(severity):
        perturbed = apply(step, level, output, rng, banks)
        output, clipped = perturbed.samples, clipped + perturbed.clipped
        drawn.append({"scenario": step.name, **({"severity": level} if level else {}), **perturbed.parameters})
    return Perturbed(output, {"chain": drawn}, None, clipped)


@dataclass(frozen=True)
class Draw:
    """The draw for one clip; without a scenario the clip stays as it is."""

    corpus: str
    clip_id: str
    seed: str
    scenario: Scenario | None
    severity: float = 0


@dataclass(frozen=True)
class RandomScenarios:
    """Some scenarios, and the range of severities that are drawn from; a scenario that has fewer takes its own."""

    rows: tuple[Scenario, ...]
    severity: tuple[float, float] = (1, 4)

    @classmethod
    def named(
        cls,
        names: Iterable[str],
        severity: tuple[float, float] = (1, 4),
        table: Mapping[str, Scenario] = SCENARIOS,
        without: Iterable[str] = (),
    ) -> RandomScenarios:
        """Those of some names or categories; without any, all that leave the speech in the clip.

        Those that need a package of their own are drawn only if they are named one by one, and then it must be there:
        a draw does not depend on what is installed.
        """
        names, left_out = list(names), list(without)
        held_out = {row.name for row in choose(left_out, table)} if left_out else set()
        known = [row for row in choose(names, table) if row.perturbs and (row.name in names or not row.packages)]
        chosen = known if names else [row for row in known if row.has_speech]
        rows = tuple(row for row in chosen if row.name not in held_out)
        for row in rows:
            check_can_perturb(row)
        if not rows:
            raise UserError(f"none of {', '.join(names)} is a scenario that perturbs clips")
        low, high = severity
        if not 1 <= low <= high:
            raise UserError(f"severity={severity}: give the least and the greatest, 1 or more, as in (1, 4)")
        return cls(rows, (low, high))

    def choose(self, rng: np.random.Generator) -> tuple[Scenario, float]:
        """One scenario, at a severity between the table's values where there is anything between."""
        scenario = self.rows[int(rng.integers(len(self.rows)))]
        if not scenario.graded:
            return scenario, 0
        low, high = (min(max(bound, 1), scenario.levels[-1]) for bound in self.severity)
        if scenario.continuous:
            return scenario, round(float(rng.uniform(low, high)), 3)
        levels = [level for level in scenario.levels if low <= level <= high] or [round(low)]
        return scenario, levels[int(rng.integers(len(levels)))]


def draw_for_clip(
    choice: Callable[[np.random.Generator], tuple[Scenario, float]],
    corpus: str,
    clip_id: str,
    *,
    p: float = 1.0,
    seed: int | str = "",
    epoch: int = 0,
    stream: str = "RandomPerturb",
) -> Draw:
    """What a clip gets in an epoch: with probability `p` what `choice` chooses, else nothing."""
    drawn_seed = f"{seed}\x1e{epoch}" if epoch else str(seed)
    rng = clip_rng(corpus, clip_id, stream, 0, drawn_seed)
    if rng.random() >= p:
        return Draw(corpus, clip_id, drawn_seed, None)
    return Draw(corpus, clip_id, drawn_seed, *choice(rng))
