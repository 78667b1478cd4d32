"""Algorithm 1: known answers, false alarms, the paper's examples and its Tables 4 and 10."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from speech_robust_bench.extensions.fairness.violations import (
    TAUS,
    GroupComparison,
    compare_groups,
    comprehensibility,
    comprehensible,
    excess_percent,
    group_clips,
    table4,
)
from speech_robust_bench.scoring.bootstrap import expanded
from speech_robust_bench.scoring.clip_sets import ClipSet, ErrorMatrix, with_transcripts, without_transcripts

# AequeVox, Table 4: the totals of the Accents data set.
TOTALS = {
    "English": 312,
    "Ganda": 844,
    "French": 413,
    "Gujarati": 406,
    "Indonesian": 311,
    "Korean": 1086,
    "Russian": 853,
}


def clip_set(labels, levels, speakers=None) -> ClipSet:
    ids = tuple(str(i) for i in range(len(labels)))
    return ClipSet("en_clean", tuple(levels), ids, speakers or tuple(None for _ in ids), {"group": tuple(labels)})


def both_forms(heard, **how) -> list[GroupComparison]:
    groups = group_clips(heard.clips.labels("gender"), "gender")
    measured = [*with_transcripts(heard), *without_transcripts(heard)]
    return [c for one in measured for c in compare_groups(one, groups, **how)[1]]


def test_the_violations_are_exactly_the_expected_ones(simulated):
    def rates(model, config, group):  # noise at severity 3 costs women 25 points more; nothing else does
        extra = 0.25 if group == "female" and config == "en_aeq_noise_sev3" else 0.0
        return 0.05 + extra + (0.1 if config != "en_clean" else 0)

    found = both_forms(simulated({"female": 4000, "male": 4000}, rates), replicates=200)
    assert {(c.recogniser, c.base, c.config) for tau in TAUS for c in found if c.violates(tau)} == {
        (name, "female", "en_aeq_noise_sev3") for name in ("one", "two", "one two")
    }
    assert all(c.violates(tau) and not c.within_noise for tau in TAUS for c in found if c.violates(0.01))
    wers = [c for c in found if c.violates(0.01) and c.form == "transcripts"]
    assert [c.difference for c in wers] == pytest.approx([0.25, 0.25], abs=0.015)


def test_an_unequal_start_is_no_violation(simulated):
    """Algorithm 1 compares degradations: a group that is worse on clean speech already is another matter."""

    def rates(model, config, group):
        return (0.2 if group == "female" else 0.05) + (0.1 if config != "en_clean" else 0)

    found = [c for c in both_forms(simulated({"female": 4000, "male": 4000}, rates), replicates=0) if c.form != "pair"]
    assert not [c for c in found if c.violates(0.02)]


@pytest.mark.parametrize("clips", [15, 40, 120])
def test_equal_error_rates_raise_few_false_alarms(simulated, clips):
    levels = tuple(f"en_aeq_{kind}_sev{n}" for kind in ("noise", "drop") for n in (1, 3, 5))
    tests, bare, alarms = 0, 0, 0
    for seed in range(50):
        heard = simulated(
            {"female": clips, "male": clips},
            lambda model, config, group: 0.08 if config == "en_clean" else 0.25,
            levels=levels,
            spread=0.5,
            seed=seed,
        )
        found = both_forms(heard, replicates=200)
        tests += len(found)
        bare += sum(c.violates(0.05) for c in found)
        alarms += sum(c.violates(0.05) and not c.within_noise for c in found)
    assert alarms / tests < 0.05
    if clips == 15:  # the paper's rule alone would raise far too many
        assert bare / tests > 0.05


def test_the_interval_covers_the_truth_as_often_as_it_says(simulated):
    inside = []
    for seed in range(60):
        heard = simulated(
            {"female": 80, "male": 80},
            lambda model, config, group: {"en_clean": 0.05}.get(config, 0.3 if group == "female" else 0.2),
            models=("one",),
            spread=0.3,
            seed=seed,
        )
        inside += [
            c.interval[0] <= 0.1 <= c.interval[1] for c in both_forms(heard, replicates=300) if c.base == "female"
        ]
    assert 0.88 < np.mean(inside) < 0.99


def test_many_clips_are_drawn_in_blocks_with_the_same_interval(simulated, monkeypatch):
    heard = simulated(
        {"female": 1500, "male": 1500},
        lambda model, config, group: 0.1 if config == "en_clean" else 0.3,
        models=("one",),
    )
    each = both_forms(heard, replicates=1000)
    monkeypatch.setattr("speech_robust_bench.extensions.fairness.violations.BLOCKS", 300)
    blocks = both_forms(heard, replicates=1000)
    widths = [[c.interval[1] - c.interval[0] for c in found] for found in (each, blocks)]
    assert np.mean(widths[1]) == pytest.approx(np.mean(widths[0]), rel=0.1)


def test_the_papers_example_of_two_native_languages():
    """Section 3: the distance goes from 2 to 4 for L1 and from 4 to 25 for L2, which is a violation for L2 alone."""
    errors = np.array([[2, 2, 4, 4], [4, 4, 25, 25]])
    measured = ErrorMatrix(
        "a b", "pair", clip_set(["L1", "L1", "L2", "L2"], ["en_aeq_noise_sev5"]), errors, np.ones((2, 4))
    )
    degraded, found = compare_groups(measured, group_clips(["L1", "L1", "L2", "L2"], "language"), replicates=100)
    assert {d.group: d.value for d in degraded} == {"L1": 2, "L2": 21}
    assert {(c.base, c.other): c.difference for c in found} == {("L1", "L2"): -19, ("L2", "L1"): 19}
    assert [c.base for c in found if c.violates(0.15)] == ["L2"]


def test_strictly_greater_than_tau():
    """Section 3, Russian and English speakers: with a difference of just tau "no fairness errors are recorded"."""
    russian = GroupComparison("a", "pair", "en_aeq_noise_sev1", "Russian", "English", 0.25, 0.125, None)
    assert not russian.violates(0.125)
    assert russian.violates(0.1)


def test_each_part_of_table_4_sums_to_the_total(simulated):
    rng = np.random.default_rng(1)
    cost = {}

    def rates(model, config, group):
        return cost.setdefault((model, config, group), rng.uniform(0.05, 0.4))

    heard = simulated({"a": 40, "b": 40, "c": 40}, rates, models=("one", "two", "three"))
    table = table4(both_forms(heard, replicates=0))
    assert set(table.groups) == {"a", "b", "c"}
    assert sum(table.total.values()) > 0
    for _, part in table.parts():
        assert sum((Counter(row) for row in part.values()), Counter()) == Counter(table.total)
    assert list(table.by_tau) == list(TAUS)
    assert list(table.by_tau[0.01].values()) >= list(table.by_tau[0.15].values())


def test_the_papers_percentages_follow_from_its_totals():
    """Abstract: 109 %, 528.5 % and 156.9 % more errors."""
    assert excess_percent(TOTALS, "English") == pytest.approx(109, abs=0.1)
    assert excess_percent({"Male": 28, "Female": 176}, "Male") == pytest.approx(528.57, abs=0.01)
    assert excess_percent({"Midlands": 93, "Nigerian": 239}, "Midlands") == pytest.approx(156.9, abs=0.1)


def test_comprehensibility_is_table_10():
    """RQ2: least and most destructive levels lose 24.36 % and 29.18 % on average; the lowest score is 6.78."""
    scores = comprehensibility()
    assert len(scores) == 40
    first, last = (np.mean([v for (_, severity), v in scores.items() if severity == n]) for n in (1, 5))
    assert 10 * (10 - first) == pytest.approx(24.36, abs=0.02)
    assert 10 * (10 - last) == pytest.approx(29.18, abs=0.02)
    assert min(scores.values()) == scores["aeq_scale", 5] == 6.78
    assert sum(v > 7 for v in scores.values()) == 34  # 82.9 % of 41: the 41st, twice the amplitude, has no score
    assert 10 - scores["aeq_noise", 1] == pytest.approx(2.775, abs=0.01)


def test_the_levels_of_table_4_are_the_default():
    """RQ1 excludes "the two most destructive Scale" levels and no others; a threshold of 7 leaves out four more."""
    levels = [f"en_{scenario}_sev{severity}" for scenario, severity in comprehensibility()]
    assert {level for level in levels if not comprehensible(level)} == {"en_aeq_scale_sev4", "en_aeq_scale_sev5"}
    assert sorted(set(filter(comprehensible, levels)) - {level for level in levels if comprehensible(level, 7.0)}) == [
        "en_aeq_clipping_sev4",
        "en_aeq_clipping_sev5",
        "en_aeq_noise_sev4",
        "en_aeq_noise_sev5",
    ]
    assert not comprehensible("en_aeq_noise_sev1", None, {("aeq_noise", 1): 6.0})  # ratings of one's own: 7 or more
    assert comprehensible("en_aeq_noise_sev1", 5.0, {("aeq_noise", 1): 6.0})


def test_every_rated_level_is_a_scenario_of_ours():
    from speech_robust_bench.builders.scenarios import SCENARIOS

    assert all(severity in SCENARIOS[name].levels for name, severity in comprehensibility())
    assert not comprehensible("en_aeq_noise_sev4", 7)
    assert comprehensible("en_aeq_noise_sev4", 6.9)
    assert comprehensible("en_aeq_amplitude_up")


def test_whole_speakers_can_be_drawn():
    """Two speakers of ten clips each, of whom one suffers, say less than twenty clips do."""
    errors = np.zeros((2, 40))
    errors[1, :10] = 9
    labels = ["a"] * 20 + ["b"] * 20
    speakers = ("x",) * 10 + ("y",) * 10 + tuple(f"z{i}" for i in range(20))
    measured = ErrorMatrix(
        "m", "transcripts", clip_set(labels, ["en_aeq_noise_sev1"], speakers), errors, np.full((2, 40), 10)
    )
    clips, whole = (
        compare_groups(measured, group_clips(labels, "group"), base="a", resample=how)[1][0]
        for how in ("clips", "auto")
    )
    assert clips.difference == whole.difference == pytest.approx(0.45)
    assert not clips.within_noise
    assert whole.interval is None  # of two speakers nobody knows
    assert whole.resampled == "22 speakers, 40 clips"
    assert [table4([c], beyond_noise=True).total["a"] for c in (clips, whole)] == [4, 0]


@pytest.mark.parametrize("count", [5, 10, 40])
def test_few_blocks_ask_for_students_interval(count):
    """The bootstrap of a mean has the variance with 1/n; at the expanded level its interval is Student's."""
    values = np.random.default_rng(0).normal(size=count)
    student = stats.t.ppf(0.975, count - 1) * values.std(ddof=1) / count**0.5
    bootstrap = stats.norm.ppf((1 + expanded(0.95, count)) / 2) * values.std() / count**0.5
    assert bootstrap == pytest.approx(student)
