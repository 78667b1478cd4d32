"""A one-sided test on paired counts that may look at its data several times and stop at the first clear answer.

Looking again and again with an ordinary test raises false alarms whenever chance will have it. A group-sequential test
spends its error level over the looks: Lan and DeMets, "Discrete sequential boundaries for clinical trials", Biometrika
1983; here by the power family alpha * t^rho of Kim and DeMets (Biometrika 1987), t being the share of clips so far.
The boundaries come from the recursion of Armitage, McPherson and Rowe (JRSS A 1969). Statistics of few clips are
Student's t, taken to the normal scale by their p-value; the intervals are repeated confidence intervals (Jennison and
Turnbull, JRSS B 1989) of a ratio of means by Fieller's theorem, so they hold at every look together.

Is a new recogniser less robust than the one that is in use? A test for every change, which ends as soon as it knows.

The new recogniser gets clips on which the old one was run before; only the clips' errors count, in pairs. The clips
come in random order, each under some of the configs in turn, and after some of them the sequential test is asked. It
ends with "worse" when the rise of the noisy WER is above what is allowed, with "not worse" when it is below what must
not be missed, and "undecided" when the clips run out before either is certain.

The test is over speakers where they are known: the errors of all clips of a speaker so far are one unit, because a
change may help one voice and harm another. Elsewhere a clip with all its perturbed versions is one. Later looks then
have more clips of the same speakers and resemble earlier ones more than the bounds assume, which makes crossing any
of them rarer (Slepian's inequality), so the error level holds.
"""

from __future__ import annotations

import fnmatch
import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from speech_robust_bench.core.categories import REJECT
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.gate.result import NOT_WORSE, UNDECIDED, WORSE, GateOptions, GateResult, Look, Part
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.bootstrap import SPEAKERS, Units, holm
from speech_robust_bench.scoring.estimate import FEWEST_UNITS
from speech_robust_bench.scoring.runs import Run

RHO = 2  # 1 spends evenly, as Pocock's bounds do; 3 keeps nearly all for the end, as O'Brien and Fleming's
GRID = 801  # points of the recursion's integral; 201 give the same three decimals
FARTHEST = 8.0  # standard deviations that the integral reaches down to


@dataclass(frozen=True)
class Ratio:
    """How many times as many errors the second of two recognisers makes, with the bounds that hold at this look."""

    value: float
    low: float
    high: float


def spending(times: Sequence[float], alpha: float, rho: float = RHO) -> tuple[float, ...]:
    """The error level spent up to each look, a share of the whole in (0, 1].

    >>> spending([0.5, 1.0], 0.05)
    (0.0125, 0.05)
    """
    return tuple(alpha * time**rho for time in times)


@lru_cache(maxsize=64)
def boundaries(times: tuple[float, ...], spent: tuple[float, ...]) -> tuple[float, ...]:
    """The normal score that the statistic must pass at each look, given what is spent up to it.

    Without a look before, it is the normal quantile:

    >>> [round(bound, 3) for bound in boundaries((1.0,), (0.05,))]
    [1.645]
    """
    from scipy.optimize import brentq
    from scipy.stats import norm

    bounds = [float(norm.isf(spent[0]))]
    points = _grid(times[0], bounds[0])
    density = norm.pdf(points / math.sqrt(times[0])) / math.sqrt(times[0])
    for earlier, time, increment in zip(times, times[1:], np.diff(spent), strict=False):
        sd = math.sqrt(time - earlier)

        def excess(bound: float, sd: float = sd, increment: float = increment) -> float:
            return float(np.trapezoid(density * norm.sf((bound - points) / sd), points)) - increment  # noqa: B023

        score = float(brentq(excess, -FARTHEST * math.sqrt(time), 2 * FARTHEST * math.sqrt(time)))
        bounds.append(score / math.sqrt(time))
        following = _grid(time, bounds[-1])
        steps = norm.pdf((following[:, None] - points) / sd) / sd
        points, density = following, np.trapezoid(density * steps, points, axis=1)
    return tuple(bounds)


def _grid(time: float, bound: float) -> np.ndarray:
    """The scores at which a test that has not stopped may stand."""
    return np.linspace(-FARTHEST * math.sqrt(time), bound * math.sqrt(time), GRID)


def score(old: np.ndarray, new: np.ndarray, ratio: float = 1.0) -> float:
    """The normal score of "new is more than ratio times old": counts of independent units, in pairs.

    Where every unit has the same difference there is no variance to judge it by, and the score is 0.
    """
    from scipy.stats import norm, t

    differences = new - ratio * old
    error = differences.std(ddof=1) / math.sqrt(len(differences))
    if not error:
        return 0.0
    statistic = float(differences.mean() / error)
    tail = float(norm.isf(t.sf(abs(statistic), len(differences) - 1)))
    return math.copysign(tail, statistic)


def ratio(old: np.ndarray, new: np.ndarray, bound: float) -> Ratio:
    """The ratio of the means, and the ratios that a score within `bound` does not rule out (Fieller's theorem)."""
    from scipy.stats import norm, t

    units = len(old)
    means = float(old.mean()), float(new.mean())
    value = means[1] / means[0] if means[0] else (math.inf if means[1] else 1.0)
    quantile = float(t.isf(norm.sf(bound), units - 1))
    (old_var, both), (_, new_var) = np.cov(old, new) * quantile**2 / units
    # (new - r old)^2 <= variance of (new - r old), a quadratic in r
    a, b, c = means[0] ** 2 - old_var, means[0] * means[1] - both, means[1] ** 2 - new_var
    root = math.sqrt(max(b**2 - a * c, 0.0))
    if a <= 0:  # too few errors to say that the first makes any: there is no upper end
        return Ratio(value, _lower_end(a, b, c, root), math.inf)
    return Ratio(value, max((b - root) / a, 0.0), (b + root) / a)


def _lower_end(a: float, b: float, c: float, root: float) -> float:
    """The smallest ratio that is not ruled out where none above it is."""
    if c <= 0:  # zero is not ruled out
        return 0.0
    if a == 0:
        return c / (2 * b) if b > 0 else math.inf
    return (b - root) / a


def units_needed(old: np.ndarray, new: np.ndarray, rise: float, alpha: float, beta: float) -> int | None:
    """How many units like these find a rise of the mean with power 1 - beta, in one look; None without any errors."""
    from scipy.stats import norm

    least = rise * float(old.mean())
    sd = float((new - old).std(ddof=1))
    if not least or not sd:
        return None
    return math.ceil(((norm.isf(alpha) + norm.isf(beta)) * sd / least) ** 2)


LOOKS = (0.1, 0.2, 0.35, 0.5, 0.75, 1.0)  # shares of the units after which the test is asked
FEWEST_CLIPS = 20  # for the first look: of fewer the variance is not known well enough
Pair = tuple[str, str]  # config, id of the clip
Versions = tuple[Pair, ...]  # one clip under some configs
Transcribe = Callable[[Sequence[Pair]], Mapping[Pair, int]]  # the new recogniser's errors on some clips


@dataclass(frozen=True)
class GatePlan:
    """The clips in the order in which they are played, each under one or some configs, and when to look.

    `owners` has the unit of the test that each clip belongs to, its speaker or itself; `kind` says which.
    """

    versions: tuple[Versions, ...]
    owners: tuple[str, ...]
    kind: str
    looks: tuple[int, ...]

    @property
    def clips(self) -> int:
        """How many clips are played if the test does not end early."""
        return sum(map(len, self.versions))

    @property
    def pairs(self) -> list[Pair]:
        """All that is played."""
        return [pair for versions in self.versions for pair in versions]

    def units(self, end: int, configs: Collection[str]) -> dict[str, list[Pair]]:
        """What each unit of the test has in some configs, of the clips up to a look."""
        units: dict[str, list[Pair]] = {}
        for owner, versions in zip(self.owners[:end], self.versions, strict=False):
            if pairs := [pair for pair in versions if pair[0] in configs]:
                units.setdefault(owner, []).extend(pairs)
        return units


def choose_configs(baseline: Run, patterns: Sequence[str] = ()) -> list[str]:
    """The configs of the baseline that patterns mean; without any, all with perturbed or hard speech.

    Clips without speech have no WER, and an attack is made for one model, so neither is ever played.
    """
    playable = [
        config
        for config in baseline.configs
        if baseline.about.config(config).category != REJECT and not parse(config).model
    ]
    chosen: dict[str, None] = {}
    for pattern in patterns:
        matching = fnmatch.filter(playable, pattern)
        if not matching:
            raise UserError(f"no config '{pattern}' in {baseline.folder}; {did_you_mean(pattern, playable)}")
        chosen.update(dict.fromkeys(matching))
    configs = list(chosen) if patterns else [config for config in playable if parse(config).scenario != "clean"]
    if not configs:
        raise UserError(f"{baseline.folder} has no config with perturbed speech; run the baseline on some first")
    return configs


def plan(counts: Sequence[ConfigCounts], clips: int, seed: int = 0, resample: str = "auto") -> GatePlan:
    """Which clips to play under which configs, in a random order that depends on the clips and the seed alone."""
    configs_of: dict[Pair, list[str]] = {}
    speaker_of: dict[Pair, str | None] = {}
    for config in counts:
        group = config.source if config.source and config.paired else config.config
        for clip, speaker in zip(config.ids, config.speakers or [None] * len(config.ids), strict=True):
            configs_of.setdefault((group, clip), []).append(config.config)
            speaker_of[group, clip] = f"{parse(group).corpus} {speaker}" if speaker else None
    keys = sorted(configs_of)
    units = Units.of(list(map("\t".join, keys)), [speaker_of[key] for key in keys], resample)
    owner_of = dict(zip(keys, units.blocks, strict=True))
    entropy = hashlib.sha256("\n".join(map("\t".join, keys)).encode()).digest()
    rng = np.random.default_rng([seed, int.from_bytes(entropy[:16], "big")])
    keys = [keys[place] for place in rng.permutation(len(keys))][:clips]
    turn = {config.config: place for place, config in zip(rng.permutation(len(counts)), counts, strict=True)}
    wanted = np.diff(np.arange(len(keys) + 1) * clips // max(len(keys), 1))  # configs of each clip
    played, chosen = dict.fromkeys(turn, 0), []
    for key, number in zip(keys, wanted, strict=True):
        names = sorted(configs_of[key], key=lambda config: (played[config], turn[config]))[:number]
        for name in names:
            played[name] += 1
        chosen.append(tuple((name, key[1]) for name in names))
    owners = tuple(owner_of[key] for key in keys)
    return GatePlan(tuple(chosen), owners, units.kind, _looks(owners, units.kind))


def _looks(owners: Sequence[str], kind: str) -> tuple[int, ...]:
    """After how many clips the test is asked: never before the variance over units can be known."""
    ends = sorted({math.ceil(share * len(owners)) for share in LOOKS})
    least = FEWEST_UNITS if kind == SPEAKERS else FEWEST_CLIPS
    return tuple(end for end in ends if len(set(owners[:end])) >= least or end == len(owners))


def _check_units(plan: GatePlan) -> None:
    """Refuse a test on too few units, before anything is played."""
    units = len(set(plan.owners))
    if plan.kind == SPEAKERS and units < FEWEST_UNITS:
        raise UserError(
            f"the clips to compare are of {units} speakers, and a test over speakers needs {FEWEST_UNITS}; "
            "with --resample clips it is over clips, and says nothing about other speakers"
        )
    if units < 2:
        raise UserError(f"the baseline has {units} clips in these configs; the gate needs more")


def decide(
    model: str, baseline: str, counts: Sequence[ConfigCounts], options: GateOptions, transcribe: Transcribe
) -> GateResult:
    """Have the new recogniser transcribe clips of the baseline, whose counts are given, until it is clear how it is.

    `transcribe` is handed the clips of one look after the other and gives the new recogniser's errors on each.
    """
    chosen = plan(counts, options.clips, options.seed, options.resample)
    _check_units(chosen)
    known = _by_pair(counts)
    errors = _Errors({pair: row[0] for pair, row in known.items()}, {pair: row[1] for pair, row in known.items()}, {})
    category = {config.config: config.category for config in counts}
    times = tuple(look / len(chosen.versions) for look in chosen.looks)
    looks: list[Look] = []
    bounds = boundaries(times, spending(times, options.alpha))
    for start, end, bound in zip((0, *chosen.looks), chosen.looks, bounds, strict=False):
        errors.new.update(transcribe([pair for versions in chosen.versions[start:end] for pair in versions]))
        looks.append(_look(chosen.units(end, category), errors, bound, options))
        if looks[-1].verdict:
            break
    units = chosen.units(end, category)
    needed = units_needed(*errors.sums(units), options.sought, options.alpha, options.alpha)
    return GateResult(
        model=model,
        baseline=baseline,
        verdict=looks[-1].verdict or UNDECIDED,
        options=options,
        looks=tuple(looks),
        parts=tuple(_parts(chosen, end, errors, category, options)),
        planned=chosen.clips,
        unit=chosen.kind,
        needed=needed and math.ceil(needed * looks[-1].clips / len(units)),
        needed_units=needed,
    )


@dataclass(frozen=True)
class _Errors:
    """The errors and words of each clip under each config."""

    old: dict[Pair, int]
    words: dict[Pair, int]
    new: dict[Pair, int]

    def sums(self, units: Mapping[str, Sequence[Pair]]) -> tuple[np.ndarray, np.ndarray]:
        """The errors of the old and of the new recogniser in each unit."""
        old, new = (
            np.array([sum(map(of.__getitem__, pairs)) for pairs in units.values()], float)
            for of in (self.old, self.new)
        )
        return old, new


def _by_pair(counts: Sequence[ConfigCounts]) -> dict[Pair, tuple[int, int]]:
    """Errors and words of each clip under each config."""
    return {
        (config.config, clip): (int(errors), int(words))
        for config in counts
        for clip, errors, words in zip(config.ids, config.counts.errors, config.counts.lengths, strict=True)
    }


def _look(units: Mapping[str, Sequence[Pair]], errors: _Errors, bound: float, options: GateOptions) -> Look:
    """The verdict that is certain at this look, if any."""
    old, new = errors.sums(units)
    verdict = None
    if score(old, new, 1 + options.worst) > bound:
        verdict = WORSE
    elif score(old, new, 1 + options.sought) < -bound:
        verdict = NOT_WORSE
    estimate = ratio(old, new, bound)
    clips = sum(map(len, units.values()))
    return Look(len(units), clips, estimate.value - 1, estimate.low - 1, estimate.high - 1, verdict)


def _parts(
    chosen: GatePlan, end: int, errors: _Errors, category: Mapping[str, str], options: GateOptions
) -> list[Part]:
    """All of the clips, each category and each config. Their intervals are those of a single look."""
    kinds: dict[str, dict[str, set[str]]] = {"all": {"all": set(category)}, "category": {}, "config": {}}
    for config, name in category.items():
        kinds["category"].setdefault(name, set()).add(config)
        kinds["config"][config] = {config}
    parts: list[Part] = []
    for kind, members in kinds.items():
        of_kind = [
            _part(name, kind, units, errors, options)
            for name, configs in members.items()
            if (units := chosen.units(end, configs))
        ]
        corrected = holm([part.p for part in of_kind])
        parts += [replace(part, p=p) for part, p in zip(of_kind, corrected, strict=True)]
    return parts


def _part(name: str, kind: str, units: Mapping[str, Sequence[Pair]], errors: _Errors, options: GateOptions) -> Part:
    from scipy.stats import norm

    old, new = errors.sums(units)
    pairs = [pair for unit in units.values() for pair in unit]
    words = max(sum(errors.words[pair] for pair in pairs), 1)
    known = len(units) >= FEWEST_UNITS  # of fewer the variance is hardly known
    estimate = ratio(old, new, float(norm.isf(options.alpha))) if known else Ratio(math.nan, 0.0, math.inf)
    return Part(
        name=name,
        kind=kind,
        units=len(units),
        clips=len(pairs),
        words=words,
        old_wer=100 * float(old.sum()) / words,
        new_wer=100 * float(new.sum()) / words,
        rise=float(new.sum() / old.sum() - 1) if old.any() else (math.inf if new.any() else 0.0),
        low=estimate.low - 1,
        high=estimate.high - 1,
        p=float(norm.sf(score(old, new, 1 + options.worst))) if known else 1.0,
    )
