"""The ranking of recognisers: by NWER, so that no system gains a place by being worse.

The rule (`srb-rank-2`): systems are ranked by NWER, the WER of every config divided by the config's difficulty,
averaged within each of the paper's nine categories and then over the categories; lower is better, and a tie goes to the
lower WER on clean speech.

NWER is a sum of WERs with positive weights, so raising any single WER, clean or not, never lowers the score. NWERD, the
paper's metric, takes the clean WER off first, so errors on clean speech lower it; it is reported beside the score and
ranks nobody. Hendrycks and Dietterich (ICLR 2019, Section 4.2) give the relative corruption error beside the absolute
one for the same reason, and Taori et al. ("Measuring Robustness to Natural Distribution Shifts", NeurIPS 2020) show how
little a drop in accuracy says without the accuracy. Among all scores NWERD + k x clean WER, NWER is the one with the
smallest k that cannot be won by being worse, hence the closest to the paper's.

Ranked is a system that the guard of all verdicts lets pass (`scoring.verdict_guard`) and that has every config that
another such system has: who leaves a config out loses the place. A clip that failed counts as one without a word. All
others stand last, with the reason. Configs that the systems have in different versions of their scenario count
for nobody. Results of a private edition are ranked among themselves alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Protocol, TypeVar

import numpy as np

from speech_robust_bench.core.categories import AVERAGED, CLEAN
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.core.seeding import FIRST_VERSION, edition_name
from speech_robust_bench.scoring.verdict_guard import refusal, worst

RULE = "srb-rank-2"
SENTENCE = (
    "Ranked by NWER: the WER of every config divided by its difficulty, averaged within each of the paper's categories "
    "and then over the categories; lower is better."
)
MOST_NAMED = 3  # configs that a reason lists by name


@dataclass(frozen=True)
class ConfigRow:
    """What the ranking needs of one config: WER, that of the clean clips it is compared with, and its difficulty."""

    config: str
    category: str
    wer: float
    clean_wer: float | None = None
    difficulty: float | None = None
    version: str = FIRST_VERSION

    @cached_property
    def nwer(self) -> float | None:
        """100 x WER / difficulty, None where there is no difficulty."""
        return 100 * self.wer / self.difficulty if self.difficulty and self.difficulty > 0 else None

    @cached_property
    def nwerd(self) -> float | None:
        """100 x WERD / difficulty, None where there is none."""
        if self.clean_wer is None or self.difficulty is None or not self.difficulty > 0:
            return None
        return 100 * (self.wer - self.clean_wer) / self.difficulty

    @property
    def counts(self) -> bool:
        """Whether a system without this config cannot be ranked beside one that has it."""
        return self.category == CLEAN or (self.category in AVERAGED and self.nwer is not None)


@dataclass(frozen=True)
class Candidate:
    """A recogniser in one language: its configs, its mean clean WER, and the share of clean clips without a word (of
    several corpora, the largest)."""

    name: str
    configs: Sequence[ConfigRow]
    clean_wer: float | None
    clean_empty: float = 0.0
    failed: float = 0.0  # share of all clips
    worst_clean: tuple[float | None, str] | None = None  # of several clean configs: WER and name

    @property
    def refusal(self) -> str:
        """Why there is no verdict on it; empty if there may be one."""
        wer, config = self.worst_clean or (self.clean_wer, "")
        return refusal(wer, self.clean_empty, self.failed, config)

    @cached_property
    def counted(self) -> dict[str, ConfigRow]:
        """The configs without which it could not be ranked beside a system that has them."""
        return {row.config: row for row in self.configs if row.counts}

    @cached_property
    def edition(self) -> str:
        """The private edition that its configs are of, empty for the public one; several are named together."""
        return " and ".join(sorted({edition_name(row.version) for row in self.configs}))


@dataclass(frozen=True)
class Standing:
    """Where a recogniser stands. `nwer` is the score; `place` is None for one that is not ranked, and `why` says why.

    `configs` is the number of configs that the averages are over, `categories` the NWER of each category.
    """

    name: str
    place: int | None
    nwer: float | None = None
    nwerd: float | None = None
    median_nwerd: float | None = None
    configs: int = 0
    why: str = ""
    categories: Mapping[str, float] = field(default_factory=dict)


def rank(candidates: Sequence[Candidate]) -> list[Standing]:
    """The standings of some recognisers in one language, best first, those that are not ranked at the end.

    Editions never rank together: where there are several, those of the public one are ranked, else of the commonest.
    """
    counted = Counter(candidate.edition for candidate in candidates)
    ranked = max(counted, key=lambda edition: (not edition, counted[edition], edition), default="")
    others = [
        Standing(c.name, None, why=f"of another edition: {c.edition or 'public'}")
        for c in candidates
        if c.edition != ranked
    ]
    standings = _rank_edition([candidate for candidate in candidates if candidate.edition == ranked])
    return [*standings, *sorted(others, key=lambda standing: standing.name)]


def _rank_edition(candidates: Sequence[Candidate]) -> list[Standing]:
    mixed = _mixed_versions(candidates)
    # A system that cannot be ranked anyway does not decide which configs the others must have.
    required = set().union(*(c.counted for c in candidates if not _refusal(c))) - mixed
    standings = {c.name: _standing(c, required, mixed) for c in candidates}
    keys = {c.name: _key(standings[c.name], c) for c in candidates if not standings[c.name].why}
    places: dict[tuple[float, float], int] = {}
    ranked = []
    for position, name in enumerate(sorted(keys, key=lambda name: (keys[name], name)), 1):
        ranked.append(replace(standings[name], place=places.setdefault(keys[name], position)))  # equals share a place
    return [*ranked, *sorted((s for s in standings.values() if s.why), key=lambda standing: standing.name)]


def _key(standing: Standing, candidate: Candidate) -> tuple[float, float]:
    """What sorts: the score, then WER on clean speech."""
    assert standing.nwer is not None
    assert candidate.clean_wer is not None
    return standing.nwer, candidate.clean_wer


def _mixed_versions(candidates: Sequence[Candidate]) -> set[str]:
    """The configs that the systems have in different versions of their scenario."""
    versions: dict[str, set[str]] = {}
    for row in (row for candidate in candidates for row in candidate.counted.values()):
        versions.setdefault(row.config, set()).add(row.version)
    return {config for config, found in versions.items() if len(found) > 1}


def _standing(candidate: Candidate, required: set[str], mixed: set[str]) -> Standing:
    """Without a place yet; `why` says whether it can have one."""
    rows = [row for c, row in candidate.counted.items() if c not in mixed and row.category != CLEAN]
    categories = _averages(rows, "nwer")
    return Standing(
        candidate.name,
        place=None,
        nwer=_mean(categories.values()),
        nwerd=_mean(_averages(rows, "nwerd").values()),
        median_nwerd=_median([row.nwerd for row in rows if row.nwerd is not None]),
        configs=len(rows),
        categories=categories,
        why=_refusal(candidate) or _lack(candidate, required),
    )


def _refusal(candidate: Candidate) -> str:
    """Why a system cannot be ranked beside any others; empty if it can."""
    if candidate.clean_wer is None:
        return "clean speech was not scored"
    return candidate.refusal


def _lack(candidate: Candidate, required: set[str]) -> str:
    """Which of the configs that it is to be ranked over a system does not have; empty if it has all."""
    lost = sorted(required - set(candidate.counted))
    if lost:
        named = ", ".join(lost[:MOST_NAMED]) + (", ..." if len(lost) > MOST_NAMED else "")
        return f"lacks {len(lost)} of the {len(required)} configs that the others have ({named})"
    ranked_over = (row for config, row in candidate.counted.items() if config in required)
    return (
        "" if any(row.category != CLEAN for row in ranked_over) else "no config of the paper's categories has an NWER"
    )


def _averages(rows: Iterable[ConfigRow], measure: str) -> dict[str, float]:
    """The mean of each category, over its configs that have the measure."""
    values: dict[str, list[float]] = {}
    for row in rows:
        value = getattr(row, measure)
        if value is not None:
            values.setdefault(row.category, []).append(value)
    return {category: sum(values[category]) / len(values[category]) for category in AVERAGED if category in values}


def _mean(values: Iterable[float]) -> float | None:
    known = list(values)
    return sum(known) / len(known) if known else None


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None


class RankedConfig(Protocol):
    """A config's entry in results.json or in a verified file, as far as the ranking looks at it."""

    @property
    def language(self) -> str: ...
    @property
    def corpus(self) -> str: ...
    @property
    def scenario(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def clean_wer(self) -> float | None: ...
    @property
    def difficulty(self) -> float | None: ...
    @property
    def utterances(self) -> int: ...
    @property
    def empty(self) -> int: ...


E = TypeVar("E", bound=RankedConfig)


def belongs(entry: RankedConfig, language: str) -> bool:
    """Whether a config is of a language, or of one data set where that is asked for: `en librispeech`."""
    return language in (entry.language, f"{entry.language} {entry.corpus}")


def candidate_of(result: RunResults, language: str) -> Candidate:
    """A recogniser's entry in the ranking, from its `results.json`."""
    entries = {c: e for c, e in result.configs.items() if belongs(e, language)}
    rows = sum(entry.rows for entry in entries.values())
    failed = sum(entry.failed for entry in entries.values()) / rows if rows else 0.0
    return make_candidate(result.model, entries, lambda entry: entry.wer.value if entry.wer else None, failed)


def refusal_of_results(result: RunResults, language: str) -> str:
    """Why there is no verdict on a recogniser in a language, empty if there may be one."""
    return candidate_of(result, language).refusal


def make_candidate(
    name: str, entries: Mapping[str, E], wer: Callable[[E], float | None], failed: float = 0.0
) -> Candidate:
    """A recogniser's entry in the ranking, from the entries of its configs; `wer` reads the WER of one.

    A scenario at a value of the user's own is in no average, so it does not count.
    """
    rates = {config: rate for config, e in entries.items() if (rate := wer(e)) is not None}
    clean = [config for config, entry in entries.items() if entry.scenario == CLEAN]
    rows = [
        ConfigRow(config, e.category, rates[config], e.clean_wer, e.difficulty, e.version)
        for config, e in entries.items()
        if config in rates and parse(config).value is None
    ]
    empty = max((entries[c].empty / entries[c].utterances for c in clean if entries[c].utterances), default=0.0)
    clean_wers = {config: rates[config] for config in clean if config in rates}
    return Candidate(name, rows, _mean(clean_wers.values()), empty, failed, worst(clean_wers))


def order(results: Sequence[RunResults], language: str) -> list[tuple[int, Standing]]:
    """The results that have a language, best first: where each is in the list, and its standing."""
    own = [i for i, result in enumerate(results) if language in result.languages]
    named = [replace(candidate_of(results[i], language), name=str(i)) for i in own]  # models' names may come twice
    standings = rank(named)
    return [(int(s.name), replace(s, name=results[int(s.name)].model)) for s in standings]
