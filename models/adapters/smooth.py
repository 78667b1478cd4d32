"""Randomised smoothing around any recogniser: `smooth:<model>?sigma=0.01&n=8`.

Transcribe the clip `n` times under white noise of deviation `sigma`, enhance each if asked to, and let ROVER vote over
the transcripts (Olivier and Raj 2021; Olivier, chapter 7). The noise is a function of the clip's samples, so a clip
gives the same text in any batch, and an attacker who moves one sample meets other noise.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from srb.core.errors import UserError, did_you_mean
from srb.core.seeding import clip_rng, content_id
from srb.models.enhance import a_priori_snr
from srb.models.interface import Clip, Described, Recogniser, open_model
from srb.models.rover import rover

ENHANCERS = {"none": lambda samples, sigma: samples, "asnr": a_priori_snr}


@dataclass
class Smooth(Described):
    """A recogniser behind noise, enhancement and a vote."""

    inner: Recogniser = None  # type: ignore[assignment]
    sigma: float = 0.01
    n: int = 8
    enhance: str = "none"

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        copies = [copy for clip in clips for copy in self._copies(clip)]
        hypotheses: list[str] = []
        for start in range(0, len(copies), self.inner.batch_size):
            hypotheses += self.inner.transcribe(copies[start : start + self.inner.batch_size], rate, language)
        return [rover(hypotheses[start : start + self.n]) for start in range(0, len(hypotheses), self.n)]

    def _copies(self, clip: Clip) -> list[Clip]:
        rng = clip_rng("smooth", content_id(clip), f"{self.sigma}", self.n)
        noisy = [clip + np.float32(self.sigma) * rng.standard_normal(len(clip), np.float32) for _ in range(self.n)]
        return [ENHANCERS[self.enhance](copy, self.sigma) for copy in noisy]

    def close(self) -> None:
        self.inner.close()


def load(target: str, *, sigma: float = 0.01, n: int = 8, enhance: str = "none", device: str = "") -> Recogniser:
    """`smooth:<model>?sigma=0.01&n=8&enhance=asnr`; the model's own options go before: `smooth:hf:X?beams=2?n=4`."""
    if not target:
        raise UserError("'smooth' needs a recogniser to protect: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    if sigma < 0 or n < 1:
        raise UserError(f"smooth: sigma is 0 or more and n 1 or more, not {sigma} and {n}")
    if enhance not in ENHANCERS:
        raise UserError(f"smooth: no enhancer '{enhance}'; {did_you_mean(enhance, ENHANCERS)}")
    inner = open_model(target, device=device or None)
    return Smooth(
        name=f"smooth-{inner.name}",
        revision=inner.revision,
        options={**inner.options, "model": inner.name, "sigma": sigma, "n": n, "enhance": enhance},
        batch_size=max(1, inner.batch_size // n),
        inner=inner,
        sigma=sigma,
        n=n,
        enhance=enhance,
    )
