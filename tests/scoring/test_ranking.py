"""The ranking cannot be won by being worse or by leaving configs out, and stays close to the paper's order."""

import csv
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kendalltau

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.difficulty import load
from speech_robust_bench.scoring.ranking import Candidate, ConfigRow, rank

ROOT = Path(__file__).parents[2]
TABLE1 = ROOT / "push" / "leaderboard" / "data" / "paper_table1.csv"
MATRICES = sorted((ROOT / "results").glob("matrix-*.parquet"))
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


def test_clean_errors_excuse_nothing():
    """49 points of clean WER would give an NWERD far below zero; the score does not move with them."""
    spoilt = candidate("spoilt", 49.0, [16, 65, 35, 30])
    standings = rank([*HONEST, spoilt])
    assert [s.name for s in standings] == ["good", "fair", "spoilt"]
    by_hand = ((100 * 16 / 40 + 100 * 65 / 95) / 2 + 100 * 30 / 60 + 100 * 35 / 30) / 3
    assert standings[-1].nwer == pytest.approx(by_hand)
    assert standings[-1].nwerd < 0


def raised(system, config, by):
    """The same system with a higher WER on one config; one on clean speech is what its others are compared with."""
    if config == "en_clean":
        clean = system.clean_wer + by
        rows = [replace(r, wer=clean) if r.category == "clean" else replace(r, clean_wer=clean) for r in system.configs]
        return replace(system, configs=rows, clean_wer=clean)
    return replace(system, configs=[replace(r, wer=r.wer + by) if r.config == config else r for r in system.configs])


def standing_of(name, board):
    return next(s for s in rank(board) if s.name == name)


def no_better(after, before):
    """Whether neither the place nor the score that is shown improved."""
    placed = after.place is None or (before.place is not None and after.place >= before.place)
    return placed and (after.nwer or 0.0) >= (before.nwer or 0.0)


rates_of = st.lists(st.floats(0, 200), min_size=4, max_size=4)
NAMED = ["en_clean", *DIFFICULTY]


@st.composite
def boards(draw):
    """Two to five systems; some lack configs, some are hopeless on clean speech or write nothing for some clips."""
    systems = []
    for number in range(draw(st.integers(2, 5))):
        full = candidate(
            f"s{number}", draw(st.floats(0, 60)), draw(rates_of), draw(st.sampled_from([0.0, 0.0, 0.02, 0.2]))
        )
        lost = draw(st.sets(st.sampled_from(list(DIFFICULTY)), max_size=2)) if draw(st.booleans()) else set()
        systems.append(replace(full, configs=[row for row in full.configs if row.config not in lost]))
    return systems


@settings(max_examples=400, deadline=None)
@given(board=boards(), which=st.integers(0, 4), config=st.sampled_from(NAMED), by=st.floats(0, 300))
def test_no_error_anywhere_improves_a_place_or_a_score(board, which, config, by):
    system = board[which % len(board)]
    after = [raised(s, config, by) if s is system else s for s in board]
    assert no_better(standing_of(system.name, after), standing_of(system.name, board))


@settings(max_examples=400, deadline=None)
@given(board=boards(), which=st.integers(0, 4), lost=st.sets(st.sampled_from(NAMED), min_size=1))
def test_leaving_configs_out_improves_no_place(board, which, lost):
    system = board[which % len(board)]
    rows = [row for row in system.configs if row.config not in lost]
    fewer = replace(system, configs=rows, clean_wer=None if "en_clean" in lost else system.clean_wer)
    before, after = (standing_of(system.name, [*(s for s in board if s is not system), own]) for own in (system, fewer))
    assert after.place is None or (before.place is not None and after.place >= before.place)


@settings(max_examples=300, deadline=None)
@given(board=boards(), which=st.integers(0, 4), failed=st.floats(0, 1), empty=st.floats(0, 1))
def test_clips_that_fail_or_stay_empty_improve_no_place(board, which, failed, empty):
    system = board[which % len(board)]
    more = {"failed": max(system.failed, failed), "clean_empty": max(system.clean_empty, empty)}
    after = [replace(s, **more) if s is system else s for s in board]
    assert no_better(standing_of(system.name, after), standing_of(system.name, board))


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
    places = {s.name: s.place for s in rank([spoilt, *field, original])}
    assert places["copy"] is None or places["original"] <= places["copy"]


@pytest.fixture(scope="module", params=MATRICES, ids=lambda path: path.stem)
def matrix(request):
    """The measured systems, from what they wrote clip by clip (results/README.md)."""
    table = parquet.read_table(request.param, columns=["system", "config", "category", "words", "errors"])
    sums = table.group_by(["system", "config", "category"]).aggregate([("words", "sum"), ("errors", "sum")]).to_pylist()
    clean = {row["system"]: rate_of(row) for row in sums if row["config"] == "clean"}
    difficulty, rows = load("paper-table3"), {}
    for row in sums:
        level = difficulty.of(f"en_{row['config']}") if row["category"] in AVERAGED else None
        name, baseline = f"en_{row['config']}", None if row["category"] == "clean" else clean.get(row["system"])
        rows.setdefault(row["system"], []).append(ConfigRow(name, row["category"], rate_of(row), baseline, level))
    return [Candidate(system, configs, clean.get(system)) for system, configs in sorted(rows.items())]


def rate_of(row):
    return 100 * row["errors_sum"] / row["words_sum"]


def test_no_error_on_the_matrix_improves_a_place_or_a_score(matrix):
    """Every system, every config: 20 points more; clean speech by much and by little."""
    before = {s.name: s for s in rank(matrix)}
    beyond = {row.category for system in matrix for row in system.configs if not row.counts}
    assert not beyond & {"clean", *AVERAGED}  # configs beyond the average move no score at all
    for system in matrix:
        for config in system.counted:
            for by in (20.0,) if config != "en_clean" else (2.0, 10.0, 40.0):
                board = [raised(s, config, by) if s is system else s for s in matrix]
                assert no_better(standing_of(system.name, board), before[system.name]), (system.name, config, by)


def test_worse_clean_speech_wins_no_place_on_the_matrix(matrix):
    """With clean WER set to 10, whisper-base once went from place 4 to 1, and five of the systems gained."""
    before = {s.name: s for s in rank(matrix)}
    for system in (system for system in matrix if system.clean_wer is not None):
        spoilt = raised(system, "en_clean", max(10.0 - system.clean_wer, 0.0))
        after = standing_of(system.name, [spoilt if s is system else s for s in matrix])
        assert (after.place, after.nwer) == (before[system.name].place, before[system.name].nwer)


TAU = {"en": 0.76, "es": 0.73}  # docs/concepts/ranking.md states them


@pytest.mark.parametrize("language", TAU)
def test_the_order_stays_close_to_that_of_the_papers_average(language):
    """Table 1 as printed: clean WER, and NWERD by category turned back into WER by the difficulties of Table 3."""
    with TABLE1.open() as file:
        lines = [line for line in csv.DictReader(file) if line["lang"] == language]
    standings = rank([published(line, language) for line in lines])
    averages = {line["model"]: float(line["avg"]) for line in lines}
    assert all(s.nwerd == pytest.approx(averages[s.name], abs=0.06) for s in standings)
    tau = kendalltau([averages[s.name] for s in standings], [s.nwer for s in standings]).statistic
    assert tau == pytest.approx(TAU[language], abs=0.005)


def published(line, language):
    """A line of Table 1: every config of a category has the category's NWERD."""
    clean, rows = float(line["clean_wer"]), []
    for scenario in SCENARIOS.values():
        if scenario.category in AVERAGED and line[scenario.category]:
            for config in (f"{language}_{scenario.name}{f'_sev{n}' if n else ''}" for n in scenario.levels or (0,)):
                level = difficulty_of(config)
                if level:
                    wer = clean + float(line[scenario.category]) * level / 100
                    rows.append(ConfigRow(config, scenario.category, wer, clean, level))
    return Candidate(line["model"], [ConfigRow(f"{language}_clean", "clean", clean), *rows], clean)


def difficulty_of(config):
    try:
        return load("paper-table3").of(config)
    except UserError:
        return None


def test_one_that_lacks_a_config_is_not_ranked():
    """With its easy configs alone a recogniser would come first."""
    easy = Candidate(
        "easy", [row for row in candidate("easy", 5.0, [5, 55, 11, 8]).configs if "sev4" not in row.config], 5.0
    )
    standings = rank([*HONEST, easy])
    assert [(s.name, s.place) for s in standings] == [("good", 1), ("fair", 2), ("easy", None)]
    assert standings[-1].why == "lacks 1 of the 5 configs that the others have (en_noise_sev4)"
    assert standings[-1].nwer < standings[0].nwer
    assert [s.configs for s in standings] == [4, 4, 3]


def test_configs_of_several_versions_count_for_nobody():
    newer = [replace(r, version="2") if r.config == "en_rir_sev1" else r for r in HONEST[1].configs]
    standings = rank([HONEST[0], replace(HONEST[1], configs=newer)])
    assert [s.place for s in standings] == [1, 2]
    assert [s.configs for s in standings] == [3, 3]


def test_equals_share_a_place_and_clean_speech_breaks_ties():
    twins = [candidate(name, 4.0, [6, 30, 12, 9]) for name in ("a", "b")]
    assert [(s.name, s.place) for s in rank([*twins, HONEST[1]])] == [("a", 1), ("b", 1), ("fair", 3)]
    assert [s.name for s in rank([candidate("a", 5.0, [6, 30, 12, 9]), twins[1]])] == ["b", "a"]


def test_an_unranked_system_requires_no_configs_of_others():
    """Clean speech alone, a single easy config of a worthless recogniser: neither makes the others' averages theirs."""
    clean_alone = Candidate("clean alone", HONEST[0].configs[:1], 4.0)
    worthless = candidate("worthless", 900.0, [6, 30, 12, 9])
    worthless = replace(worthless, configs=[*worthless.configs, ConfigRow("en_accent", "accent", 5.0, 900.0, 33.1)])
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


def test_private_and_public_results_never_rank_together():
    def private(system, edition):
        return replace(system, configs=[replace(row, version=f"1-private-{edition}") for row in system.configs])

    best = private(candidate("best", 1.0, [1, 2, 3, 4]), "aa")
    standings = rank([best, *HONEST])
    assert [(s.name, s.place) for s in standings] == [("good", 1), ("fair", 2), ("best", None)]
    assert standings[-1].why == "of another edition: private-aa"
    assert standings[0].configs == 4
    assert [s.place for s in rank([best, private(HONEST[0], "aa")])] == [1, 2]
    assert [s.place for s in rank([best, private(HONEST[0], "bb")])] == [1, None]
