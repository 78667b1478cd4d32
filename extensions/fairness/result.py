"""What `srb fairness` found, as it prints it with `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from speech_robust_bench.core.records import Record, Settings, Whole
from speech_robust_bench.scoring.disparity import GroupRates

Counts = Mapping[str, Mapping[str, int | Mapping[str, int]]]  # heading -> rows -> groups; "total" -> groups


class GroupSize(Record, frozen=True, kw_only=True):
    """The clips of a group, and their speakers where they are known."""

    clips: Whole
    speakers: Whole | None


class TestedSet(Record, frozen=True, kw_only=True):
    """A clean config and the levels that were made from it."""

    clean: str
    clips: Whole
    left_out: Whole
    unlabelled: Whole
    groups: dict[str, GroupSize]
    levels: list[str]
    not_rated: list[str]
    below_comprehensibility: list[str]


class SkippedSet(Record, frozen=True, kw_only=True):
    """A clean config that has no two groups."""

    clean: str
    why: str


class DegradationRow(Record, frozen=True, kw_only=True):
    """How much worse a group is at a level than on clean speech, as a share."""

    recogniser: str
    form: str
    config: str
    group: str
    clips: Whole
    clean: float | None
    transformed: float | None
    degradation: float | None


class ComparisonRow(Record, frozen=True, kw_only=True):
    """By how much a group lost more than another one at a level; `violates` has the thresholds that it is above."""

    recogniser: str
    form: str
    config: str
    transformation: str
    base: str
    other: str
    difference: float | None
    interval: list[float | None] | None
    resampled: str
    within_noise: bool | None
    violates: list[float]


class Violations(Record, frozen=True, kw_only=True):
    """The paper's Table 4, the same beyond noise, and how many more violations the other groups have."""

    violations: Counts
    beyond_noise: Counts
    excess_percent: dict[str, float | None]


class LostWord(Record, frozen=True, kw_only=True):
    """A word that is not robust, how often it was said and recognised, and what it became."""

    word: str
    initial: Whole
    least: Whole
    drop: Whole
    became: Sequence[tuple[str | None, int]]


class FaultRow(Record, frozen=True, kw_only=True):
    """The words that a group loses under a transformation."""

    recogniser: str
    form: str
    transformation: str
    group: str
    average_drop: float | None
    words: Whole
    non_robust: list[LostWord]


class ValidationLevel(Record, frozen=True, kw_only=True):
    """Of how many sentences a recogniser missed the word at an SNR, and the p-value of the difference."""

    snr_db: float
    sentences: Whole
    p_value: float
    robust_missing: Whole
    non_robust_missing: Whole


class Validation(Record, frozen=True, kw_only=True):
    """RQ3 on one recogniser; `grammar` is the share of grammatical sentences, where link-grammar is installed."""

    model: str
    tts: str
    robust: Sequence[str]
    non_robust: Sequence[str]
    levels: list[ValidationLevel]
    grammar: float | None


class Assessment(Record, frozen=True, kw_only=True):
    """What `srb fairness` found."""

    schema: int
    models: list[str]
    options: Settings
    proxy: bool
    no_verdict: dict[str, str]
    sets: list[TestedSet]
    skipped: list[SkippedSet]
    degradations: list[DegradationRow]
    comparisons: list[ComparisonRow]
    table4: dict[str, Violations]
    table9: dict[str, dict[str, dict[str, dict[str, float]]]]
    faults: list[FaultRow]
    disparity: list[GroupRates]
    validation: Validation | None = None

    @property
    def groups(self) -> list[str]:
        """All groups, in order."""
        return list(dict.fromkeys(group for tested in self.sets for group in tested.groups))
