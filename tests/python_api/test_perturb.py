"""`srb.perturb`: the same samples as the dataset config, whatever kind of array the clip comes in."""

import json

import numpy as np
import pytest
from support.speech import RATE

import speech_robust_bench as srb
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.plan import job_named
from speech_robust_bench.builders.row_generator import RowGenerator
from speech_robust_bench.builders.scenarios import SCENARIOS, perturbations
from speech_robust_bench.core.audio import read, to_pcm16


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    return open_corpus(None, "en", "demo").utterances[0].load()


@pytest.mark.parametrize(
    "config", ["en-demo_noise_sev3", "en-demo_rir_sev2", "en-demo_gsm", "en-demo_packet_loss_sev4"]
)
def test_the_same_samples_as_that_row_of_the_config(config):
    item = open_corpus(None, "en", "demo").utterances[3]
    job = job_named(config)
    row = RowGenerator((job,), Banks()).rows(item, item.load())[0].stored()
    made = srb.perturb(item.load(), RATE, job.scenario.name, job.severity, corpus="demo", id=item.id)
    assert np.array_equal(made.samples, read(row["audio"]["bytes"]))
    assert made.parameters == json.loads(row["parameters"])
    assert (made.snr_db, made.clipped, made.duration) == (row["snr_db"], row["clipped"], row["duration"])


def test_without_an_id_the_draw_follows_the_samples(clip):
    one, same, other = (srb.perturb(clip, RATE, "noise", 4, **how) for how in ({}, {}, {"seed": "again"}))
    assert np.array_equal(one.samples, same.samples)
    assert not np.array_equal(one.samples, other.samples)


def test_integers_floats_channels_and_tensors_are_one_clip(clip):
    torch = pytest.importorskip("torch")
    pcm = to_pcm16(clip)
    whole = pcm.astype(np.float32) / 32768
    wanted = srb.perturb(whole, RATE, "echo", 2).samples
    for given in (pcm, whole.astype(np.float64), pcm.astype(np.int32) * 65536, np.stack([whole] * 2), pcm[:, None]):
        assert np.array_equal(srb.perturb(given, RATE, "echo", 2).samples, wanted)
    made = srb.perturb(torch.from_numpy(pcm), RATE, "echo", 2).samples
    assert isinstance(made, torch.Tensor)
    assert np.array_equal(made.numpy(), wanted)


def test_another_rate_is_converted(clip):
    import soxr

    made = srb.perturb(soxr.resample(clip, RATE, 44_100), 44_100, "gain", 1)
    assert made.rate == RATE
    assert abs(len(made.samples) - len(clip)) <= 1


@pytest.mark.parametrize(
    ("given", "rate", "scenario", "severity", "said"),
    [
        (np.zeros((2, 3, 4)), RATE, "gain", 1, "shape"),
        (np.zeros((40, 1000)), RATE, "gain", 1, "batch"),
        (np.zeros(0), RATE, "gain", 1, "no samples"),
        (np.array([0.0, np.nan]), RATE, "gain", 1, "NaN"),
        (np.array([0.0, 20_000.0]), RATE, "gain", 1, "int16"),
        (np.array([1, 2]), RATE, "gain", 1, "int64"),
        (np.array(["a"]), RATE, "gain", 1, "samples are float"),
        ([[1.0], [1.0, 2.0]], RATE, "gain", 1, "not an array"),
        (np.zeros(9), 0, "gain", 1, "sample rate"),
        (np.zeros(9), "16k", "gain", 1, "whole number"),
        (np.zeros(9), RATE, "gian", 1, "did you mean gain"),
        (np.zeros(9), RATE, "gain", 0, "needs a severity, 1 to 4"),
        (np.zeros(9), RATE, "gain", 5, "no severity 5"),
        (np.zeros(9), RATE, "gain", "3", "a number"),
        (np.zeros(9), RATE, "rir", 2.5, "no severity 2.5"),
        (np.zeros(9), RATE, "pgd", 1, "made by attack"),
        (np.zeros(9), RATE, 3, 1, "name such as"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(given, rate, scenario, severity, said):
    with pytest.raises(ValueError, match=said) as error:
        srb.perturb(given, rate, scenario, severity)
    assert "\n" not in str(error.value)


def test_between_two_severities_lies_a_value_between_theirs():
    assert SCENARIOS["noise"].value(2.5) == 15  # of 20 and 10 dB
    assert SCENARIOS["tempo_up"].value(1.5) == 1.375
    assert SCENARIOS["noise"].value(3.0) == 10


@pytest.mark.parametrize("scenario", [row for row in perturbations() if row.continuous], ids=lambda row: row.name)
def test_every_scenario_of_numbers_works_between_them(scenario, clip):
    made = srb.perturb(clip[:RATE], RATE, scenario.name, 1.5)
    low, high = sorted(scenario.severities[:2])
    assert low < made.parameters[scenario.parameter] < high
    assert np.isfinite(made.samples).all()
    assert len(made.samples)


def test_the_snr_between_two_severities_is_reached(clip):
    assert srb.perturb(clip, RATE, "gaussian", 2.5).snr_db == pytest.approx(15, abs=0.01)


def test_a_notebook_gets_a_player(clip):
    shown = srb.perturb(clip, RATE, "noise", 3)._repr_html_()
    assert "data:audio/flac;base64," in shown
    assert "snr_db 10" in shown
