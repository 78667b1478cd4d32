"""Means as in the paper, and what is missing from them by name."""

import csv
from pathlib import Path

import numpy as np
import pytest

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.aggregate import (
    ConfigCounts,
    mean,
    measure_of,
    of_categories,
    overall,
    score,
    summarise,
)
from speech_robust_bench.scoring.bootstrap import weights
from speech_robust_bench.scoring.difficulty import Difficulty, DifficultyTable, load
from speech_robust_bench.scoring.scoring import Counts, align

TABLE_1 = Path(__file__).parent / "data" / "paper_table1.csv"


@pytest.mark.parametrize(
    "row", list(csv.DictReader(TABLE_1.read_text().splitlines())), ids=lambda row: f"{row['lang']} {row['model']}"
)
def test_category_means_reproduce_table_1(row):
    """Within rounding: nine values rounded to 0.05 each, and their mean again."""
    values = {c: float(row[c]) for c in AVERAGED if row[c]}
    mean = overall(of_categories(values))
    assert mean.values["nwerd"] == pytest.approx(float(row["avg"]), abs=0.1001)
    assert set(mean.missing) == {c for c in AVERAGED if not row[c]}
    attacked = overall(of_categories({c: float(row[c]) for c in ADVERSARIAL}, "werd"), ADVERSARIAL, "werd")
    assert attacked.values["werd"] == pytest.approx(float(row["adv_avg"]), abs=0.1001)


def wrong(n, of=4, clips=10):
    """Counts of some clips of four words, with n words substituted in the first clips together."""
    substitutions = np.array([min(of, max(0, n - of * i)) for i in range(clips)])
    zero = np.zeros(clips, dtype=np.int64)
    return Counts(of - substitutions, substitutions, zero, zero)


IDS = [f"c{i}" for i in range(10)]


def config(name, category, n, source="en_clean", ids=IDS):
    return ConfigCounts(name, category, ids, wrong(n, clips=len(ids)), source)


CLEAN = config("en_clean", "clean", 2, None)  # 5 %
SIMULATED = [
    config("en_noise_sev1", "noise_env", 4),  # 10 %, WERD 5
    config("en_noise_sev2", "noise_env", 8),  # 20 %, WERD 15
    config("en_echo_sev1", "spatial", 12),  # 30 %, WERD 25
    config("en_pgd_sev1-m", "adv_us", 40),  # 100 %, WERD 95
]


def test_overall_is_the_mean_of_category_means():
    table = load("paper-table3")
    summary = summarise(score([CLEAN, *SIMULATED], replicates=20))["en"]
    noise = (100 * 5 / table.of("noise_sev1") + 100 * 15 / table.of("noise_sev2")) / 2
    echo = 100 * 25 / table.of("echo_sev1")
    assert summary.categories["noise_env"].values["nwerd"] == pytest.approx(noise)
    assert summary.categories["noise_env"].values["werd"] == pytest.approx(10)
    assert summary.overall.values["nwerd"] == pytest.approx((noise + echo) / 2)
    assert summary.overall.members == ("noise_env", "spatial")
    assert summary.adversarial.values == {"werd": pytest.approx(95.0)}
    assert summary.clean["en_clean"].values["wer"] == 5.0
    assert summary.scenarios["noise"].members == ("en_noise_sev1", "en_noise_sev2")
    assert summary.severities["noise_sev2"].values["werd"] == pytest.approx(15)
    assert summary.corpora["librispeech spatial"].members == ("en_echo_sev1",)
    low, high = summary.overall.interval("nwerd")
    assert low <= summary.overall.values["nwerd"] <= high


def test_what_is_missing_is_named():
    expected = [c.config for c in SIMULATED] + ["en_noise_sev3", "en_rir_sev1"]
    summary = summarise(score([CLEAN, *SIMULATED], replicates=0), [*expected])["en"]
    assert summary.categories["noise_env"].missing == {"en_noise_sev3": "not scored"}
    assert "en_noise_sev3" in summary.overall.missing
    assert "sfx" in summary.overall.missing
    assert "noise_env" not in summary.overall.missing
    assert set(summary.adversarial.missing) == {"adv_ua"}
    with_category = summarise(score([CLEAN, *SIMULATED], replicates=0), {"en_rir_sev1": "spatial"})["en"]
    assert with_category.categories["spatial"].missing == {"en_rir_sev1": "not scored"}
    assert with_category.severities["rir_sev1"].values == {}


def test_scores_that_cannot_be_had_say_why():
    no_clean, codec, attack = score(
        [config("es_noise_sev1", "noise_env", 4, "es_clean"), config("en_mp3_sev1", "codec", 4), SIMULATED[3], CLEAN],
        replicates=0,
    )[:3]
    assert no_clean.why["werd"] == "es_clean was not scored"
    assert no_clean.values == {"wer": 10.0, "nwer": pytest.approx(100 * 10 / 51.4)}  # Table 3: noise_sev1 is 51.4
    assert "has no entry for 'en_mp3_sev1'" in codec.why["nwerd"]
    assert codec.values["werd"] == 5.0
    assert "adversarial" in attack.why["nwerd"]
    summary = summarise([no_clean])["es"]
    assert summary.overall.values == {}


def test_languages_do_not_mix():
    spanish = [config("es_clean", "clean", 0, None), config("es_noise_sev1", "noise_env", 4, "es_clean")]
    tables = summarise(score([CLEAN, *SIMULATED, *spanish], replicates=0))
    assert set(tables) == {"en", "es"}
    assert tables["es"].categories["noise_env"].values["werd"] == 10.0


def test_simulated_configs_are_paired_and_recordings_are_not():
    part = config("en_noise_sev1", "noise_env", 2, ids=IDS[:5])
    paired = score([CLEAN, part], replicates=100)[1]
    assert paired.clean_wer == 10.0  # of the same five clips
    assert paired.values["werd"] == 0.0
    assert paired.interval("werd") is None  # the same errors on the same clips: nothing says how others would differ
    recorded = config("en_accent", "accent", 2, ids=[f"cv{i}" for i in range(5)])
    assert score([CLEAN, recorded], replicates=100)[1].values["werd"] == 5.0
    stranger = config("en_noise_sev1", "noise_env", 2, ids=["c1", "zzz"])
    with pytest.raises(UserError, match=r"en_noise_sev1 against en_clean: 1 of 2 clips are not .* \(zzz\)"):
        score([CLEAN, stranger])


def test_order_of_clips_does_not_matter():
    said, hypotheses = ["a b", "c d", "e f"], ["a x", "c d", "x x"]
    forth = ConfigCounts("en_noise_sev1", "noise_env", ["1", "2", "3"], align(said, hypotheses), "en_clean")
    back = ConfigCounts("en_noise_sev1", "noise_env", ["3", "2", "1"], align(said[::-1], hypotheses[::-1]), "en_clean")
    clean = ConfigCounts("en_clean", "clean", ["1", "2", "3"], align(said, said))
    one, two = (score([clean, c], replicates=50)[1] for c in (forth, back))
    assert one.values == two.values
    assert (one.replicates["werd"] == two.replicates["werd"]).all()


def test_floor_holds_for_each_config():
    easier = config("en_noise_sev1", "noise_env", 0)
    assert score([CLEAN, easier], replicates=0)[1].values["werd"] == -5.0
    assert score([CLEAN, easier], replicates=0, floor=True)[1].values["werd"] == 0.0


def rate_in_each_draw(counts, speakers=None, seed=3):
    """The error rate of the clips in each of 20 bootstrap replicates, written out."""
    drawn = weights(IDS[: len(counts)], speakers, replicates=20, seed=seed)
    return 100 * (drawn @ counts.errors) / (drawn @ counts.lengths)


def test_clean_and_hard_clips_are_resampled_together():
    clean, noisy = (row.counts for row in (CLEAN, SIMULATED[1]))
    scored = score([CLEAN, SIMULATED[1]], replicates=20, seed=3)[1]
    assert scored.replicates["wer"] == pytest.approx(rate_in_each_draw(noisy))
    lost = rate_in_each_draw(noisy) - rate_in_each_draw(clean)
    assert scored.replicates["werd"] == pytest.approx(lost)
    level = load("paper-table3").of("noise_sev2")
    assert scored.replicates["nwerd"] == pytest.approx(100 * lost / level)
    assert (scored.clean_wer, scored.difficulty) == (5.0, level)
    assert scored.values["nwerd"] == pytest.approx(100 * 15 / level)
    floored = score([CLEAN, config("en_noise_sev2", "noise_env", 2)], replicates=20, seed=3, floor=True)[1]
    assert (floored.replicates["werd"] >= 0).all()
    other = score([CLEAN, SIMULATED[1]], replicates=20, seed=4)[1]
    assert (other.replicates["wer"] != scored.replicates["wer"]).any()


def test_recordings_of_their_own_are_drawn_by_themselves():
    recorded = config("en_accent", "accent", 6, ids=IDS[:5])
    scored = score([CLEAN, recorded], replicates=20, seed=3)[1]
    lost = rate_in_each_draw(recorded.counts) - rate_in_each_draw(CLEAN.counts)
    assert scored.replicates["werd"] == pytest.approx(lost)
    assert scored.clean_wer == 5.0


def test_speakers_are_drawn_whole_unless_clips_are_asked_for():
    speakers = ["a"] * 5 + ["b"] * 5
    clean = ConfigCounts("en_clean", "clean", IDS, CLEAN.counts, speakers=speakers)
    drawn = {how: score([clean], replicates=20, seed=3, resample=how)[0] for how in ("clips", "speakers", "auto")}
    plain, whole = (drawn[how].replicates["wer"] for how in ("clips", "speakers"))
    assert (drawn["auto"].replicates["wer"] == whole).all()
    assert [str(drawn[how].resampled) for how in drawn] == ["10 clips", "2 speakers, 10 clips", "2 speakers, 10 clips"]
    assert drawn["clips"].interval("wer") is not None
    assert drawn["auto"].interval("wer") is None  # of two speakers nobody knows what others would do
    assert plain == pytest.approx(rate_in_each_draw(CLEAN.counts))
    assert whole == pytest.approx(rate_in_each_draw(CLEAN.counts, speakers))
    assert set(np.round(whole, 6)) <= {0.0, 5.0, 10.0}  # nobody, or all errors are of the first speaker


def test_intervals_widen_with_the_level_and_need_replicates():
    scored = score([CLEAN, SIMULATED[1]], replicates=200)[1]
    low, high = scored.interval("werd", 0.5)
    wide_low, wide_high = scored.interval("werd")
    assert wide_low < low < high < wide_high
    # Student's t with nine degrees of freedom (2.262 in any table) times the jackknife's error is the least there is.
    lost = 100 * np.array([2, 4, 0, 0, 0, 0, 0, 0, 0, 0]) / 4
    assert wide_high - 15 >= 2.262 * lost.std(ddof=1) / 10**0.5 - 1e-3
    assert scored.interval("cer") is None
    assert score([CLEAN], replicates=0)[0].interval("wer") is None
    category = summarise([scored])["en"].categories["noise_env"]
    assert category.interval("werd") == (wide_low, wide_high)
    assert category.interval("cer") is None


def test_a_difficulty_that_is_not_positive_gives_no_nwerd():
    table = DifficultyTable("mine", {"noise_sev1": Difficulty(0.0)})
    scored = score([CLEAN, SIMULATED[0]], table=table, replicates=0)[1]
    assert scored.why == dict.fromkeys(("nwer", "nwerd"), "its difficulty in mine is 0, not positive")
    assert set(scored.values) == {"wer", "werd"}
    assert scored.difficulty == 0


def test_the_median_is_over_configs_of_the_nine_categories():
    scores = score([CLEAN, *SIMULATED, config("en_mp3_sev1", "codec", 20)], replicates=20)
    middle = summarise(scores)["en"].median
    averaged = [scored for scored in scores if scored.category in ("noise_env", "spatial")]
    assert middle.members == ("en_noise_sev1", "en_noise_sev2", "en_echo_sev1")
    assert middle.values == {"nwerd": np.median([scored.values["nwerd"] for scored in averaged])}
    each = np.median([scored.replicates["nwerd"] for scored in averaged], axis=0)
    assert (middle.replicates["nwerd"] == each).all()
    nothing = summarise(score([CLEAN], replicates=0))["en"].median
    assert (nothing.name, nothing.members, nothing.values) == ("median", (), {})


def test_a_value_of_ones_own_is_a_row_and_in_no_mean():
    own = config("en_noise_snr7", "noise_env", 30)
    summary = summarise(score([CLEAN, *SIMULATED, own], replicates=0))["en"]
    assert summary.severities["noise_snr7"].members == ("en_noise_snr7",)
    assert summary.categories["noise_env"].members == ("en_noise_sev1", "en_noise_sev2")
    assert summary.scenarios["noise"].members == ("en_noise_sev1", "en_noise_sev2")


def test_a_mean_names_members_without_a_score():
    no_clean = score([config("en_noise_sev4", "noise_env", 40, "en-other_clean")], replicates=0)[0]
    scored = score([CLEAN, SIMULATED[0]], replicates=20)[1]
    row = mean("noise", [scored, no_clean], {"en_noise_sev3": "not scored"}, measures=("werd",))
    assert row.values == {"werd": 5.0}
    assert row.members == ("en_noise_sev1", "en_noise_sev4")
    assert row.missing == {"en_noise_sev3": "not scored", "en_noise_sev4": "en-other_clean was not scored"}
    assert (row.replicates["werd"] == scored.replicates["werd"]).all()


def test_what_a_category_is_reported_in():
    assert [measure_of(name) for name in ("sfx", "adv_us", "codec")] == ["nwerd", "werd", "werd"]


def test_languages_of_missing_configs_have_tables_too():
    tables = summarise(score([CLEAN], replicates=0), {"es_noise_sev1": "noise_env", "en_clean": "clean"})
    assert tables["es"].categories["noise_env"].missing == {"es_noise_sev1": "not scored"}
    assert tables["es"].clean == {}
    assert tables["en"].categories == {}
