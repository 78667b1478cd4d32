"""Any scenario at any value of its parameter: names, limits, what is drawn, and what becomes of it in a build."""

import json

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.speech import speech_like

from speech_robust_bench.builders.apply import perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.manifests import read_manifest
from speech_robust_bench.builders.plan import DEMO, job_named, plan
from speech_robust_bench.builders.scenario import VALUES
from speech_robust_bench.builders.scenarios import SCENARIOS, perturbations
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import PARAMETERS, ConfigName, parameter_word, parse

TAKING_VALUES = [row for row in perturbations() if row.takes_values]


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("en_noise_musan_snr-5", ConfigName("en", "noise_musan", 0, "librispeech", None, "snr", -5)),
        ("en_noise_esc50_snr2.5", ConfigName("en", "noise_esc50", 0, "librispeech", None, "snr", 2.5)),
        ("es_gaussian_snr0", ConfigName("es", "gaussian", 0, "mls", None, "snr", 0)),
        ("en-demo_resample_fraction0.3", ConfigName("en", "resample", 0, "demo", None, "fraction", 0.3)),
        ("en_pgd_snr-0.5-whisper-tiny.en", ConfigName("en", "pgd", 0, "librispeech", "whisper-tiny.en", "snr", -0.5)),
        ("en_noise_esc50", ConfigName("en", "noise_esc50", 0, "librispeech")),
        ("en_language_universal-4", ConfigName("en", "language_universal", 0, "librispeech", "4")),
    ],
)
def test_a_value_in_a_name(name, parts):
    assert parse(name) == parts
    assert str(parts) == name


@pytest.mark.parametrize("odd", ["snr-0", "snr05", "snr5.0", "snr+5", "snr1e3", "snr.5", "snr"])
def test_a_number_has_one_way_to_be_written(odd):
    """Anything else is part of the scenario's name, which then nobody knows, or no name at all."""
    with pytest.raises(UserError, match=r"unknown scenario|not a config name|only adversarial"):
        job_named(f"en_noise_{odd}")


def test_the_words_of_names_are_the_parameters_of_the_table():
    assert {parameter_word(str(row.parameter)) for row in TAKING_VALUES} == set(PARAMETERS.split("|"))
    assert all(row.takes_values == row.continuous for row in perturbations() if row.graded)


@pytest.mark.parametrize("row", TAKING_VALUES, ids=lambda row: row.name)
def test_every_scenario_works_at_both_ends_of_its_values(row):
    clip, banks = speech_like(0.3), Banks()
    lowest, highest = VALUES.get(row.name, VALUES[row.parameter])
    assert all(lowest <= value <= highest for value in row.severities)
    for value in (lowest, highest):
        made = perturb_clip(row.at(value), 0, clip, banks, corpus="test", clip_id="clip")
        assert np.isfinite(made.samples).all()
        assert made.parameters[row.parameter] == value


@pytest.mark.parametrize(
    ("name", "complaint"),
    [
        ("en_noise_snr-51", r"snr_db -51 is not in -50 to 100"),
        ("en_noise_snr101", r"snr_db 101 is not in -50 to 100"),
        ("en_noise_delay20", r"has no parameter 'delay'; its values are written snr<N>"),
        ("en_rir_snr3", r"'rir' cannot be asked for at a value"),
        ("en_clean_snr3", r"'clean' cannot be asked for at a value"),
        ("en_mulaw_snr3", r"'mulaw' cannot be asked for at a value"),
        ("en_pgd_snr35-tiny", r"adversarial and belongs to one model"),
        ("en_chorus_delay95", r"delay_ms 95 is not in 20 to 90"),
        ("en_noise_foo5", r"unknown scenario 'noise_foo5'.*; 'noise' is asked for as noise_sev1 to 4 or noise_snr<N>"),
        ("en_noise_musan_snr_db5", r"; 'noise_musan' is asked for as noise_musan_sev1 to 4 or noise_musan_snr<N>"),
        ("en_masked_words3", r"unknown scenario 'masked_words3'.*; 'masked' is asked for as masked_sev1 to 4$"),
        ("en_mulaw_foo5", r"unknown scenario 'mulaw_foo5'.*; 'mulaw' is asked for as mulaw$"),
        ("en_nose_snrr5", r"unknown scenario 'nose_snrr5'.*lists them all$"),
    ],
)
def test_a_value_that_cannot_be_is_one_clear_error(name, complaint):
    with pytest.raises(UserError, match=complaint):
        job_named(name)


def test_globs_range_over_severities_alone():
    assert not [job for job in plan(["en-demo_*"], DEMO) if job.name.value is not None]
    assert [str(job.name) for job in plan(["en-demo_noise_snr-5", "en-demo_noise_sev1"], DEMO)] == [
        "en-demo_noise_sev1",
        "en-demo_noise_snr-5",
    ]


def test_all_values_share_a_clips_draw():
    """The ladder of a clip is climbed with one and the same noise; a severity has a draw of its own."""
    clip, banks, row = speech_like(2), Banks(), SCENARIOS["noise"]
    drawn = [perturb_clip(row.at(snr), 0, clip, banks, corpus="test", clip_id="clip") for snr in (20, 0, -5)]
    assert len({made.parameters["noise"] for made in drawn}) == 1
    assert [made.snr_db for made in drawn] == pytest.approx([20, 0, -5], abs=0.01)


def test_it_is_built_like_any_config(tmp_path, capsys):
    config = "en-demo_gaussian_snr-5"
    assert main(["build", config, "--limit", "2", "--out", str(tmp_path)]) == 0
    (path,) = (tmp_path / config).glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    assert [row["snr_db"] for row in rows] == pytest.approx([-5, -5], abs=0.01)
    assert {(row["scenario"], row["severity"], row["source"]) for row in rows} == {("gaussian", 0, "en-demo_clean")}
    assert {row["parameters"] for row in rows} == {'{"snr_db": -5}'}
    manifest = read_manifest(tmp_path / config)
    assert (manifest.config, manifest.parameters) == (config, {"snr_db": -5})
    assert main(["build", "en-demo_gaussian_snr-99", "--out", str(tmp_path)]) == 2
    assert "-99 is not in -50 to 100" in capsys.readouterr().err


def test_one_file_at_a_value(tmp_path, capsys):
    import soundfile

    soundfile.write(tmp_path / "in.wav", speech_like(1), 16_000)
    words = ["perturb", str(tmp_path / "in.wav"), str(tmp_path / "out.flac"), "--scenario", "gaussian", "--json"]
    assert main([*words, "--value", "-5"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["parameters"] == {"snr_db": -5}
    assert report["snr_db"] == pytest.approx(-5, abs=0.01)
    assert main([*words, "--value", "-5", "--severity", "2"]) == 2
    assert "either a severity or a value" in capsys.readouterr().err
