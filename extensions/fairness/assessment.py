"""Groups from the voice itself, where nobody has said who speaks: high and low voices, by the median pitch.

A proxy, not a fact about people: it says how a voice sounds, not whose it is, and every table made with it says so. The
line between the two groups is 165 Hz, between the usual means of men (about 120 Hz) and of women (about 210 Hz) in
Baken and Orlikoff, "Clinical Measurement of Speech and Voice" (2000). Pitch is measured by autocorrelation of 40 ms
frames with the window's own autocorrelation divided out (Boersma, "Accurate short-term analysis of the fundamental
frequency", 1993).

All that `srb fairness` says of one or more runs, as one object that JSON can hold.

`srb.fairness`: AequeVox's tests on run folders: which groups of speakers lose more, and which words.
"""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import normaliser_option, option, resample_option, shares
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.extensions.fairness import violations
from speech_robust_bench.extensions.fairness.fault_localisation import (
    OMEGA,
    Faults,
    ValidationOptions,
    localise,
    table9,
    validate_run,
)
from speech_robust_bench.extensions.fairness.result import (
    Assessment,
    ComparisonRow,
    Counts,
    DegradationRow,
    FaultRow,
    GroupSize,
    LostWord,
    SkippedSet,
    TestedSet,
    Violations,
)
from speech_robust_bench.extensions.fairness.violations import Degradation, GroupComparison
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.clip_sets import (
    JOIN,
    TranscribedSet,
    clip_sets,
    pair_name,
    some,
    with_transcripts,
    without_transcripts,
)
from speech_robust_bench.scoring.disparity import GroupRates, group_disparity
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.verdict_guard import refusals_of_configs, tallies_of_run

NAME = "pitch"
LINE_HZ = 165.0
LOWEST_HZ, HIGHEST_HZ = 65.0, 400.0
FRAME_S, HOP_S = 0.04, 0.01
PERIODIC = 0.6  # of 1: how much like itself a frame must be one period later to count as voiced
LEAST_VOICED_S = 0.2


def median_pitch_hz(samples: Samples, rate: int = RATE) -> float | None:
    """The median pitch of a clip's voiced frames; None where there are too few of them."""
    size, hop = int(FRAME_S * rate), int(HOP_S * rate)
    if len(samples) < size:
        return None
    frames = np.lib.stride_tricks.sliding_window_view(samples.astype(np.float64), size)[::hop]
    loud = np.sqrt(np.mean(frames**2, axis=1))
    frames = frames[loud > 0.1 * np.quantile(loud, 0.95)]
    window = np.hanning(size)
    frames = (frames - frames.mean(axis=1, keepdims=True)) * window
    likeness = _autocorrelation(frames) / _autocorrelation(window[None])
    shortest, longest = int(rate / HIGHEST_HZ), int(rate / LOWEST_HZ)
    lags = likeness[:, shortest : longest + 1]
    # A period is also two periods: of the lags that are nearly as good as the best, the first peak is the pitch.
    best = lags.max(axis=1, keepdims=True)
    peaks = np.zeros(lags.shape, dtype=bool)
    peaks[:, 1:-1] = (lags[:, 1:-1] >= lags[:, :-2]) & (lags[:, 1:-1] > lags[:, 2:]) & (lags[:, 1:-1] > 0.9 * best)
    voiced = (best[:, 0] > PERIODIC) & peaks.any(axis=1)
    if voiced.sum() * HOP_S < LEAST_VOICED_S:
        return None
    return float(np.median(rate / (shortest + peaks[voiced].argmax(axis=1))))


def _autocorrelation(frames: np.ndarray) -> np.ndarray:
    """Of each row, 1 at lag 0."""
    size = frames.shape[1]
    correlation = np.fft.irfft(np.abs(np.fft.rfft(frames, 2 * size)) ** 2)[:, : size // 2]
    return correlation / np.maximum(correlation[:, :1], 1e-12)


def group(pitch_hz: float | None) -> str | None:
    """`low voice` or `high voice`.

    >>> group(120.0), group(210.0), group(None)
    ('low voice', 'high voice', None)
    """
    if pitch_hz is None:
        return None
    return "high voice" if pitch_hz >= LINE_HZ else "low voice"


def of_config(data: str | Path, config: str) -> dict[str, str | None]:
    """The group of each clip of a built config, by id."""
    from speech_robust_bench.builders.config_sources import open_data

    clips = open_data(str(data)).config(config)
    return {
        row.id: group(median_pitch_hz(window.decode(row)))
        for window in clips.windows({row.position for row in clips.rows})
        for row in window.rows
    }


SCHEMA = 2  # distances of two recognisers are pooled over their lengths, as in AequeVox' code; 1: averaged over clips


@dataclass(frozen=True)
class FairnessOptions:
    """What to test, and how."""

    groups: str = option(
        "gender",
        "groups of clips: a column of the predictions (gender, accent, age, ...), pitch, or a crossing: gender+accent",
        metavar="COLUMN",
    )
    base: str | None = option(None, "base group (default: every group in turn)", metavar="GROUP")
    tau: tuple[float, ...] = option(violations.TAUS, "violation thresholds")
    comprehensible: float | None = option(
        None,
        "only levels that people rated N of 10 or more (default: the levels of the paper's Table 4)",
        metavar="N",
        advanced=True,
    )
    ratings: str | None = option(
        None,
        "ratings by your own listeners: CSV of scenario,sev1,sev2,... (default: those of AequeVox)",
        metavar="CSV",
        advanced=True,
    )
    normaliser: str = normaliser_option()
    unit: str | None = option(
        None, "count errors in words or characters (default: by language)", choices=("word", "char-nospace")
    )
    minimum: int = option(1, "leave out groups of fewer clips", metavar="N")
    omega: int = option(OMEGA, "a word lost more than N times is not robust", metavar="N")
    population: Mapping[str, float] | None = option(
        None, "shares of groups in the population, for weighted WER", metavar="GROUP=SHARE", parse=shares
    )
    data: str | None = option(None, "built configs with the audio, for --groups pitch", advanced=True)
    resample: str = resample_option()
    replicates: int = option(1000, "bootstrap replicates", metavar="N", advanced=True)
    seed: int = option(0, "seed of the bootstrap", advanced=True)
    level: float = 0.95


def choose(run: Run, patterns: Sequence[str]) -> Run:
    """The run with only the configs that match a pattern; its clean configs always stay."""
    if not patterns:
        return run
    chosen = [c for c in run.configs if any(fnmatch.fnmatchcase(c, p) for p in patterns)]
    if not chosen:
        raise UserError(f"{run.folder} has no finished config that matches {' '.join(patterns)}")
    return replace(run, configs=tuple(c for c in run.configs if c in chosen or c.endswith("_clean")))


def assess(runs: Sequence[Run], options: FairnessOptions, advance: Callable[[], None] = lambda: None) -> Assessment:
    """Algorithms 1 and 2 and the rates of the groups, over every clean config of the runs and what was made from it."""
    _check(options)
    degradations: list[Degradation] = []
    comparisons: list[GroupComparison] = []
    faults: list[Faults] = []
    disparities: list[GroupRates] = []
    sets: list[TestedSet] = []
    skipped: list[SkippedSet] = []
    ratings = violations.read_ratings(options.ratings) if options.ratings else None
    how: Any = {"groups": options.groups, "normaliser": options.normaliser, "unit": options.unit, "advance": advance}
    for transcribed in clip_sets(runs, _proxy(runs, options), **how):
        labels = transcribed.clips.labels(options.groups)
        try:
            groups = violations.group_clips(labels, options.groups, options.base, options.minimum)
        except UserError as reason:  # the other clip sets may have the groups
            skipped.append(SkippedSet(clean=transcribed.clips.clean, why=str(reason)))
            continue
        tested, hidden = _levels(transcribed, options.comprehensible, ratings)
        sets.append(_tested_set(transcribed, tested, labels, groups, hidden, ratings))
        referenced = {group: clips[tested.known[clips]] for group, clips in groups.items()}
        referenced = {group: clips for group, clips in referenced.items() if len(clips) >= options.minimum}
        scored = with_transcripts(tested) if len(referenced) > 1 and (options.base or "") in ("", *referenced) else []
        for measured in (*without_transcripts(tested), *scored):
            degraded_and_compared = violations.compare_groups(
                measured,
                referenced if measured.form == "transcripts" else groups,
                base=options.base,
                resample=options.resample,
                replicates=options.replicates,
                level=options.level,
                seed=options.seed,
            )
            degradations += degraded_and_compared[0]
            comparisons += degraded_and_compared[1]
            if measured.form == "transcripts":
                disparities += group_disparity(measured, labels, referenced, options.population)
        faults += localise(tested, groups, transcripts=False)
        faults += localise(tested, referenced, transcripts=True) if scored else []
    refused = {run.model: refusals_of_configs(tallies_of_run(run, options.normaliser)) for run in runs}
    barred = _barred(refused)
    judged = [c for c in comparisons if (c.recogniser, c.config) not in barred]
    if not sets:
        raise UserError(skipped[0].why)
    if not comparisons:
        raise UserError("the clips have no transcripts; give two or more runs, which are then compared with each other")
    forms = [form for form in ("pair", "transcripts") if any(c.form == form for c in comparisons)]
    return Assessment(
        schema=SCHEMA,
        models=[run.model for run in runs],
        options=asdict(options) | {"tau": list(options.tau)},
        proxy=NAME in options.groups.split(JOIN),
        no_verdict={model: _reasons(configs) for model, configs in refused.items() if configs},
        sets=sets,
        skipped=skipped,
        degradations=[_degradation(d) for d in degradations],
        comparisons=[_comparison(c, options.tau if c in judged else ()) for c in comparisons],
        table4={form: _table4([c for c in judged if c.form == form], options.tau) for form in forms},
        table9={form: table9(f for f in faults if f.form == form) for form in ("alone", "transcripts")},
        faults=[_faults(f, options.omega) for f in faults],
        disparity=disparities,
    )


def _tested_set(
    transcribed: TranscribedSet,
    tested: TranscribedSet,
    labels: Sequence[str | None],
    groups: Mapping[str, np.ndarray],
    hidden: list[str],
    ratings: violations.Ratings | None,
) -> TestedSet:
    levels = list(tested.clips.levels)
    return TestedSet(
        clean=transcribed.clips.clean,
        clips=len(labels),
        left_out=transcribed.clips.left_out,
        unlabelled=sum(label is None for label in labels),
        groups={
            group: GroupSize(clips=len(clips), speakers=transcribed.clips.speaker_count(clips))
            for group, clips in groups.items()
        },
        levels=levels,
        not_rated=[level for level in levels if not violations.rated(level, ratings)],
        below_comprehensibility=hidden,
    )


def _barred(refused: Mapping[str, Mapping[str, str]]) -> set[tuple[str, str]]:
    """The recognisers, and the pairs of them, with the configs on which there is no verdict."""
    barred = {(model, config) for model, configs in refused.items() for config in configs}
    for one, other in combinations(refused, 2):
        barred |= {(pair_name(one, other), config) for config in {*refused[one], *refused[other]}}
    return barred


def _reasons(configs: Mapping[str, str]) -> str:
    """Each reason with its configs: `12% of the clips failed, more than 5% (en_noise_sev1)`."""
    by_reason: dict[str, list[str]] = {}
    for config, why in configs.items():
        by_reason.setdefault(why, []).append(config)
    return "; ".join(f"{why} ({some(names)})" for why, names in by_reason.items())


def _check(options: FairnessOptions) -> None:
    if not all(options.groups.split(JOIN)):
        raise UserError(f"--groups '{options.groups}' is not a column such as gender, nor some joined with +")
    if not options.tau or any(not 0 <= tau < 1 for tau in options.tau):
        raise UserError("--tau is a share between 0 and 1, as in --tau 0.05")
    if options.replicates < 0 or not 0 < options.level < 1 or options.minimum < 1 or options.omega < 0:
        raise UserError("--replicates and --omega are 0 or more, --minimum 1 or more, --level between 0 and 1")


def _proxy(runs: Sequence[Run], options: FairnessOptions) -> dict[str, dict[str, str | None]]:
    """The pitch groups of the clips of every clean config, if they are asked for."""
    if NAME not in options.groups.split(JOIN):
        return {}
    if options.data is None:
        raise UserError(
            "--groups pitch listens to the clips: say with --data where the built configs are, as in --data srb"
        )
    group_of_clip: dict[str, str | None] = {}
    for config in (c for c in runs[0].configs if c.endswith("_clean")):
        group_of_clip |= of_config(options.data, config)
    return {NAME: group_of_clip}


def _levels(
    transcribed: TranscribedSet, threshold: float | None, ratings: violations.Ratings | None
) -> tuple[TranscribedSet, list[str]]:
    """Only the levels that people understand well enough, and the names of the others."""
    levels = transcribed.clips.levels
    kept = tuple(level for level in levels if violations.comprehensible(level, threshold, ratings))
    hidden = [level for level in transcribed.clips.levels if level not in kept]
    if not kept:
        asked = (
            "is in the paper's Table 4" if threshold is None else f"has a comprehensibility of {threshold:g} or more"
        )
        raise UserError(f"no level of {transcribed.clips.clean} {asked}; --comprehensible N lowers the threshold")
    return replace(transcribed, clips=replace(transcribed.clips, levels=kept)), hidden


def number(value: float | None) -> float | None:
    """For JSON, which has no infinity."""
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def _degradation(degradation: Degradation) -> DegradationRow:
    return DegradationRow(
        recogniser=degradation.recogniser,
        form=degradation.form,
        config=degradation.config,
        group=degradation.group,
        clips=degradation.clips,
        clean=number(degradation.clean),
        transformed=number(degradation.transformed),
        degradation=number(degradation.value),
    )


def _comparison(comparison: GroupComparison, taus: Sequence[float]) -> ComparisonRow:
    return ComparisonRow(
        recogniser=comparison.recogniser,
        form=comparison.form,
        config=comparison.config,
        transformation=comparison.transformation,
        base=comparison.base,
        other=comparison.other,
        difference=number(comparison.difference),
        interval=[number(v) for v in comparison.interval] if comparison.interval else None,
        resampled=comparison.resampled,
        within_noise=comparison.within_noise,
        violates=[tau for tau in taus if comparison.violates(tau)],
    )


def _table4(comparisons: Sequence[GroupComparison], taus: Sequence[float]) -> Violations:
    counted = [violations.table4(comparisons, taus, beyond_noise=beyond) for beyond in (False, True)]
    total = counted[0].total
    tables: list[Counts] = [{"total": table.total, **dict(table.parts())} for table in counted]
    return Violations(
        violations=tables[0],
        beyond_noise=tables[1],
        excess_percent={group: number(violations.excess_percent(total, reference=group)) for group in total},
    )


def _faults(faults: Faults, omega: int) -> FaultRow:
    drops = faults.drops
    return FaultRow(
        recogniser=faults.recogniser,
        form=faults.form,
        transformation=faults.transformation,
        group=faults.group,
        average_drop=number(faults.average_drop),
        words=len(faults.initial),
        non_robust=[
            LostWord(
                word=word,
                initial=faults.initial[word],
                least=faults.least[word],
                drop=drops[word],
                became=faults.became.get(word, [])[:5],
            )
            for word in faults.non_robust(omega)
        ],
    )


__all__ = ["FairnessOptions", "fairness"]


def fairness(
    runs: Sequence[Place],
    configs: Sequence[str] = (),
    *,
    fairness_options: FairnessOptions = FairnessOptions(),
    validate: str | None = None,
    tts: str = "flite",
    snrs_db: Sequence[float] = (10, 6, 2),
    progress: bool = True,
) -> Assessment:
    """Test whether scenarios hurt some groups of speakers more than others.

    Args:
        runs: run folders; two or more are also compared in pairs.
        configs: only these names or patterns; clean configs always stay.
        fairness_options: groups, thresholds, bootstrap, the population.
        validate: a recogniser; lost and kept words are spoken to it in noise.
        tts, snrs_db: the voice and the SNRs of this validation.
        progress: show progress.
    """
    options = fairness_options
    opened = [choose(open_run(str(run)), configs) for run in runs]
    with progress_bar(not progress) as bar:
        task = bar.add_task("reading transcripts", total=sum(len(run.configs) for run in opened))
        result = assess(opened, options, lambda: bar.advance(task))
    if validate:
        how = ValidationOptions(tts, tuple(snrs_db), options.omega, options.seed)
        result = result.replace(validation=validate_run(opened[0], validate, how))
    return result
