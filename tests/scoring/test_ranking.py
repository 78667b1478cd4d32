"""The ranking cannot be won by being worse, says over what it ranks, and leaves the paper's order as it is."""

import csv
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.scoring.ranking import CLEAN_ALLOWANCE, Candidate, ConfigRow, rank

TABLE1 = Path(__file__).parents[2] / "push" / "leaderboard" / "data" / "paper_table1.csv"
DIFFICULTY = {"en_noise_sev1": 40.0, "en_noise_sev4": 95.0, "en_rir_sev1": 30.0, "en_gaussian_sev2": 60.0}
CATEGORY = {
    "en_noise_sev1": "noise_env",
    "en_noise_sev4": "noise_env",
    "en_rir_sev1": "spatial",
    "en_gaussian_sev2": "noise_white",
}


def candidate(name, clean, rates, empty=0.0):
    rows = [ConfigRow(c, CATEGORY[c], wer, clean, DIFFICULTY[c]) for c, wer in zip(DIFFICULTY, rates, strict=True)]
    return Candidate(name, [ConfigRow("en_clean", "clean", clean), *rows], clean, empty)


HONEST = [candidate("good", 4.0, [6, 30, 12, 9]), candidate("fair", 9.0, [14, 55, 25, 20])]
# What a worthless recogniser scores: reproduced from runs of such recognisers over the demo corpus.
WORTHLESS = {
    "garbage on clean speech only": candidate("x", 2000.0, [6, 30, 12, 9]),
    "every clean clip failed": candidate("x", 100.0, [6, 30, 12, 9], empty=1.0),
    "nothing at all": candidate("x", 100.0, [100, 100, 100, 100], empty=1.0),
    "the same word for every clip": candidate("x", 97.0, [97, 97, 97, 97]),
    "a loop everywhere": candidate("x", 900.0, [900, 900, 900, 900]),
    "a tenth of the clean clips left empty": candidate("x", 13.0, [6, 30, 12, 9], empty=0.1),
}


@pytest.mark.parametrize("name", WORTHLESS)
def test_a_worthless_recogniser_is_not_ranked(name):
    standings = rank([*HONEST, WORTHLESS[name]])
    assert [s.name for s in standings] == ["good", "fair", "x"]
    assert standings[-1].place is None
    assert standings[-1].why


def test_clean_errors_below_the_ceiling_excuse_no_more_than_the_allowance():
    """49 points of clean WER would give an NWERD far below zero; the score takes ten of them off and no more."""
    spoilt = candidate("spoilt", 49.0, [16, 65, 35, 30])
    standings = rank([*HONEST, spoilt])
    assert [s.name for s in standings] == ["good", "fair", "spoilt"]
    by_hand = ((100 * 6 / 40 + 100 * 55 / 95) / 2 + 100 * 20 / 60 + 100 * 25 / 30) / 3
    assert standings[-1].score == pytest.approx(by_hand)
    assert standings[-1].nwerd < 0


rates_of = st.lists(st.floats(0, 200), min_size=4, max_size=4)


@settings(max_examples=200, deadline=None)
@given(
    clean=st.floats(0, 50),
    rates=rates_of,
    more=rates_of,
    clean_more=st.floats(0, 50),
    others=st.lists(rates_of, max_size=3),
)
def test_no_recogniser_passes_itself_by_being_worse(clean, rates, more, clean_more, others):
    """Whatever errors are added wherever, the spoilt copy does not stand above the recogniser it is a copy of."""
    original = candidate("original", clean, rates)
    spoilt = candidate("copy", clean + clean_more, [a + b for a, b in zip(rates, more, strict=True)])
    field = [candidate(f"other {i}", 8.0, r) for i, r in enumerate(others)]
    standings = [s.name for s in rank([spoilt, *field, original])]
    if original.configs[1:] != spoilt.configs[1:] or clean_more:
        assert standings.index("original") < standings.index("copy")


@settings(max_examples=200, deadline=None)
@given(clean=st.floats(0, 200), wer=st.floats(0, 300), more=st.floats(0, 300), difficulty=st.floats(1, 130))
def test_a_config_never_scores_better_with_more_errors(clean, wer, more, difficulty):
    row = ConfigRow("en_noise_sev1", "noise_env", wer, clean, difficulty)
    assert replace(row, wer=wer + more).score >= row.score >= 0
    gained = row.score - replace(row, clean_wer=clean + more).score
    assert gained <= 100 * max(CLEAN_ALLOWANCE - clean, 0) / difficulty + 1e-9


@pytest.mark.parametrize("language", ["en", "es"])
def test_the_papers_models_stand_in_the_order_of_its_average(language):
    """From Table 1 as printed: clean WER, and NWERD by category turned back into WER at a difficulty of 50."""
    with TABLE1.open() as file:
        lines = [line for line in csv.DictReader(file) if line["lang"] == language]
    candidates = []
    for line in lines:
        clean = float(line["clean_wer"])
        rows = [
            ConfigRow(f"{language}_{c}", c, clean + float(line[c]) * 50 / 100, clean, 50.0) for c in AVERAGED if line[c]
        ]
        candidates.append(Candidate(line["model"], rows, clean))
    standings = rank(candidates)
    averages = {line["model"]: float(line["avg"]) for line in lines}
    placed = [averages[s.name] for s in standings]
    assert placed == sorted(placed)
    assert all(s.nwerd == pytest.approx(averages[s.name], abs=0.06) for s in standings)


def test_averages_are_over_what_all_share():
    """With its easy configs alone a recogniser would come first; over what both have it does not."""
    easy = Candidate(
        "easy", [row for row in candidate("easy", 9.0, [14, 55, 25, 20]).configs if "sev4" not in row.config], 9.0
    )
    standings = rank([HONEST[0], easy])
    assert [s.name for s in standings] == ["good", "easy"]
    assert {s.configs for s in standings} == {3}
    assert standings[0].nwerd == pytest.approx((100 * 2 / 40 + 100 * 5 / 60 + 100 * 8 / 30) / 3)


def test_one_that_cannot_be_ranked_does_not_decide_over_what_the_others_are_compared():
    """Clean speech alone, a single easy config of a worthless recogniser: neither makes the others' averages theirs."""
    clean_alone = Candidate("clean alone", HONEST[0].configs[:1], 4.0)
    worthless = Candidate("worthless", candidate("worthless", 900.0, [6, 30, 12, 9]).configs[:2], 900.0)
    standings = rank([clean_alone, *HONEST, worthless])
    assert [s.name for s in standings] == ["good", "fair", "clean alone", "worthless"]
    assert standings[0].nwerd == rank(HONEST)[0].nwerd
    assert [s.configs for s in standings[:2]] == [4, 4]
    assert [bool(s.why) for s in standings] == [False, False, True, True]


def test_one_loop_moves_the_mean_and_not_the_median():
    rates = [6, 30, 12, 9]
    calm, looped = candidate("calm", 4.0, rates), candidate("looped", 4.0, [400, *rates[1:]])
    standings = {s.name: s for s in rank([calm, looped])}
    assert standings["looped"].nwerd > 10 * standings["calm"].nwerd
    assert standings["looped"].median_nwerd < 2 * standings["calm"].median_nwerd


def test_without_clean_speech_nobody_is_ranked():
    assert rank([Candidate("x", [], None)])[0].why == "clean speech was not scored"
    assert rank([]) == []
