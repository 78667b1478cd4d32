"""Is one recogniser more robust than another? A paired test per category and overall.

Both were run on the same clips, so the difference is a sum over speakers, or over clips where speakers are not known;
`scoring.estimate` has its interval and its sign-flip test. Attacks are made for one model, so their audio differs; they
are paired by the clips they were made from. Clips without speech have no error rate and are left out. The p-values are
corrected for the number of comparisons by Holm's method.

How far two transcripts of the same clips are apart, which needs no reference: of two recognisers, or of one
recogniser on a clip under a scenario and on the clean clip.

The measure is that of AequeVox without transcripts (Rajan, Udeshi and Chattopadhyay, FASE 2022): word Levenshtein
distances over the lengths of the longer transcripts, pooled over the clips. 0 is the same words, 100 nothing alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypedDict

import numpy as np

from speech_robust_bench.core.categories import ADVERSARIAL, REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.aggregate import ConfigCounts, Mean, Summary, measure_of, score, summarise
from speech_robust_bench.scoring.bootstrap import Units, holm
from speech_robust_bench.scoring.difficulty import DifficultyTable
from speech_robust_bench.scoring.estimate import Resampled, ratio
from speech_robust_bench.scoring.runs import Predictions, Run
from speech_robust_bench.scoring.scoring import align
from speech_robust_bench.scoring.verdict_guard import refusal_of_counts


class DifferenceRow(TypedDict):
    """How far two recognisers are apart on a config: words that differ, per cent of the longer transcript."""

    config: str
    clips: int
    difference: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Difference:
    """Of each clip that both have: its id, the words that differ, and the words of the longer transcript."""

    ids: Sequence[str]
    speakers: Sequence[str | None]
    edits: np.ndarray
    lengths: np.ndarray

    @property
    def value(self) -> float:
        """Per cent; nan where neither wrote a word."""
        total = self.lengths.sum()
        return 100 * float(self.edits.sum()) / float(total) if total else float("nan")

    def interval(
        self, replicates: int, level: float = 0.95, seed: int = 0, resample: str = "auto"
    ) -> tuple[float, float] | None:
        """An interval over the speakers, or the clips where those are not known; None where it cannot be told."""
        units = Units.of(list(self.ids), list(self.speakers), resample)
        return ratio(units, self.edits, self.lengths, replicates=replicates, seed=seed).interval(level)


def difference(
    one: Predictions, other: Predictions, normaliser: str = "srb-paper-1", unit: str | None = None
) -> Difference:
    """Of two sets of predictions, over the clips that both have; a failed clip counts as an empty transcript."""
    theirs = {line.id: line.transcript for line in other.lines}
    shared = [line for line in one.lines if line.id in theirs]
    counts = align(
        [line.transcript for line in shared],
        [theirs[line.id] for line in shared],
        normaliser=normaliser,
        unit=unit,
        language=parse(one.config).language,
    )
    written = counts.hits + counts.substitutions + counts.insertions
    return Difference(
        [line.id for line in shared],
        [line.speaker for line in shared],
        counts.errors,
        np.maximum(counts.lengths, written),
    )


def between(
    a: Run, b: Run, normaliser: str = "srb-paper-1", replicates: int = 1000, seed: int = 0, resample: str = "auto"
) -> list[DifferenceRow]:
    """How far two recognisers are apart on each config that both were run on; references are not looked at."""
    rows = []
    for config in (config for config in a.configs if config in b.configs):
        apart = difference(a.read(config), b.read(config), normaliser)
        if np.isfinite(apart.value):
            span = apart.interval(replicates, seed=seed, resample=resample)
            clips = len(apart.ids)
            rows.append(DifferenceRow(config=config, clips=clips, difference=apart.value, interval=span))
    if not rows:
        raise UserError("the two runs have no config with words in common; run both on the same configs")
    return rows


@dataclass(frozen=True)
class Comparison:
    """One row: the score of A and of B, their difference (negative: A is more robust) and how sure it is."""

    language: str
    name: str
    measure: str
    a: float
    b: float
    difference: float
    interval: tuple[float, float] | None  # None where there are too few units
    p: float
    p_corrected: float
    configs: int
    missing: tuple[str, ...]
    unit: str  # what was resampled: speakers, or clips
    units: int
    clips: int
    no_verdict: str = ""  # why nobody is called more robust

    def better(self, alpha: float = 0.05) -> str | None:
        """'a' or 'b' if one is more robust at this level after correction, else None."""
        if self.no_verdict or self.p_corrected > alpha or self.difference == 0:
            return None
        return "a" if self.difference < 0 else "b"


def compare(
    a: Sequence[ConfigCounts],
    b: Sequence[ConfigCounts],
    *,
    table: DifficultyTable | str | None = None,
    floor: bool = False,
    resample: str = "auto",
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
    by: str = "category",
) -> list[Comparison]:
    """Compare two recognisers on the configs that both have; configs that only one has are named in `missing`.

    `by` is `category`, with the overall rows, or `scenario` or `config`: then the rows are the clean configs in WER and
    every scenario, or config, in WERD. With `floor` the scores are those of the authors' code, and the test is still
    of the difference itself.
    """
    first, second = ({_shared_name(c.config): c for c in run if c.category != REJECT} for run in (a, b))
    both = [n for n in first if n in second and first[n].scenario_version == second[n].scenario_version]
    if not first or not second:
        raise UserError(
            "a run has no config with speech and transcripts, so there is no WER; `srb compare --difference` shows how "
            "far the two are from each other"
        )
    if not both:
        raise UserError("the two runs have no config in common; run both on the same configs")
    for name in both:
        _same_clips(first[name], second[name])
    absent = {n: run[n].category for run in (first, second) for n in run if n not in both and "_clean" not in n}
    how = {"table": table, "floor": floor, "resample": resample, "replicates": replicates, "seed": seed}
    summaries = [
        summarise(score([_renamed(run[name], name) for name in both], **how), absent)  # type: ignore[arg-type]
        for run in (first, second)
    ]
    pairs = [
        (language, measure, rows[0], rows[1])
        for language, summary in summaries[0].items()
        for measure, *rows in _rows(summary, summaries[1][language], by)
    ]
    if not pairs:
        raise _nothing_to_compare(first, second, both)
    judged = [{name: run[name] for name in both} for run in (first, second)]
    differences = [row_a.estimates[measure] - row_b.estimates[measure] for _, measure, row_a, row_b in pairs]
    p_values = [difference.p for difference in differences]
    return [
        Comparison(
            language=language,
            name=row_a.name,
            measure=measure,
            a=row_a.values[measure],
            b=row_b.values[measure],
            difference=row_a.values[measure] - row_b.values[measure],
            interval=difference.interval(level),
            p=p,
            p_corrected=corrected,
            configs=len(row_a.members),
            missing=tuple(row_a.missing),
            unit=difference.resampled.unit,
            units=difference.resampled.units,
            clips=difference.resampled.clips,
            no_verdict=_no_verdict(judged, language, row_a),
        )
        for (language, measure, row_a, row_b), difference, p, corrected in zip(
            pairs, differences, p_values, holm(p_values), strict=True
        )
    ]


def _no_verdict(judged: Sequence[Mapping[str, ConfigCounts]], language: str, row: Mean) -> str:
    """Why a row has no verdict: what one of the two did in the row's language, or the clips of the row that failed."""
    reasons = []
    for side, run in zip("AB", judged, strict=True):
        spoken = [counts for name, counts in run.items() if parse(name).language == language]
        if why := refusal_of_counts(spoken) or refusal_of_counts(run[name] for name in row.members if name in run):
            reasons.append(f"{side}: {why}")
    return "; ".join(reasons)


def resampled(rows: Sequence[Comparison]) -> str:
    """What the rows rest on, for people: the units of the row that has most.

    A language's rows may have fewer: only the configs of a category are in it.
    """
    row = max(rows, key=lambda row: row.units)
    return str(Resampled(row.unit, row.units, row.clips))


def compare_groups(a: Run, b: Run, column: str, normaliser: str = "srb-paper-1", **how: Any) -> list[Comparison]:
    """Compare two runs on each group of clips that a column tells apart; the group stands beside the language.

    `how` goes to `compare`. A group without anything to compare is left out; the p-values are corrected over all rows.
    """
    rows: list[Comparison] = []
    reason: UserError | None = None
    first, second = a.groups(column), b.groups(column)
    for group in (group for group in first if group in second):
        try:
            own = compare(*(run.counts(normaliser=normaliser) for run in (first[group], second[group])), **how)
        except UserError as error:
            reason = error
            continue
        rows += [replace(row, language=f"{row.language} {group}") for row in own]
    if not rows:
        raise reason or UserError(f"the two runs have no group of '{column}' in common")
    corrected = holm([row.p for row in rows])
    return [replace(row, p_corrected=p) for row, p in zip(rows, corrected, strict=True)]


def _nothing_to_compare(
    first: Mapping[str, ConfigCounts], second: Mapping[str, ConfigCounts], both: Sequence[str]
) -> UserError:
    """The configs that are missing: the clean ones of the shared scenarios, or any scenario."""
    scenarios = [name for name in both if first[name].source]
    if not scenarios:
        return UserError("the two runs have no scenario in common beside clean speech; there is nothing to compare")
    clean = sorted({str(first[name].source) for name in scenarios} - set(both))
    lacking = [run for run, have in (("A", first), ("B", second)) if any(name not in have for name in clean)]
    return UserError(
        f"WERD is a difference to clean speech, and {', '.join(clean)} is missing from {' and '.join(lacking)}; "
        f"run it too (srb run ... {clean[0]})"
    )


def _rows(a: Summary, b: Summary, by: str) -> list[tuple[str, Mean, Mean]]:
    """The rows to compare, each with the measure it is compared in."""
    if by != "category":
        mine, theirs = ((s.scenarios if by == "scenario" else s.severities) for s in (a, b))
        rows = [("wer", a.clean[name], b.clean[name]) for name in a.clean]
        rows += [("werd", mine[name], theirs[name]) for name in sorted(mine)]
        return [row for row in rows if row[0] in row[1].values and row[0] in row[2].values]
    rows = [(measure_of(name), a.categories[name], b.categories[name]) for name in sorted(a.categories)]
    rows.append(("nwerd", a.overall, b.overall))
    if any(name in a.categories for name in ADVERSARIAL):
        rows.append(("werd", a.adversarial, b.adversarial))
    return [row for row in rows if row[0] in row[1].values and row[0] in row[2].values]


def _shared_name(config: str) -> str:
    """The name of a config without the model that an attack belongs to."""
    return str(replace(parse(config), model=None))


def _renamed(counts: ConfigCounts, name: str) -> ConfigCounts:
    return replace(counts, config=name)


def _same_clips(a: ConfigCounts, b: ConfigCounts) -> None:
    if list(a.ids) == list(b.ids):
        if (a.counts.lengths != b.counts.lengths).any():
            raise UserError(f"{a.config}: the two runs have different references for the same clips")
        return
    lonely = sorted(set(a.ids) ^ set(b.ids))
    named = ", ".join(lonely[:3]) + (", ..." if len(lonely) > 3 else "")
    raise UserError(
        f"{a.config}: the two runs are not on the same clips, {len(lonely)} are in one only ({named}); run both "
        "on the same clips"
    )
