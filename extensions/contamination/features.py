"""Features that may tell whether a model was trained on a clip (Olivier, Section 5.5 and Appendix C.2), and how well.

From the transcript alone (black box): its errors, its length, words that are right but spelled otherwise than in the
reference, and masked words that are written nevertheless. From the loss of the reference (grey box): on the clip, and
its mean and spread under white noise at some SNRs (Algorithm 3). From its gradient (white box): the loss after one
adversarial step within some L-inf radii (Algorithm 2, with the thesis's eta = 1 and N = 1).

How well they tell two groups of clips apart: cross-fitted logistic regression, AUC and TPR at 1 % false alarms. The
regression is fitted on the other folds, so no clip is judged by a rule that has seen it; the clips of one speaker stay
in one fold. The AUC counts pairs of the same fold: across folds two rules would be compared. Carlini et al.,
"Membership Inference Attacks From First Principles" (2022), ask for the rate of hits at few false alarms beside it.

An interval that resamples the clips with their scores takes the fitted rules as given, and is too short: of models
that have seen neither side it had 0.5 in 85 % of 80 simulations of 2 x 40 clips, and in 77 % of 30 of 2 x 150. So it is
at least as wide as the AUC varies when labels are permuted and the rules fitted again (95 % and 97 %). The verdict is
the permutation test.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal

import numpy as np

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Record
from speech_robust_bench.scoring.bootstrap import CLIPS, Units
from speech_robust_bench.scoring.bootstrap import interval as percentiles
from speech_robust_bench.scoring.estimate import FEWEST_UNITS
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


FALSE_ALARMS = 0.01
FEWEST_FRESH = round(1 / FALSE_ALARMS)  # with fewer, one false alarm is more than 1 %
RIDGE = 1.0


@dataclass(frozen=True, eq=False)
class Clips:
    """Which clips are suspects, and what is resampled together and kept in one fold."""

    suspect: np.ndarray
    units: Units
    folds: np.ndarray

    @classmethod
    def of(
        cls, ids: Sequence[str], speakers: Sequence[str | None], suspect: Sequence[bool], count: int, seed: int
    ) -> Clips:
        """Speakers as units, where each group has as many of them as there are folds; else clips."""
        mask = np.asarray(suspect, dtype=bool)
        units = Units.of(ids, speakers)
        if min(_units_of(units, group) for group in (mask, ~mask)) < count:
            units = Units.of(ids, None, CLIPS)
        if min(mask.sum(), (~mask).sum()) < count:
            raise UserError(
                f"a test with {count} folds needs {count} usable clips or more on each side, not {mask.sum()} suspects "
                f"and {(~mask).sum()} fresh ones"
            )
        return cls(mask, units, _folds(units, mask, count, seed))

    def permuted(self, rng: np.random.Generator) -> Clips:
        """The clips with labels as they might be if the sides did not differ, unit by unit.

        Where a unit has clips of both sides, labels change places inside it; else whole units change sides.
        """
        suspect, place = self.suspect.copy(), self.units.place
        if _units_of(self.units, suspect) + _units_of(self.units, ~suspect) > len(self.units):
            for unit in range(len(self.units)):
                suspect[place == unit] = rng.permutation(suspect[place == unit])
        else:
            side = np.zeros(len(self.units), dtype=bool)
            side[place] = suspect
            suspect = rng.permutation(side)[place]
        return Clips(suspect, self.units, _folds(self.units, suspect, len(np.unique(self.folds)), 0))

    @property
    def fewest_units(self) -> int:
        """The units of the smaller group."""
        return min(_units_of(self.units, group) for group in (self.suspect, ~self.suspect))

    def draws(self, replicates: int, seed: int) -> np.ndarray:
        """How often each clip is drawn in each replicate; those without a clip of either group are left out."""
        weights = self.units.weights(replicates, seed)[:, self.units.place]
        return weights[(weights @ self.suspect > 0) & (weights @ ~self.suspect > 0)]


def _units_of(units: Units, group: np.ndarray) -> int:
    return len(set(units.place[group].tolist()))


def _folds(units: Units, suspect: np.ndarray, count: int, seed: int) -> np.ndarray:
    """A fold for each clip: unit by unit into the one that has the fewest clips of its group."""
    sizes = np.zeros((count, 2))
    fold_of_unit = np.zeros(len(units), dtype=int)
    order = np.random.default_rng(seed).permutation(len(units))
    members = np.stack([units.sums(~suspect), units.sums(suspect)], axis=1)
    for unit in sorted(order, key=lambda unit: -members[unit].max()):
        group = int(members[unit].argmax())
        fold_of_unit[unit] = np.lexsort((sizes.sum(axis=1), sizes[:, group]))[0]
        sizes[fold_of_unit[unit]] += members[unit]
    return fold_of_unit[units.place]


def cross_fit(values: np.ndarray, clips: Clips) -> np.ndarray:
    """The probability that each clip is a suspect, by a regression on the other folds, as if both groups were equal."""
    scores = np.zeros(len(values))
    for fold in np.unique(clips.folds):
        test = clips.folds == fold
        known = ~np.isnan(values[~test])
        centre = np.where(known, values[~test], 0).sum(0) / np.maximum(known.sum(0), 1)
        filled = np.where(np.isnan(values), centre, values) - centre
        spread = filled[~test].std(0)
        scaled = filled / np.where(spread > 1e-12, spread, 1)
        weights = fit_logistic(scaled[~test], clips.suspect[~test])
        scores[test] = 1 / (1 + np.exp(-(weights[0] + scaled[test] @ weights[1:])))
    return scores


def fit_logistic(values: np.ndarray, labels: np.ndarray, ridge: float = RIDGE) -> np.ndarray:
    """Intercept and coefficients of a logistic regression with an L2 penalty and balanced classes."""
    from scipy.optimize import minimize

    signs = np.where(labels, 1.0, -1.0)
    balance = len(labels) / 2 / np.where(labels, labels.sum(), (~labels).sum())
    inputs = np.column_stack([np.ones(len(values)), values])
    penalty = np.r_[0.0, np.full(values.shape[1], ridge)]

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (inputs @ weights)
        slope = -balance * signs / (1 + np.exp(margins.clip(-500, 500)))
        value = balance @ np.logaddexp(0, -margins) + 0.5 * penalty @ weights**2
        return float(value), inputs.T @ slope + penalty * weights

    return minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x


def wins(scores: np.ndarray, clips: Clips, within_folds: bool = True) -> tuple[np.ndarray, np.ndarray]:
    """For each suspect and each fresh clip whether the suspect scores higher (0.5 if equal), and which pairs count."""
    ours, theirs = scores[clips.suspect][:, None], scores[~clips.suspect][None]
    pairs = np.ones((len(ours), theirs.shape[1]))
    if within_folds:
        pairs = (clips.folds[clips.suspect][:, None] == clips.folds[~clips.suspect][None]).astype(float)
    return ((ours > theirs) + 0.5 * (ours == theirs)) * pairs, pairs


def auc(scores: np.ndarray, clips: Clips, draws: np.ndarray | None = None, within_folds: bool = True) -> np.ndarray:
    """The AUC in each replicate; without draws, of the clips themselves."""
    won, pairs = wins(scores, clips, within_folds)
    weights = np.ones((1, len(scores))) if draws is None else draws
    ours, theirs = weights[:, clips.suspect], weights[:, ~clips.suspect]
    total = np.einsum("rs,sf,rf->r", ours, pairs, theirs, optimize=True)
    return np.einsum("rs,sf,rf->r", ours, won, theirs, optimize=True) / np.maximum(total, 1e-12)


def permuted_aucs(values: np.ndarray, clips: Clips, permutations: int, seed: int) -> np.ndarray:
    """The AUC of the regression when it is fitted again to permuted labels."""
    rng = np.random.default_rng(seed)
    drawn = (clips.permuted(rng) for _ in range(permutations))
    return np.array([auc(cross_fit(values, each), each)[0] for each in drawn])


def permutation_p(permuted: np.ndarray, found: float) -> float:
    """How often permuted labels have an AUC as high as the one found (one-sided)."""
    return float((1 + (permuted >= found - 1e-12).sum()) / (1 + len(permuted)))


def refit_error(permuted: np.ndarray, value: float) -> float:
    """The standard error of an AUC whose rules would be fitted again; like a share's it vanishes near 0 and 1."""
    return 2 * float(np.std(permuted) * np.sqrt(max(0.0, value * (1 - value))))


def widened(bounds: tuple[float, float] | None, value: float, error: float, level: float) -> tuple[float, float] | None:
    """An interval that is at least as wide as a standard error asks for."""
    if bounds is None:
        return None
    half = NormalDist().inv_cdf((1 + level) / 2) * error
    return min(bounds[0], value - half), max(bounds[1], value + half)


def hits_at_false_alarms(scores: np.ndarray, clips: Clips, draws: np.ndarray | None = None) -> np.ndarray:
    """In each replicate the share of suspects above the threshold that at most 1 % of the fresh clips exceed."""
    weights = np.ones((1, len(scores))) if draws is None else draws
    order = np.argsort(-scores[~clips.suspect], kind="stable")
    theirs = weights[:, ~clips.suspect][:, order]
    above = theirs.cumsum(axis=1) <= FALSE_ALARMS * theirs.sum(axis=1, keepdims=True) + 1e-9
    first_below = above.argmin(axis=1)  # the best fresh clip that may not be exceeded
    threshold = scores[~clips.suspect][order][first_below]
    ours = weights[:, clips.suspect]
    caught = scores[clips.suspect][None] > threshold[:, None]
    return (ours * caught).sum(axis=1) / ours.sum(axis=1)


def drawn_interval(drawn: np.ndarray, units: int, level: float) -> tuple[float, float] | None:
    """The bootstrap's interval; None with too few units."""
    return percentiles(drawn, level, units) if units >= FEWEST_UNITS and len(drawn) else None


def share_interval(value: float, drawn: np.ndarray, units: int, level: float) -> tuple[float, float] | None:
    """The bootstrap's interval of a share, near 0 and 1 at least Wilson's for the smaller side.

    No AUC varies more than a share of as many independent cases as the smaller side has (Birnbaum and Klose 1957), and
    the bootstrap knows no spread where the sides do not overlap.
    """
    bounds = drawn_interval(drawn, units, level)
    if bounds is None:
        return None
    low, high = bounds
    if min(value, 1 - value) < 1 / units:
        from scipy.stats import binomtest

        wilson = binomtest(round(value * units), units).proportion_ci(level, method="wilson")
        low, high = min(low, wilson.low), max(high, wilson.high)
    return max(0.0, low), min(1.0, high)
