"""From the counts of single configs to the tables of the paper: per config, severity, scenario, category, and overall.

Paper, Table 1: within a language, a category is the mean over data sets, perturbations and severities, that is over its
configs; the average is the unweighted mean of the categories, NWERD for the nine of Table 1 and WERD for the
adversarial two. Whatever is not there to be averaged is named: a row lists its configs and what is missing from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.seeding import FIRST_VERSION
from speech_robust_bench.scoring.bootstrap import Units, interval
from speech_robust_bench.scoring.degradation import degradation, positions
from speech_robust_bench.scoring.difficulty import DifficultyTable, load
from speech_robust_bench.scoring.estimate import Estimate, Resampled, draw_together, ratio, studentise_together
from speech_robust_bench.scoring.estimate import mean as mean_estimate
from speech_robust_bench.scoring.scenario_facts import RECORDINGS
from speech_robust_bench.scoring.scoring import Counts

MEASURES = ("wer", "nwer", "werd", "nwerd")


@dataclass(frozen=True)
class ConfigCounts:
    """What a recogniser did on one config; `source` is the clean config to compare it with, None for a clean one."""

    config: str
    category: str
    ids: Sequence[str]
    counts: Counts
    source: str | None = None
    speakers: Sequence[str | None] | None = None
    scenario_version: str = FIRST_VERSION
    failed: int = 0  # clips, which are counted as if their transcripts were empty

    @property
    def paired(self) -> bool:
        """Whether the clips were made from those of `source`."""
        return self.category not in RECORDINGS


@dataclass(frozen=True)
class ConfigScore:
    """The scores of one config, and the same in every bootstrap replicate. `why` says why a score is not there."""

    config: str
    category: str
    values: Mapping[str, float]
    replicates: Mapping[str, np.ndarray]
    estimates: Mapping[str, Estimate]
    clean_wer: float | None = None
    difficulty: float | None = None
    why: Mapping[str, str] = field(default_factory=dict)

    @property
    def resampled(self) -> Resampled | None:
        """The units that the intervals are over."""
        return resampled(self.estimates)

    def interval(self, measure: str, level: float = 0.95) -> tuple[float, float] | None:
        """The interval of a score; None if there is no such score, or nothing to tell how sure it is."""
        return self.estimates[measure].interval(level) if measure in self.estimates else None


def resampled(estimates: Mapping[str, Estimate]) -> Resampled | None:
    """The units of some measures of one row, which are those of the most telling one."""
    told = [estimates[measure] for measure in ("nwerd", "werd", "nwer", "wer") if measure in estimates]
    return told[0].resampled if told and told[0].parts else None


def score(
    configs: Iterable[ConfigCounts],
    *,
    table: DifficultyTable | str | None = None,
    floor: bool = False,
    resample: str = "auto",
    replicates: int = 1000,
    seed: int = 0,
) -> list[ConfigScore]:
    """WER, NWER, WERD and NWERD of each config (in the order given), with that many bootstrap replicates (0 for none).

    A config that was made from clean clips is compared with just those clips, and resampled together with them.
    `resample` is `speakers`, `clips` or, by default, `auto`: speakers where they are known.
    """
    known = {c.config: c for c in configs}
    difficulty = table if isinstance(table, DifficultyTable) else load(*([table] if table else []))
    baselines = {name: _baseline(c, known) for name, c in known.items()}
    units = {name: Units.of(c.ids, c.speakers, resample) for name, c in known.items()}
    how = {"replicates": replicates, "seed": seed}
    estimates = {name: _estimates(c, baselines[name], units, how) for name, c in known.items()}
    studentise_together([one for pair in estimates.values() for one in pair.values()])
    drawn = iter(draw_together([one for pair in estimates.values() for one in pair.values()]))
    draws = {name: {measure: next(drawn) for measure in pair} for name, pair in estimates.items()}
    return [_score(c, baselines[name], estimates[name], draws[name], difficulty, floor) for name, c in known.items()]


@dataclass(frozen=True)
class _Baseline:
    """What a config is compared with: a clean config, the counts of its clips in question, and where they stand in it.

    `place` is None where the config was not made from the clean clips; the counts are then all of the clean config's.
    """

    clean: ConfigCounts
    counts: Counts
    place: np.ndarray | None


def _baseline(config: ConfigCounts, known: Mapping[str, ConfigCounts]) -> _Baseline | None:
    clean = known.get(config.source) if config.source else None
    if clean is None:
        return None
    if not config.paired:
        return _Baseline(clean, clean.counts, None)
    try:
        place = positions(config.ids, clean.ids)
    except UserError as mistake:
        raise UserError(f"{config.config} against {clean.config}: {mistake}") from None
    return _Baseline(clean, clean.counts.take(place), place)


def _spread(values: np.ndarray, place: np.ndarray, size: int) -> np.ndarray:
    """What some clips of a set have, zero for its other clips."""
    full = np.zeros(size)
    full[place] = values
    return full


def _estimates(
    config: ConfigCounts, baseline: _Baseline | None, units: Mapping[str, Units], how: Mapping[str, int]
) -> dict[str, Estimate]:
    """WER, and WERD where there is clean speech to compare with.

    A config made from clean clips is resampled with the units of all clean clips, as its siblings are.
    """
    counts = config.counts
    if baseline is None or baseline.place is None:
        wer = ratio(units[config.config], counts.errors, counts.lengths, **how)
        if baseline is None:
            return {"wer": wer}
        clean = baseline.clean
        return {"wer": wer, "werd": wer - ratio(units[clean.config], clean.counts.errors, clean.counts.lengths, **how)}
    place, size = baseline.place, len(baseline.clean.ids)
    own, clean_errors, lengths = (
        _spread(a, place, size) for a in (counts.errors, baseline.counts.errors, counts.lengths)
    )
    of = units[baseline.clean.config]
    wer = ratio(of, own, lengths, **how)
    clean_lengths = _spread(baseline.counts.lengths, place, size)
    return {"wer": wer, "werd": wer - ratio(of, clean_errors, clean_lengths, **how)}


def _score(
    config: ConfigCounts,
    baseline: _Baseline | None,
    known: Mapping[str, Estimate],
    draws: Mapping[str, np.ndarray],
    table: DifficultyTable,
    floor: bool,
) -> ConfigScore:
    values: dict[str, float] = {"wer": config.counts.rate}
    estimates, replicates, why = {"wer": known["wer"]}, {"wer": draws["wer"]}, {}
    if config.source is None:
        return ConfigScore(config.config, config.category, values, replicates, estimates)
    if baseline is None:
        why = dict.fromkeys(("werd", "nwerd"), f"{config.source} was not scored")
    else:
        values["werd"] = float(degradation(values["wer"], baseline.counts.rate, floor))
        replicates["werd"] = np.maximum(draws["werd"], 0.0) if floor else draws["werd"]
        estimates["werd"] = known["werd"] * 0.0 if floor and known["werd"].value < 0 else known["werd"]
    level, unknown = _difficulty(config.config, table)
    for measure, normalised in (("wer", "nwer"), ("werd", "nwerd")):
        if level is None or not level > 0:
            why.setdefault(normalised, unknown)
        elif measure in values:
            values[normalised] = 100 * values[measure] / level
            replicates[normalised] = 100 * replicates[measure] / level
            estimates[normalised] = estimates[measure] * (100 / level)
    clean_wer = baseline.counts.rate if baseline else None
    return ConfigScore(config.config, config.category, values, replicates, estimates, clean_wer, level, why)


def _difficulty(config: str, table: DifficultyTable) -> tuple[float | None, str]:
    """The difficulty of a config, and why nothing can be divided by it where it is unknown or not positive."""
    try:
        level = table.of(config)
    except UserError as reason:
        return None, str(reason)
    return level, f"its difficulty in {table.name} is {level:g}, not positive"


# --- means -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mean:
    """One row of a table: the mean of its members, what they are, and what is missing from it, with the reason."""

    name: str
    members: tuple[str, ...]
    values: Mapping[str, float]
    replicates: Mapping[str, np.ndarray]
    missing: Mapping[str, str]
    estimates: Mapping[str, Estimate] = field(default_factory=dict)

    @property
    def resampled(self) -> Resampled | None:
        """The units that the intervals are over."""
        return resampled(self.estimates)

    def interval(self, measure: str, level: float = 0.95) -> tuple[float, float] | None:
        """The interval of a score; None if there is no such score, or nothing to tell how sure it is."""
        return self.estimates[measure].interval(level) if measure in self.estimates else None


@dataclass(frozen=True)
class Median(Mean):
    """A median is no sum over units, so its interval is the percentile one, made wide enough for few units."""

    def interval(self, measure: str, level: float = 0.95) -> tuple[float, float] | None:
        """None where the mean would have none either."""
        drawn, told = self.replicates.get(measure), self.estimates.get(measure)
        if drawn is None or told is None or told.interval(level) is None:
            return None
        return interval(drawn, level, told.resampled.units)


@dataclass(frozen=True)
class Summary:
    """The tables of one language. The overall row has NWERD and NWER, the adversarial one WERD.

    `median` is the robust view beside `overall`: the median NWERD of the configs of the nine categories. A recogniser
    that loops on one clip moves one config, and with it the mean, but not the median.
    """

    language: str
    clean: Mapping[str, Mean]
    categories: Mapping[str, Mean]
    scenarios: Mapping[str, Mean]
    severities: Mapping[str, Mean]
    corpora: Mapping[str, Mean]
    overall: Mean
    median: Mean
    adversarial: Mean


def measure_of(category: str) -> str:
    """What a category is reported in: NWERD, but WERD for attacks and for scenarios that have no difficulty.

    >>> measure_of("sfx"), measure_of("adv_us"), measure_of("codec")
    ('nwerd', 'werd', 'werd')
    """
    return "nwerd" if category in AVERAGED else "werd"


def summarise(scores: Sequence[ConfigScore], expected: Iterable[str] | Mapping[str, str] = ()) -> dict[str, Summary]:
    """The tables of each language; `expected` are configs that should be there (a dict gives their categories).

    An expected config that is not there is named in every row that it would belong to, and every category of the paper
    without a config is named in the overall row.
    """
    absent = dict(expected) if isinstance(expected, Mapping) else dict.fromkeys(expected, "")
    known = {_scenario(s.config): s.category for s in scores}
    for s in scores:
        absent.pop(s.config, None)
    absent = {config: category or known.get(_scenario(config), "") for config, category in absent.items()}
    languages = dict.fromkeys(parse(name).language for name in [*(s.config for s in scores), *absent])
    return {
        language: _summarise(
            language,
            [s for s in scores if parse(s.config).language == language],
            {c: k for c, k in absent.items() if parse(c).language == language},
        )
        for language in languages
    }


def _summarise(language: str, scores: Sequence[ConfigScore], absent: Mapping[str, str]) -> Summary:
    clean = [s for s in scores if _scenario(s.config) == "clean"]
    others = [s for s in scores if _scenario(s.config) != "clean"]

    def rows(of: Callable[[str, str], str], among: Sequence[ConfigScore]) -> dict[str, Mean]:
        names = dict.fromkeys(of(s.config, s.category) for s in among)
        names.update(dict.fromkeys(of(c, k) for c, k in absent.items() if k and _scenario(c) != "clean"))
        return {
            name: mean(
                name,
                [s for s in among if of(s.config, s.category) == name],
                {c: "not scored" for c, k in absent.items() if k and of(c, k) == name},
            )
            for name in names
        }

    # A scenario at a value of the user's own is a row of its own and in no mean: those are over the severities.
    graded = [s for s in others if parse(s.config).value is None]
    categories = rows(lambda config, category: category, graded)
    return Summary(
        language=language,
        clean={s.config: mean(s.config, [s], {}) for s in clean},
        categories=categories,
        scenarios=rows(lambda config, category: _scenario(config), graded),
        severities=rows(lambda config, category: _key(config), others),
        corpora=rows(lambda config, category: f"{parse(config).corpus} {category}", graded),
        overall=overall(categories, AVERAGED, "nwerd", also=("nwer",)),
        median=median([s for s in others if s.category in AVERAGED]),
        adversarial=overall(categories, ADVERSARIAL, "werd", "adversarial"),
    )


def mean(name: str, scores: Sequence[ConfigScore | Mean], missing: Mapping[str, str], measures=MEASURES) -> Mean:
    """The unweighted mean of some rows; a row without a score is missing from the mean of that score, and named."""
    values, replicates, estimates, absent = {}, {}, {}, dict(missing)
    for measure in measures:
        present = [s for s in scores if measure in s.values]
        if not present:
            continue
        values[measure] = float(np.mean([s.values[measure] for s in present]))
        replicates[measure] = np.mean([s.replicates[measure] for s in present], axis=0)
        if all(measure in s.estimates for s in present):
            estimates[measure] = mean_estimate([s.estimates[measure] for s in present])
        for s in scores:
            if measure not in s.values and isinstance(s, ConfigScore):
                absent[s.config] = s.why.get(measure, f"has no {measure}")
    members = tuple(s.config if isinstance(s, ConfigScore) else s.name for s in scores)
    return Mean(name, members, values, replicates, absent, estimates)


def overall(
    categories: Mapping[str, Mean],
    wanted: Sequence[str] = AVERAGED,
    measure: str = "nwerd",
    name: str = "overall",
    also: Sequence[str] = (),
) -> Mean:
    """The unweighted mean of the wanted categories, which names those that are not there or not whole.

    `also` are further measures to average over the same categories.
    """
    present = [categories[c] for c in wanted if c in categories and measure in categories[c].values]
    missing = {c: "no config of it was scored" for c in wanted if categories.get(c) not in present}
    for category in wanted:
        missing.update(categories[category].missing if category in categories else {})
    return mean(name, present, missing, measures=(measure, *also))


def median(scores: Sequence[ConfigScore], measure: str = "nwerd") -> Mean:
    """The median over configs, and in every replicate."""
    present = [s for s in scores if measure in s.values]
    members = tuple(s.config for s in present)
    if not present:
        return Median("median", members, {}, {}, {})
    value = float(np.median([s.values[measure] for s in present]))
    replicates = np.median([s.replicates[measure] for s in present], axis=0)
    alike = mean_estimate([s.estimates[measure] for s in present])
    return Median("median", members, {measure: value}, {measure: replicates}, {}, {measure: alike})


def of_categories(values: Mapping[str, float], measure: str = "nwerd") -> dict[str, Mean]:
    """Category rows from bare numbers, such as a line of a published table."""
    return {c: Mean(c, (), {measure: v}, {measure: np.zeros(0)}, {}) for c, v in values.items()}


def _scenario(config: str) -> str:
    return parse(config).scenario


def _key(config: str) -> str:
    return parse(config).level
