"""One clip under one scenario: draw the material, apply the function, clip to what can be stored, say what was done."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from srb.builders.audio import RATE, Samples
from srb.builders.banks import Banks
from srb.builders.errors import UserError
from srb.builders.perturb.kenansville import kenansville
from srb.builders.perturb.noise import add_noise, gaussian, snr_db
from srb.builders.scenarios import Scenario


@dataclass(frozen=True)
class Perturbed:
    """A perturbed clip, in [-1, 1], and its provenance."""

    samples: Samples
    parameters: dict[str, Any] = field(default_factory=dict)
    snr_db: float | None = None
    clipped: int = 0


def apply(scenario: Scenario, severity: int, samples: Samples, rng: np.random.Generator, banks: Banks) -> Perturbed:
    """Put a clip (mono, 16 kHz) under a scenario at a severity, with material from `banks`."""
    value = scenario.value(severity)
    if scenario.function is None:
        raise UserError(f"scenario '{scenario.name}' is made by {scenario.maker}, not by perturbing a clip")
    samples = np.ascontiguousarray(samples, dtype=np.float32)
    if samples.flags.writeable and not np.isfinite(samples).all():  # a read-only one was looked at when it was read
        raise UserError("the clip holds NaN or infinite samples; re-export it as 16-bit PCM")
    if not len(samples):  # nothing to hear: every scenario leaves it empty
        return Perturbed(samples)
    parameters = {scenario.parameter: value} if scenario.parameter else {}
    material = []
    if scenario.bank:
        recording = banks.get(scenario.bank).draw(rng, clip=samples, severity=severity)
        parameters[_KIND[scenario.bank]] = recording.name
        parameters |= {key: round(value, 3) for key, value in recording.measures.items()}
        material.append(recording)
    from srb.builders.perturb.kernels import clip_in_place

    made = scenario.function(samples, RATE, value, rng, *material)
    if not len(made):  # one sample at a high tempo: a file without samples could not be read again
        made = np.zeros(1, np.float32)
    if np.may_share_memory(made, samples):  # a transform that had nothing to do
        made = made.copy()
    reached = snr_db(samples, made) if scenario.function in (add_noise, gaussian, kenansville) else None
    return Perturbed(made, parameters, reached, clip_in_place(made))


# What a drawn recording is called in a row's parameters.
_KIND = {
    "noise": "noise",
    "noise_esc50": "noise",
    "noise_musan": "noise",
    "noise_wham": "noise",
    "music": "music",
    "speech": "speech",
    "rir": "room",
    "real_rir": "room",
}
