"""What a model does with one clip that may tell whether it was trained on it (Olivier, Section 5.5 and Appendix C.2).

From the transcript alone (black box): its errors, its length, words that are right but spelled otherwise than in the
reference, and masked words that are written nevertheless. From the loss of the reference (grey box): on the clip, and
its mean and spread under white noise at some SNRs (Algorithm 3). From its gradient (white box): the loss after one
adversarial step within some L-inf radii (Algorithm 2, with the thesis's eta = 1 and N = 1).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

import numpy as np

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Record
from speech_robust_bench.scoring.scoring import align, default_unit

if TYPE_CHECKING:
    from speech_robust_bench.attacks.clips import AttackClip
    from speech_robust_bench.attacks.views.base import View
    from speech_robust_bench.models.interface import Recogniser

Access = Literal["transcripts", "losses", "gradients"]
ACCESS: tuple[Access, ...] = ("transcripts", "losses", "gradients")
SNRS_DB = tuple(float(value) for value in np.linspace(0, 50, 8).round(2))
DRAWS = 4
RADII = (*(n / 1000 for n in range(1, 10)), *(n / 100 for n in range(1, 8)))
BATCH = 8  # versions of a clip that share a batch


@dataclass(frozen=True)
class FeatureSettings:
    """Which features are computed."""

    access: Access = "gradients"
    snrs_db: tuple[float, ...] = SNRS_DB
    draws: int = DRAWS
    radii: tuple[float, ...] = RADII
    masked: bool = False


class SpokenClip(Record, frozen=True, kw_only=True):
    """A clip under suspicion, or one that is known to be fresh, without its audio."""

    id: str
    suspect: bool
    speaker: str | None = None


class ClipFeatures(SpokenClip, frozen=True, kw_only=True):
    """The features of one clip, by name; None where the clip has none, as of a clip without a word to mask."""

    transcript: str
    features: dict[str, float | None]
    problem: str | None = None  # why there are no losses


def family(name: str) -> str:
    """What a feature is computed from.

    >>> family("noise_20_mean"), family("attack_0.01"), family("loss"), family("wer")
    ('noise', 'attack', 'loss', 'transcript')
    """
    first = name.split("_")[0]
    return first if first in ("noise", "attack", "loss", "masked") else "transcript"


def transcript_features(text: str, transcript: str, language: str | None) -> dict[str, float | None]:
    """Errors of a transcript as shares of the reference's length, and the words that are right but spelled otherwise.

    >>> transcript_features("it was twenty past", "it was 20 past", "en")["other_spelling"]
    0.25
    """
    unit = default_unit(language)
    counts, lenient = (
        align([text], [transcript], normaliser=normaliser, unit=unit, language=language)
        for normaliser in ("srb-paper-1", _lenient(language))
    )
    length = max(int(counts.lengths[0]), 1)
    return {
        "wer": float(counts.errors[0]) / length,
        "substitutions": float(counts.substitutions[0]) / length,
        "deletions": float(counts.deletions[0]) / length,
        "insertions": float(counts.insertions[0]) / length,
        "length_ratio": float(counts.hits[0] + counts.substitutions[0] + counts.insertions[0]) / length,
        "other_spelling": max(0.0, float(counts.errors[0] - lenient.errors[0])) / length,
    }


def _lenient(language: str | None) -> str:
    """The normaliser to which spellings of a word are most alike, of those that are installed."""
    english = language == "en" and find_spec("whisper_normalizer") is not None
    return "whisper-en" if english else "srb-numbers-1"


def can_mask(language: str | None) -> bool:
    """Whether there is the extension that masks words, and the aligner that it needs."""
    return "masked" in SCENARIOS and language == "en" and find_spec("pocketsphinx") is not None


def masked_feature(line: Prediction) -> float | None:
    """The share of a clip's masked words that are written although they cannot be heard."""
    from speech_robust_bench.extensions.masked_words.measure import written

    hits = written(line)
    return sum(hits) / len(hits) if hits else None


def loss_features(view: View, clip: AttackClip, settings: FeatureSettings) -> Iterator[tuple[str, float]]:
    """The loss of the reference: on the clip, under noise, and after a step against the model."""
    text = view.spell(clip.text)
    losses = _Losses(view, clip, text)
    yield "loss", losses.of([clip.samples])[0]
    for snr_db in settings.snrs_db:
        rng = clip.rng("contamination", 0, f"{snr_db:g}")
        noisy = [clip.samples + white_noise(clip.samples, snr_db, rng) for _ in range(settings.draws)]
        values = losses.of(noisy)
        yield f"noise_{snr_db:g}_mean", float(np.mean(values))
        if settings.draws > 1:
            yield f"noise_{snr_db:g}_spread", float(np.std(values))
    if settings.access == "gradients":
        yield from zip(
            (f"attack_{radius:g}" for radius in settings.radii), losses.attacked(settings.radii), strict=True
        )


def white_noise(samples: Samples, snr_db: float, rng: np.random.Generator) -> Samples:
    """White noise at an SNR; none where the clip is silent."""
    noise = rng.standard_normal(len(samples))
    power = np.sum(np.square(samples, dtype=float)) / 10 ** (snr_db / 10)
    return (noise * np.sqrt(power / np.sum(noise**2))).astype(np.float32)


@dataclass
class _Losses:
    """The losses of one clip's versions, which all have its length."""

    view: View
    clip: AttackClip
    text: str

    def of(self, versions: Sequence[Samples]) -> list[float]:
        """The loss of each version."""
        return [loss for waves, batch in self._batches(versions) for loss in self.view.values(waves, batch).tolist()]

    def attacked(self, radii: Sequence[float]) -> list[float]:
        """The loss after one step of the signs from a random start, for each radius."""
        rng = self.clip.rng("contamination", 0, "attack")
        starts = [rng.uniform(-radius, radius, len(self.clip.samples)).astype(np.float32) for radius in radii]
        versions = []
        for number, (waves, batch) in enumerate(self._batches([self.clip.samples + start for start in starts])):
            _, slope = self.view.gradient(waves, batch)
            signs = slope.sign().cpu().numpy()
            sizes = radii[number * BATCH :][: len(signs)]
            versions += [np.clip(self.clip.samples + r * s, -1, 1) for r, s in zip(sizes, signs, strict=True)]
        return self.of(versions)

    def _batches(self, versions: Sequence[Samples]) -> Iterator[tuple]:
        from speech_robust_bench.attacks.clips import AttackBatch, padded

        for start in range(0, len(versions), BATCH):
            some = versions[start : start + BATCH]
            waves, lengths = padded(some, self.view.device)
            rngs = [self.clip.rng("contamination", 0, f"view{start + n}") for n in range(len(some))]
            texts, ids = [self.text] * len(some), [self.clip.id] * len(some)
            yield waves, AttackBatch(lengths, texts, self.clip.language, rngs, ids=ids)


def open_model_view(recogniser: Recogniser, access: Access | None) -> tuple[View | None, str | None]:
    """The model's view, or why it has none: then its transcripts are all there is."""
    if access == "transcripts":
        return None, None
    if find_spec("torch") is None:
        return None, "torch is not installed"
    from speech_robust_bench.attacks.views.open_view import open_view

    try:
        return open_view(recogniser), None
    except UserError as error:
        if access is not None:
            raise
        return None, str(error)
