"""One clip under one scenario: draw the material, apply the function, clip to what can be stored, say what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.perturb.environment import snr_db
from speech_robust_bench.builders.scenarios import BANKS, Scenario, check_can_perturb
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng

FILE_CORPUS = "file"  # of a clip that belongs to no corpus


@dataclass(frozen=True)
class Perturbed:
    """A perturbed clip, in [-1, 1], and its provenance."""

    samples: Samples
    parameters: dict[str, Any] = field(default_factory=dict)
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
    rng = clip_rng(corpus, clip_id, scenario.stream, severity, seed)
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
    from speech_robust_bench.core.audio import clip_in_place

    perturbed = scenario.function(samples, RATE, value, rng, *material)
    if not len(perturbed):  # one sample at a high tempo: a file without samples could not be read again
        perturbed = np.zeros(1, np.float32)
    if np.may_share_memory(perturbed, samples):  # a transform that had nothing to do
        perturbed = perturbed.copy()
    reached_snr_db = snr_db(samples, perturbed) if scenario.has_snr else None
    return Perturbed(perturbed, parameters, reached_snr_db, clip_in_place(perturbed))


def mix_clips(scenario: Scenario, severity: float, first: Samples, second: Samples) -> Perturbed:
    """Two clips as one, under a scenario that is made of two."""
    from speech_robust_bench.core.audio import clip_in_place

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
