"""Codecs of calls and headsets: Opus with lost packets, AMR, LC3."""

import numpy as np
import pytest
from support.speech import RATE, speech_like

from speech_robust_bench.builders.perturb.codecs import packet_loss
from speech_robust_bench.builders.scenario import missing_packages
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError

CLIP = speech_like(4)


def rng():
    return np.random.default_rng(3)


def spectral_error_db(ours, clip=CLIP):
    """The difference of two magnitude spectrograms, over the clip's: it does not mind phase."""

    def magnitudes(samples):
        return np.abs(np.fft.rfft(samples[: len(samples) // 320 * 320].reshape(-1, 320) * np.hanning(320), axis=1))

    a, b = magnitudes(clip), magnitudes(ours)
    return 10 * np.log10(np.sum((a - b) ** 2) / np.sum(a**2))


def test_opus_conceals_what_packet_loss_silences():
    voip = pytest.importorskip("speech_robust_bench.builders.perturb.codecs")
    pytest.importorskip("av")
    whole = voip.opus_loss(CLIP, RATE, 0, rng())
    assert len(whole) == len(CLIP)
    assert np.argmax(np.correlate(whole[8000:24000], CLIP[8000:24000], "same")) == pytest.approx(8000, abs=4)
    silenced, concealed = packet_loss(whole, RATE, 20, rng()), voip.opus_loss(CLIP, RATE, 20, rng())
    assert not np.array_equal(concealed, whole)
    assert spectral_error_db(concealed, whole) < spectral_error_db(silenced, whole)


def test_error_correction_brings_back_part_of_what_was_lost():
    voip = pytest.importorskip("speech_robust_bench.builders.perturb.codecs")
    pytest.importorskip("av")
    plain, corrected = (made(CLIP, RATE, 40, rng()) for made in (voip.opus_loss, voip.opus_loss_fec))
    assert spectral_error_db(corrected) < spectral_error_db(plain)


@pytest.mark.parametrize(("package", "name"), [("av", "amr"), ("lc3", "lc3")])
def test_a_lower_bit_rate_is_further_from_the_clip(package, name):
    pytest.importorskip(package)
    row = SCENARIOS[name]
    made = [row.function(CLIP, RATE, value, rng()) for value in row.severities]
    assert all(len(clip) == len(CLIP) for clip in made)
    errors = [spectral_error_db(clip) for clip in made]
    assert errors[0] < errors[-1]
    assert errors[0] < -3


def test_without_its_package_a_scenario_says_how_to_get_it(monkeypatch):
    from speech_robust_bench.builders import scenario
    from speech_robust_bench.builders.plan import DEMO, job_named, plan, uninstalled

    monkeypatch.setattr(scenario, "_installed", lambda package: False)
    assert missing_packages(SCENARIOS["lc3"]) == ["lc3"]
    with pytest.raises(UserError, match=r"scenario 'lc3' needs lc3: pip install .*codecs"):
        job_named("en-demo_lc3_sev1")
    assert not [job for job in plan(["en-demo_*"], DEMO) if job.scenario.packages]
    assert uninstalled(["en-demo_*"], DEMO) == ["opus_loss", "opus_loss_fec", "amr", "lc3"]
    assert uninstalled(["en-demo_noise_*"], DEMO) == []
