"""All that `srb fairness` says of one or more runs, as one object that JSON can hold."""

from __future__ import annotations

import fnmatch
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.diagnosis import fairness_violations, pitch_proxy
from speech_robust_bench.diagnosis.clip_sets import (
    JOIN,
    TranscribedSet,
    clip_sets,
    with_transcripts,
    without_transcripts,
)
from speech_robust_bench.diagnosis.disparity import group_disparity
from speech_robust_bench.diagnosis.fairness_violations import Degradation, GroupComparison
from speech_robust_bench.diagnosis.fault_localisation import OMEGA, Faults, localise, table9
from speech_robust_bench.scoring.runs import Run

Json = dict[str, Any]
SCHEMA = (
    2  # 2: distances of two recognisers are pooled over their lengths, as in AequeVox' code; 1: averaged over clips
)


@dataclass(frozen=True)
class FairnessOptions:
    """What to test, and how."""

    groups: str = "gender"
    base: str | None = None
    taus: tuple[float, ...] = fairness_violations.TAUS
    comprehensible: float = fairness_violations.COMPREHENSIBLE
    minimum: int = 1
    omega: int = OMEGA
    by_speaker: bool = False
    replicates: int = 1000
    level: float = 0.95
    seed: int = 0
    weights: Mapping[str, float] | None = None
    data: str | None = None
    ratings: str | None = None  # a CSV file of one's own ratings of comprehensibility
    normaliser: str = "srb-paper-1"
    unit: str | None = None  # what errors are counted in: "word" or "char-nospace"; None is the language's own


def choose(run: Run, patterns: Sequence[str]) -> Run:
    """The run with only the configs that match a pattern; its clean configs always stay."""
    if not patterns:
        return run
    chosen = [c for c in run.configs if any(fnmatch.fnmatchcase(c, p) for p in patterns)]
    if not chosen:
        raise UserError(f"{run.folder} has no finished config that matches {' '.join(patterns)}")
    return replace(run, configs=tuple(c for c in run.configs if c in chosen or c.endswith("_clean")))


def assess(runs: Sequence[Run], options: FairnessOptions, advance: Callable[[], None] = lambda: None) -> Json:
    """Algorithms 1 and 2 and the rates of the groups, over every clean config of the runs and what was made from it."""
    _check(options)
    degradations: list[Degradation] = []
    comparisons: list[GroupComparison] = []
    faults: list[Faults] = []
    disparities: list[Json] = []
    sets: list[Json] = []
    skipped: list[Json] = []
    ratings = fairness_violations.read_ratings(options.ratings) if options.ratings else None
    how: Any = {"groups": options.groups, "normaliser": options.normaliser, "unit": options.unit, "advance": advance}
    for transcribed in clip_sets(runs, _proxy(runs, options), **how):
        labels = transcribed.clips.labels(options.groups)
        try:
            groups = fairness_violations.group_clips(labels, options.groups, options.base, options.minimum)
        except UserError as reason:  # the other clip sets may have the groups
            skipped.append({"clean": transcribed.clips.clean, "why": str(reason)})
            continue
        tested, hidden = _levels(transcribed, options.comprehensible, ratings)
        rated = [level for level in tested.clips.levels if fairness_violations.rated(level, ratings)]
        sets.append(
            {
                "clean": transcribed.clips.clean,
                "clips": len(labels),
                "left_out": transcribed.clips.left_out,
                "unlabelled": sum(label is None for label in labels),
                "groups": {
                    group: {"clips": len(clips), "speakers": transcribed.clips.speaker_count(clips)}
                    for group, clips in groups.items()
                },
                "levels": list(tested.clips.levels),
                "not_rated": [level for level in tested.clips.levels if level not in rated],
                "below_comprehensibility": hidden,
            }
        )
        referenced = {group: clips[tested.known[clips]] for group, clips in groups.items()}
        referenced = {group: clips for group, clips in referenced.items() if len(clips) >= options.minimum}
        scored = with_transcripts(tested) if len(referenced) > 1 and (options.base or "") in ("", *referenced) else []
        for measured in (*without_transcripts(tested), *scored):
            degraded_and_compared = fairness_violations.compare_groups(
                measured,
                referenced if measured.form == "transcripts" else groups,
                base=options.base,
                by_speaker=options.by_speaker,
                replicates=options.replicates,
                level=options.level,
                seed=options.seed,
            )
            degradations += degraded_and_compared[0]
            comparisons += degraded_and_compared[1]
            if measured.form == "transcripts":
                disparities += group_disparity(measured, labels, referenced, options.weights)
        faults += localise(tested, groups, transcripts=False)
        faults += localise(tested, referenced, transcripts=True) if scored else []
    if not sets:
        raise UserError(skipped[0]["why"])
    if not comparisons:
        raise UserError("the clips have no transcripts; give two or more runs, which are then compared with each other")
    forms = [form for form in ("pair", "transcripts") if any(c.form == form for c in comparisons)]
    return {
        "schema": SCHEMA,
        "models": [run.model for run in runs],
        "options": asdict(options) | {"taus": list(options.taus)},
        "proxy": pitch_proxy.NAME in options.groups.split(JOIN),
        "sets": sets,
        "skipped": skipped,
        "degradations": [_degradation(d) for d in degradations],
        "comparisons": [_comparison(c, options.taus) for c in comparisons],
        "table4": {form: _table4([c for c in comparisons if c.form == form], options.taus) for form in forms},
        "table9": {form: table9(f for f in faults if f.form == form) for form in ("alone", "transcripts")},
        "faults": [_faults(f, options.omega) for f in faults],
        "disparity": disparities,
    }


def _check(options: FairnessOptions) -> None:
    if not all(options.groups.split(JOIN)):
        raise UserError(f"--groups '{options.groups}' is not a column such as gender, nor some joined with +")
    if not options.taus or any(not 0 <= tau < 1 for tau in options.taus):
        raise UserError("--tau is a share between 0 and 1, as in --tau 0.05")
    if options.replicates < 0 or not 0 < options.level < 1 or options.minimum < 1 or options.omega < 0:
        raise UserError("--replicates and --omega are 0 or more, --minimum 1 or more, --level between 0 and 1")


def _proxy(runs: Sequence[Run], options: FairnessOptions) -> dict[str, dict[str, str | None]]:
    """The pitch groups of the clips of every clean config, if they are asked for."""
    if pitch_proxy.NAME not in options.groups.split(JOIN):
        return {}
    if options.data is None:
        raise UserError(
            "--groups pitch listens to the clips: say with --data where the built configs are, as in --data srb"
        )
    group_of_clip: dict[str, str | None] = {}
    for config in (c for c in runs[0].configs if c.endswith("_clean")):
        group_of_clip |= pitch_proxy.of_config(options.data, config)
    return {pitch_proxy.NAME: group_of_clip}


def _levels(
    transcribed: TranscribedSet, threshold: float, ratings: fairness_violations.Ratings | None
) -> tuple[TranscribedSet, list[str]]:
    """Only the levels that people understand well enough, and the names of the others."""
    levels = transcribed.clips.levels
    kept = tuple(level for level in levels if fairness_violations.comprehensible(level, threshold, ratings))
    hidden = [level for level in transcribed.clips.levels if level not in kept]
    if not kept:
        raise UserError(
            f"no level of {transcribed.clips.clean} has a comprehensibility of {threshold:g} or more; "
            "lower --comprehensible"
        )
    return replace(transcribed, clips=replace(transcribed.clips, levels=kept)), hidden


def number(value: float | None) -> float | None:
    """For JSON, which has no infinity."""
    return None if value is None or not math.isfinite(value) else round(float(value), 6)


def _degradation(degradation: Degradation) -> Json:
    return {
        "recogniser": degradation.recogniser,
        "form": degradation.form,
        "config": degradation.config,
        "group": degradation.group,
        "clips": degradation.clips,
        "clean": number(degradation.clean),
        "transformed": number(degradation.transformed),
        "degradation": number(degradation.value),
    }


def _comparison(comparison: GroupComparison, taus: Sequence[float]) -> Json:
    return {
        "recogniser": comparison.recogniser,
        "form": comparison.form,
        "config": comparison.config,
        "transformation": comparison.transformation,
        "base": comparison.base,
        "other": comparison.other,
        "difference": number(comparison.difference),
        "interval": comparison.interval and [number(v) for v in comparison.interval],
        "within_noise": comparison.within_noise,
        "violates": [tau for tau in taus if comparison.violates(tau)],
    }


def _table4(comparisons: Sequence[GroupComparison], taus: Sequence[float]) -> Json:
    tables: Json = {}
    for name, flag in (("violations", False), ("beyond_noise", True)):
        table = fairness_violations.table4(comparisons, taus, beyond_noise=flag)
        tables[name] = {"total": dict(table.total), **{title: dict(part) for title, part in table.parts()}}
    total = tables["violations"]["total"]
    tables["excess_percent"] = {
        group: number(fairness_violations.excess_percent(total, reference=group)) for group in total
    }
    return tables


def _faults(faults: Faults, omega: int) -> Json:
    words = faults.non_robust(omega)
    drops = faults.drops
    return {
        "recogniser": faults.recogniser,
        "form": faults.form,
        "transformation": faults.transformation,
        "group": faults.group,
        "average_drop": number(faults.average_drop),
        "words": len(faults.initial),
        "non_robust": [
            {
                "word": word,
                "initial": faults.initial[word],
                "least": faults.least[word],
                "drop": drops[word],
                "became": [list(pair) for pair in faults.became.get(word, [])[:5]],
            }
            for word in words
        ],
    }
