"""Who stands where: a ranking of recognisers by robustness that cannot be won by being worse.

NWERD is a difference, so errors on clean speech lower it: a recogniser that fails on clean speech alone "gains" by
every scenario. Hendrycks and Dietterich met the same with the relative corruption error (ICLR 2019, Section 4.2: it is
given beside the absolute one, never instead of it), and Taori et al. ("Measuring Robustness to Natural Distribution
Shifts", NeurIPS 2020) with the plain accuracy drop. So (`srb-rank-1`):

1. Averages are over the configs that all recognisers that can be ranked share.
2. Ranked is who has an average and recognises clean speech: WER at most `CLEAN_CEILING`, and at most `EMPTY_CEILING` of
   the clean clips failed or without a word. All others are unranked, and stand last with the reason.
3. The score of a config is 100 x max(WER - min(clean WER, CLEAN_ALLOWANCE), 0) / difficulty: NWERD with the degradation
   floored at 0, in which clean errors beyond the allowance excuse nothing. Every error in a scenario counts against
   the recogniser. For clean WERs within the allowance it orders as NWERD does, and the paper's rows stand as in it.
4. Nobody stands above a recogniser that has no higher WER in clean speech and in any shared config, and a lower one
   somewhere. So a spoilt copy of a recogniser never passes the recogniser itself, whatever was spoilt.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.seeding import FIRST_VERSION

RULE = "srb-rank-1"
CLEAN_CEILING = 50.0  # points of WER on clean speech; the worst recogniser of the paper's Table 1 has 25.7
EMPTY_CEILING = 0.05  # of the clean clips
CLEAN_ALLOWANCE = 10.0  # points of clean WER that are taken off a scenario's WER; the paper's English models have < 10


@dataclass(frozen=True)
class ConfigRow:
    """What the ranking needs of one config: WER, that of the clean clips it is compared with, and its difficulty."""

    config: str
    category: str
    wer: float
    clean_wer: float | None = None
    difficulty: float | None = None

    @property
    def score(self) -> float | None:
        """The config's part of the ranking score, None where there is no NWERD."""
        if self.clean_wer is None or self.difficulty is None or not self.difficulty > 0:
            return None
        return 100 * max(self.wer - min(self.clean_wer, CLEAN_ALLOWANCE), 0.0) / self.difficulty

    @property
    def nwerd(self) -> float | None:
        """100 x WERD / difficulty, None where there is none."""
        if self.clean_wer is None or self.difficulty is None or not self.difficulty > 0:
            return None
        return 100 * (self.wer - self.clean_wer) / self.difficulty

    @property
    def nwer(self) -> float | None:
        """100 x WER / difficulty, None where there is no difficulty."""
        return 100 * self.wer / self.difficulty if self.difficulty and self.difficulty > 0 else None


@dataclass(frozen=True)
class Candidate:
    """A recogniser in one language: its configs, its clean WER, and the share of clean clips without a word."""

    name: str
    configs: Sequence[ConfigRow]
    clean_wer: float | None
    clean_empty: float = 0.0


@dataclass(frozen=True)
class Standing:
    """Where a recogniser stands. `place` is None for one that is not ranked, and `why` then says why."""

    name: str
    place: int | None
    score: float | None = None
    nwerd: float | None = None
    nwer: float | None = None
    median_nwerd: float | None = None
    configs: int = 0
    why: str = ""
    categories: Mapping[str, float] = field(default_factory=dict)


def rank(candidates: Sequence[Candidate]) -> list[Standing]:
    """The standings of some recognisers in one language, best first, those that are not ranked at the end."""
    # One that cannot be ranked anyway does not decide over what the others are compared.
    shared = shared_configs([c for c in candidates if not _standing(c, shared_configs([c])).why] or candidates)
    standings = [_standing(candidate, shared) for candidate in candidates]
    ranked = [i for i, standing in enumerate(standings) if not standing.why]
    dominates = _dominance(np.array([_rates(candidates[i], shared) for i in ranked]))
    above = dominates.sum(axis=0)  # how many of those that are still to be placed must stand above each
    waiting = set(range(len(ranked)))
    ordered: list[Standing] = []
    while waiting:
        free = [standings[ranked[i]] for i in waiting if not above[i]]
        best = min(free, key=lambda standing: (standing.score, standing.nwer, standing.name))
        index = next(i for i in waiting if standings[ranked[i]] is best)
        ordered.append(replace(best, place=len(ordered) + 1))
        waiting.remove(index)
        above = above - dominates[index]
    return [*ordered, *sorted((s for s in standings if s.why), key=lambda standing: standing.name)]


def shared_configs(candidates: Sequence[Candidate]) -> set[str]:
    """The configs that all of them have; attacks are made for one model each and are never shared."""
    owned = [{row.config for row in c.configs if row.category not in ADVERSARIAL} for c in candidates]
    return set.intersection(*owned) if owned else set()


def _standing(candidate: Candidate, shared: set[str]) -> Standing:
    """Without a place yet; `why` says whether it can have one."""
    rows = [row for row in candidate.configs if row.config in shared and row.category in AVERAGED]
    scores = _averages(rows, "score")
    nwerds = _averages(rows, "nwerd")
    standing = Standing(
        candidate.name,
        place=None,
        score=_mean(scores.values()),
        nwerd=_mean(nwerds.values()),
        nwer=_mean(_averages(rows, "nwer").values()),
        median_nwerd=_median([row.nwerd for row in rows if row.nwerd is not None]),
        configs=len([row for row in rows if row.score is not None]),
        categories=nwerds,
    )
    return replace(standing, why=_refusal(candidate, standing.score))


def _refusal(candidate: Candidate, score: float | None) -> str:
    if candidate.clean_wer is None:
        return "clean speech was not scored"
    if candidate.clean_wer > CLEAN_CEILING:
        return f"WER on clean speech is {candidate.clean_wer:.1f}, above {CLEAN_CEILING:g}"
    if candidate.clean_empty > EMPTY_CEILING:
        return f"{candidate.clean_empty:.0%} of the clean clips have no word, more than {EMPTY_CEILING:.0%}"
    return "" if score is not None else "no config that all share has an NWERD"


def _averages(rows: Iterable[ConfigRow], measure: str) -> dict[str, float]:
    """The mean of each category, over its configs that have the measure."""
    values: dict[str, list[float]] = {}
    for row in rows:
        value = getattr(row, measure)
        if value is not None:
            values.setdefault(row.category, []).append(value)
    return {category: sum(values[category]) / len(values[category]) for category in AVERAGED if category in values}


def _rates(candidate: Candidate, shared: set[str]) -> list[float]:
    """WER on clean speech and on every shared config, in one order for all."""
    rates = {row.config: row.wer for row in candidate.configs}
    return [candidate.clean_wer or 0.0, *(rates[config] for config in sorted(shared))]


def _dominance(rates: np.ndarray) -> np.ndarray:
    """Whether recogniser i has no higher rate than j anywhere, and a lower one somewhere: a matrix of truth values."""
    if not len(rates):
        return np.zeros((0, 0), dtype=bool)
    no_higher = np.array([(row <= rates).all(axis=1) for row in rates])
    return no_higher & ~no_higher.T


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


def belongs(entry: Mapping[str, Any], language: str) -> bool:
    """Whether a config is of a language, or of one data set where that is asked for: `en librispeech`."""
    return language in (entry["language"], f"{entry['language']} {entry['corpus']}")


def versioned(config: str, entry: Mapping[str, Any]) -> str:
    """What a config is shared under: its name, and the version of its scenario where that is not the first."""
    version = entry.get("scenario_version", FIRST_VERSION)
    return config if version == FIRST_VERSION else f"{config} (version {version})"


def candidate_of(result: Mapping[str, Any], language: str) -> Candidate:
    """A recogniser's entry in the ranking, from its `results.json`."""
    entries = {c: e for c, e in result["configs"].items() if belongs(e, language)}
    clean = [entry for entry in entries.values() if entry["scenario"] == "clean"]
    known = [entry["wer"]["value"] for entry in clean if entry["wer"]]
    clips = sum(entry["utterances"] for entry in clean)
    rows = [
        ConfigRow(versioned(c, e), e["category"], e["wer"]["value"], e["clean_wer"], e["difficulty"])
        for c, e in entries.items()
        if e["wer"]
    ]
    empty = sum(entry["empty"] for entry in clean)
    return Candidate(result["model"], rows, _mean(known), empty / clips if clips else 0.0)


def order(results: Sequence[Mapping[str, Any]], language: str) -> list[tuple[int, Standing]]:
    """The results that have a language, best first: where each is in the list, and its standing."""
    own = [i for i, result in enumerate(results) if language in result["languages"]]
    named = [replace(candidate_of(results[i], language), name=str(i)) for i in own]  # models' names may come twice
    standings = rank(named)
    return [(int(s.name), replace(s, name=str(results[int(s.name)]["model"]))) for s in standings]
