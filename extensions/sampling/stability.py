"""How much data keeps a ranking: Spearman's rho between the ranking on everything and on a part of it.

SUPERB-SG (Tsai et al., ACL 2022, Section 5.3) shows that the ranking of models hardly changes with less data; this asks
the same of a benchmark's configs and clips. `suites` has sets of configs and clips that were chosen by it.

`srb.stability`: how many configs and clips are enough to rank some recognisers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.options import Options, at_least, option
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.aggregate import ConfigCounts, score
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.verdict_guard import refuse_ranking


@dataclass(frozen=True)
class PartStability:
    """How well random parts of one size keep the ranking: the mean rho, and what 19 of 20 parts reach."""

    size: int
    of: int
    mean: float
    low: float
    same_order: float  # the share of parts that rank every model alike


def spearman(one: Sequence[float], other: Sequence[float]) -> float:
    """Spearman's rank correlation, ties at their mean rank; 1 where either has no order at all and both agree.

    >>> round(spearman([1, 2, 3, 4], [1, 2, 4, 3]), 6)
    0.8
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (one, other)]
    if any(np.ptp(r) == 0 for r in ranks):
        return 1.0 if all(np.ptp(r) == 0 for r in ranks) else 0.0
    return float(np.corrcoef(*ranks)[0, 1])


def of_parts(
    errors: np.ndarray, lengths: np.ndarray, sizes: Sequence[int], *, trials: int = 200, seed: int = 0
) -> list[PartStability]:
    """Draw random items (columns) without replacement; a model's score is its errors over its lengths (rows).

    For configs, whose scores are averaged, the errors are the scores and every length is 1.
    """

    def score(drawn: np.ndarray) -> np.ndarray:
        return errors[:, drawn].sum(axis=1) / np.maximum(lengths[:, drawn].sum(axis=1), 1)

    return of_random_parts(score, errors.shape[1], sizes, trials=trials, seed=seed)


def of_random_parts(
    score: Callable[[np.ndarray], np.ndarray], items: int, sizes: Sequence[int], *, trials: int = 200, seed: int = 0
) -> list[PartStability]:
    """The same for any score: `score(items)` gives one number per model for some items, low is good."""
    rng = np.random.default_rng(seed)
    everything = score(np.arange(items))
    if len(everything) < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {len(everything)}")
    order = np.argsort(everything, kind="stable")
    stabilities = []
    for size in sorted({min(max(int(size), 1), items) for size in sizes}):
        correlations = []
        alike = 0
        for _ in range(trials):
            scores = score(rng.choice(items, size, replace=False))
            correlations.append(spearman(scores.tolist(), everything.tolist()))
            alike += bool((np.diff(scores[order]) >= 0).all())
        mean, low = float(np.mean(correlations)), float(np.quantile(correlations, 0.05))
        stabilities.append(PartStability(size, items, mean, low, alike / trials))
    return stabilities


def enough(stabilities: Sequence[PartStability], rho: float = 0.95) -> int | None:
    """The smallest size from which on 19 of 20 parts reach a correlation."""
    best = None
    for stability in sorted(stabilities, key=lambda s: -s.size):
        if stability.low < rho:
            break
        best = stability.size
    return best


def subsets(
    scores: np.ndarray, size: int, among: Sequence[int] | None = None
) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Every set of columns of a size, with its correlation to the mean of all columns (models are rows).

    The correlation is the least that is left when any one model is taken away, so that no single model decides.
    """
    everything = np.nanmean(scores, axis=1)
    models = np.arange(len(scores))
    kept = [models, *(models[models != model] for model in models)]
    for columns in combinations(range(scores.shape[1]) if among is None else among, size):
        part = scores[:, columns].mean(axis=1)
        yield min(spearman(part[k].tolist(), everything[k].tolist()) for k in kept), columns


@dataclass(frozen=True)
class RankedScores:
    """What some models are ranked by: a score per config, and a score on any of the clips that all configs have."""

    configs: list[str]
    of_configs: np.ndarray  # models x configs
    clips: list[str]
    of_clips: Callable[[np.ndarray], np.ndarray]
    speakers: int | None  # of all clips, where they are known
    transcripts: int  # that every score is made from

    def of_some_configs(self, drawn: np.ndarray) -> np.ndarray:
        """Each model's mean over some configs."""
        return self.of_configs[:, drawn].mean(axis=1)

    @property
    def overall(self) -> np.ndarray:
        """Each model's score: the mean over configs."""
        return self.of_configs.mean(axis=1)


def ranked_scores(runs: Sequence[Run], by: str = "wer", table: str | None = None) -> RankedScores:
    """The scores of some runs on the configs that all have: WER, or WERD or NWERD of the configs that have one.

    A part of the clips has the same clips in every config, which is what `--limit` gives. On it, WER is that of all
    configs together; WERD and NWERD are the mean over configs, each against clean speech of the same clips.
    """
    counts = _counts_of_all(runs)
    sizes = _speakers(counts[0]), sum(len(c.ids) for c in counts[0])
    if by == "wer":
        clips, errors, lengths = _per_clip(counts)
        summed = errors.sum(axis=1), lengths.sum(axis=1)
        return RankedScores(
            [c.config for c in counts[0]],
            np.array([[c.counts.rate for c in row] for row in counts]),
            clips,
            lambda drawn: summed[0][:, drawn].sum(axis=1) / np.maximum(summed[1][:, drawn].sum(axis=1), 1),
            *sizes,
        )
    scored = [{s.config: s for s in score(row, table=table, replicates=0)} for row in counts]
    known = [c.config for c in counts[0] if all(by in each[c.config].values for each in scored)]
    if not known:
        why = next((s.why[by] for each in scored for s in each.values() if by in s.why), "there is only clean speech")
        raise UserError(f"no config that all runs have has a {by.upper()}: {why}")
    values = np.array([[each[config].values[by] for config in known] for each in scored])
    paired = [c for c in counts[0] if c.config in known and c.paired and c.source]
    names = [*dict.fromkeys(c.source or "" for c in paired), *(c.config for c in paired)]
    clips, errors, lengths = _per_clip([[c for name in names for c in row if c.config == name] for row in counts])
    noisy = [names.index(c.config) for c in paired]
    clean = [names.index(c.source or "") for c in paired]
    scale = [100 / (scored[0][c.config].difficulty or 100) if by == "nwerd" else 1 for c in paired]

    def of_clips(drawn: np.ndarray) -> np.ndarray:
        rates = 100 * errors[:, :, drawn].sum(axis=2) / np.maximum(lengths[:, :, drawn].sum(axis=2), 1)
        return ((rates[:, noisy] - rates[:, clean]) * np.array(scale)).mean(axis=1)

    return RankedScores(known, values, clips, of_clips, *sizes)


def _speakers(counts: Sequence[ConfigCounts]) -> int | None:
    names = {(parse(c.config).corpus, speaker) for c in counts for speaker in c.speakers or () if speaker}
    return len(names) or None


def _counts_of_all(runs: Sequence[Run]) -> list[list[ConfigCounts]]:
    """For each run its counts on the configs with speech that all have."""
    for run in runs:
        run.refuse_anchors()
    common = [c for c in runs[0].configs if all(c in run.configs for run in runs)]
    spoken = [c for c in common if runs[0].about.config(c).category != "reject"]
    spoken = [c for c in spoken if all(run.read(c).transcribed.lines for run in runs)]
    if not spoken:
        raise UserError("the runs have no config with speech and transcripts in common; run all on the same configs")
    counts = [[run.read(config).count() for config in spoken] for run in runs]
    for run, own in zip(runs, counts, strict=True):
        refuse_ranking(run.folder, own)
    for other in counts[1:]:
        for mine, theirs in zip(counts[0], other, strict=True):
            if list(mine.ids) != list(theirs.ids):
                raise UserError(f"{mine.config}: the runs are not on the same clips; run all on the same clips")
    return counts


def _per_clip(counts: Sequence[Sequence[ConfigCounts]]) -> tuple[list[str], np.ndarray, np.ndarray]:
    """The clips that every config has, and the errors and lengths: (model, config, clip)."""
    clips = sorted(set.intersection(*(set(c.ids) for c in counts[0]))) if counts[0] else []
    errors, lengths = np.zeros((2, len(counts), len(counts[0]), len(clips)))
    for model, row in enumerate(counts):
        for place, config in enumerate(row):
            at = {clip: index for index, clip in enumerate(config.ids)}
            chosen = [at[clip] for clip in clips]
            errors[model, place] = config.counts.errors[chosen]
            lengths[model, place] = config.counts.lengths[chosen]
    return clips, errors, lengths


@dataclass(frozen=True)
class SettingRank:
    """How the encoders of one kind of probe rank, beside the kind with the most encoders."""

    setting: str
    scores: dict[str, float]
    spearman: float | None


def across_probe_settings(runs: Sequence[Run], scores: np.ndarray) -> list[SettingRank]:
    """Do encoders keep their ranks with a smaller head or less data? Nothing where the runs are not of such probes.

    `scores` has one number per run. A run of a probe says in its options what it was trained with.
    """
    groups: dict[tuple, dict[str, float]] = {}
    for run, value in zip(runs, scores.tolist(), strict=True):
        options = run.about.options or {}
        if "upstream" not in options or not isinstance(options.get("head"), dict):
            return []
        hours = options.get("train_hours_asked")
        groups.setdefault((str(options["head"].get("size")), hours), {})[str(options["upstream"])] = value
    if len(groups) < 2:
        return []
    order = sorted(groups, key=lambda key: (-len(groups[key]), key[0] != "medium", key[1] is not None, str(key)))
    ranks = []
    for key in order:
        shared = sorted(set(groups[key]) & set(groups[order[0]]))
        both = [[groups[group][name] for name in shared] for group in (order[0], key)]
        rho = spearman(*both) if len(shared) >= 3 else None
        name = f"{key[0]} head, {'all data' if key[1] is None else f'{key[1]:g} h'}"
        ranks.append(SettingRank(name, groups[key], rho))
    return ranks


def sizes_of(items: int) -> list[int]:
    """Sizes to try: 1, 2, 5, 10, 20, ... up to all."""
    steps = [m * 10**power for power in range(7) for m in (1, 2, 5)]
    return [*(size for size in steps if size < items), items]


def _correlation(value: Any) -> str | None:
    return None if 0 < value <= 1 else f"must be above 0 and at most 1, not {value}"


@dataclass(frozen=True)
class StabilityOptions(Options):
    """The measure that ranks, and the required rank correlation."""

    measure: Literal["wer", "werd", "nwerd"] = option(
        "wer", "measure that ranks the recognisers", choices=("wer", "werd", "nwerd")
    )
    difficulty: str = option(
        "paper-table3", "difficulty table of NWERD: a name, or the path of a CSV file", metavar="TABLE"
    )
    rho: float = option(0.95, "required rank correlation", check=_correlation)
    trials: int = option(200, "number of random subsets of each size", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of the random subsets")


@dataclass(frozen=True)
class Stability:
    """How well random subsets of configs and clips keep the ranking, and whether probes keep their ranks."""

    options: StabilityOptions
    parts: dict[str, list[Any]]  # "configs" and "clips": a row for each size
    settings: list[Any]
    transcripts: int  # of each recogniser, that its score is made from
    speakers: int | None  # of the clips, where they are known

    def enough(self, what: str) -> int | None:
        """The smallest size that keeps the ranking; None if no subset does."""
        return enough(self.parts[what], self.options.rho)

    def to_json(self) -> dict[str, Any]:
        """The result as plain values."""
        report: dict[str, Any] = {what: [asdict(row) for row in rows] for what, rows in self.parts.items()}
        sizes = {"transcripts": self.transcripts, "speakers": self.speakers}
        return report | {"by": self.options.measure, "settings": [asdict(row) for row in self.settings], **sizes}


def stability(runs: Sequence[Place], stability_options: StabilityOptions = StabilityOptions()) -> Stability:
    """Measure how many configs and clips are needed to rank three or more runs."""
    if len(runs) < 3:
        raise UserError(f"a ranking needs three recognisers or more, not {len(runs)}")
    options, opened = stability_options, [open_run(str(run)) for run in runs]
    ranked = ranked_scores(opened, options.measure, options.difficulty)
    how = {"trials": options.trials, "seed": options.seed}
    configs, clips = len(ranked.configs), len(ranked.clips)
    parts = {
        "configs": of_random_parts(
            lambda drawn: ranked.of_configs[:, drawn].mean(axis=1), configs, sizes_of(configs), **how
        ),
        "clips": of_random_parts(ranked.of_clips, clips, sizes_of(clips), **how) if clips else [],
    }
    settings = list(across_probe_settings(opened, ranked.overall))
    return Stability(options, parts, settings, ranked.transcripts, ranked.speakers)
