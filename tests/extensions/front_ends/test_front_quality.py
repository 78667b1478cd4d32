"""What front ends do to the sound: measures against values worked out by hand and packages, and the command."""

from __future__ import annotations

import json

import numpy as np
import pytest
from support.small_configs import write_config

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.perturb.environment import mix
from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.extensions.front_ends.quality import assigned, si_sdr, si_sdri, stoi

RATE = 16_000


def test_si_sdr_is_the_snr_of_orthogonal_noise_at_any_scale():
    rng = np.random.default_rng(0)
    clean = rng.standard_normal(RATE)
    noise = rng.standard_normal(RATE)
    noise -= (noise @ clean) / (clean @ clean) * clean
    for snr_db in (20, 0, -5):
        noisy = clean + noise * np.sqrt(clean @ clean / (noise @ noise)) * 10 ** (-snr_db / 20)
        assert si_sdr(noisy, clean) == pytest.approx(snr_db)
        assert si_sdr(0.1 * noisy, clean) == pytest.approx(snr_db)
    assert si_sdr(clean, np.zeros(RATE)) is None
    assert si_sdr(np.zeros(RATE), clean) is None


def test_si_sdri_of_two_talkers_is_that_of_the_better_order():
    rng = np.random.default_rng(0)
    first, second = rng.standard_normal((2, RATE))
    mixed = first + second
    leaked = np.stack([second + 0.1 * first, first + 0.1 * second])  # in the other order, each 20 dB down
    assert si_sdri(leaked, mixed, [first, second]) == pytest.approx(20, abs=0.5)
    assert si_sdri(np.stack([mixed, mixed]), mixed, [first, second]) == pytest.approx(0)
    assert si_sdri(leaked[1:], mixed, [first, second]) == pytest.approx(20, abs=0.5)  # one stream: the first talker
    assert np.array_equal(assigned(leaked, [first, second])[0], leaked[1])


def test_stoi_is_pystois_and_falls_with_noise(speech):
    pystoi = pytest.importorskip("pystoi")
    clean = speech[: 3 * RATE]
    noise = np.random.default_rng(0).standard_normal(len(clean)).astype(np.float32)
    values = [stoi(mix(clean, noise, snr_db), clean) for snr_db in (20, 5, -10)]
    assert values[0] == pytest.approx(pystoi.stoi(clean, mix(clean, noise, 20), RATE))
    assert values[0] > values[1] > values[2]
    assert stoi(clean[:1000], clean[:1000]) is None
    assert stoi(np.zeros(RATE, np.float32), np.zeros(RATE, np.float32)) is None


def test_the_command_measures_before_and_after_and_resumes(speech, tmp_path, capsys, monkeypatch):
    for package in ("pystoi", "pesq", "speechmos"):
        pytest.importorskip(package)
    clean = [speech[: 2 * RATE], speech[2 * RATE : 4 * RATE]]
    rng = np.random.default_rng(0)
    noisy = [mix(clip, rng.standard_normal(len(clip)).astype(np.float32), 5).clip(-1, 1) for clip in clean]
    write_config(tmp_path / "srb", "en-demo_clean", clean)
    write_config(tmp_path / "srb", "en-demo_noise_sev3", noisy)
    out = tmp_path / "rows.json"
    command = [
        "quality",
        "--data",
        str(tmp_path / "srb"),
        "en-demo_noise_sev3",
        "--front",
        "asnr",
        "--out",
        str(out),
        "--quiet",
    ]
    assert srb([*command, "--limit", "1", "--json"]) == 0
    before, after = json.loads(capsys.readouterr().out)
    assert (before["front"], after["front"], before["clips"]) == ("", "asnr", 1)
    assert before["si_sdr_db"] == pytest.approx(5, abs=0.2)
    assert after["si_sdr_db"] > before["si_sdr_db"] + 1
    assert after["dnsmos_bak"] > before["dnsmos_bak"]
    assert before["rtf"] == 0 < after["rtf"]
    assert 1 <= before["pesq"] <= 4.65
    stamp = out.read_text()
    monkeypatch.setattr("speech_robust_bench.extensions.front_ends.quality.measured", lambda *args: 1 / 0)
    assert srb([*command, "--limit", "1"]) == 0
    assert out.read_text() == stamp
    assert "asnr" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--front", "rnnoize"], "no front end 'rnnoize'"),
        (["--front", "asnr", "--limit", "0"], "--limit must be 1 or more"),
        (["--front", "asnr"], "need en-demo_clean"),
    ],
)
def test_a_mistake_is_one_line(more, word, speech, tmp_path, capsys):
    write_config(tmp_path / "srb", "en-demo_noise_sev3", [speech[:RATE]])
    assert srb(["quality", "--data", str(tmp_path / "srb"), *more, "--quiet"]) == 2
    assert word in capsys.readouterr().err


def ideal(clip, rate):
    """A separator that knows the two clips."""
    known = np.stack([np.pad(part, (0, len(clip) - len(part))) for part in PARTS[len(clip)]])
    return known + 1e-3 * np.random.default_rng(0).standard_normal(known.shape) * np.abs(known)


PARTS = {}


def test_a_separator_is_measured_against_both_talkers(tmp_path, capsys):
    for package in ("pystoi", "pesq", "speechmos"):
        pytest.importorskip(package)
    out, config = tmp_path / "srb", "en-demo_overlap_sev3"
    corpus = ["--corpus", "en-demo", "--out", str(out), "--workers", "1"]
    assert srb(["build", config, *corpus, "--limit", "1"]) == 0
    assert srb(["build", "en-demo_clean", *corpus]) == 0
    data = open_data(str(out))
    clean = {
        row.id: window.decode(row)
        for window in data.config("en-demo_clean").windows({*range(99)})
        for row in window.rows
    }
    row = data.config(config).groups[0].read(["id", "parameters"]).to_pylist()[0]
    parts = [clean[json.loads(row["parameters"])["second"]], clean[row["id"]]]
    PARTS[max(map(len, parts))] = parts
    capsys.readouterr()
    command = ["quality", "--data", str(out), config, "--front", "python:test_front_quality:ideal", "--quiet", "--json"]
    assert srb(command) == 0
    before, after = json.loads(capsys.readouterr().out)
    assert before["si_sdri_db"] == pytest.approx(0)
    assert before["si_sdr_db"] == pytest.approx(0, abs=2)  # at a ratio of 0 dB
    assert after["si_sdri_db"] > 30
    assert after["pesq"] > 4
