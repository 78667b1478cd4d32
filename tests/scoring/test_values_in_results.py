"""A config at a value is scored in WERD; it has an NWERD where its value is that of a severity, and is in no mean."""

import json

import pytest
from support.run_folders import write_run

from speech_robust_bench.cli.main import main
from speech_robust_bench.scoring.difficulty import load

CLEAN = ["the quick brown fox", "jumps over the lazy dog", "and runs away", "from all of it at once"]
WORSE = ["the quick brown box", "jumps over the lazy dog", "and runs away", "from all of it"]
WORST = ["the box", "jumps over", "", "at once"]


@pytest.fixture
def results(tmp_path):
    ladder = {"noise_snr10": WORSE, "noise_snr-5": WORST}
    write_run(tmp_path / "run", "model", {"clean": CLEAN, "noise_sev3": WORSE, **ladder})
    assert main(["score", str(tmp_path / "run")]) == 0
    return json.loads((tmp_path / "run" / "results.json").read_text())


def test_werd_of_any_value_and_nwerd_of_a_severitys(results):
    configs = results["configs"]
    at_10, at_minus_5 = configs["en-tiny_noise_snr10"], configs["en-tiny_noise_snr-5"]
    # 3 of 18 words wrong, and 13; the difficulty of noise at 10 dB is 77 in the paper's Table 3
    assert at_10["werd"]["value"] == pytest.approx(100 * 3 / 18, abs=1e-3)
    assert at_minus_5["werd"]["value"] == pytest.approx(100 * 13 / 18, abs=1e-3)
    assert at_10["nwerd"]["value"] == pytest.approx(100 * 100 * 3 / 18 / 77, abs=1e-2)
    assert at_10["nwerd"] == configs["en-tiny_noise_sev3"]["nwerd"]
    assert at_minus_5["nwerd"] is None
    assert "has no entry for 'en-tiny_noise_snr-5'" in at_minus_5["why"]["nwerd"]


def test_a_value_is_a_row_of_its_own_and_in_no_mean(results):
    language = results["languages"]["en"]
    assert set(language["severities"]) == {"noise_sev3", "noise_snr10", "noise_snr-5"}
    for part, row in (("categories", "noise_env"), ("scenarios", "noise"), ("corpora", "tiny noise_env")):
        assert language[part][row]["members"] == ["en-tiny_noise_sev3"]
    assert not any("snr" in reason for reason in language["overall"]["missing"])


def test_the_difficulty_of_a_value_is_that_of_its_severity():
    table = load("paper-table3")
    assert table.of("en_noise_snr10") == table.of("en_noise_sev3") == 77
    assert table.of("es-mine_tempo_up_factor1.25") == table.of("tempo_up_sev1")
