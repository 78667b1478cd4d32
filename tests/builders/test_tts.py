"""Synthetic speech: the offline programs for real, transformers with tiny untrained models, YourTTS with a stand-in."""

import json
import pickle
import shutil
import sys
import types
from typing import ClassVar

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders import tts
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.core.errors import UserError


@pytest.fixture(autouse=True)
def _fresh_engines():
    tts.open_voice_engine.cache_clear()


@pytest.fixture(scope="module")
def clean():
    return open_corpus(None, "en", "demo").utterances[:6]


def needs(program):
    return pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")


@pytest.mark.parametrize(
    "engine", [pytest.param("espeak", marks=needs("espeak-ng")), pytest.param("flite", marks=needs("flite"))]
)
def test_offline_engines_speak(clean, engine):
    spoken = list(tts.speak_all(clean, engine))
    assert [(clip.id, clip.text, clip.corpus) for clip in spoken] == [(clip.id, clip.text, "demo") for clip in clean]
    assert len({clip.speaker for clip in spoken}) > 1
    assert {clip.gender for clip in spoken} <= {"female", "male"}
    for clip in spoken[:2]:
        samples = clip.load()
        assert samples.dtype == np.float32
        assert 1.0 < len(samples) / 16_000 < 10.0
        assert 0.05 < np.abs(samples).max() <= 1.0
        copy = pickle.loads(pickle.dumps(clip))  # as another process speaks it
        assert np.array_equal(copy.load(), samples)


@needs("espeak-ng")
def test_what_was_drawn_depends_on_the_clip_alone(clean):
    together = {clip.id: clip.audio.parameters for clip in tts.speak_all(clean, "espeak")}
    (alone,) = tts.speak_all(clean[3:4], "espeak")
    assert alone.audio.parameters == together[alone.id]
    assert set(alone.audio.parameters) == {"engine", "voice", "seed"}


@needs("espeak-ng")
def test_a_recogniser_understands_espeak():
    pocketsphinx = pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    decoder = pocketsphinx.Decoder(lm=None, loglevel="FATAL")
    decoder.add_jsgf_string("g", "#JSGF V1.0; grammar g; public <s> = (good | bad) (morning | evening | night);")
    decoder.activate_search("g")
    samples = tts.SpokenAudio("x", "GOOD EVENING", "en", "espeak", "en-us+m3", 0).load()
    decoder.start_utt()
    decoder.process_raw((samples * 32_767).astype(np.int16).tobytes(), full_utt=True)
    decoder.end_utt()
    assert decoder.hyp().hypstr == "good evening"


@needs("espeak-ng")
def test_spanish(clean):
    spanish = open_corpus(None, "es", "demo").utterances[:3]
    for clip in tts.speak_all(spanish, "espeak"):
        assert clip.speaker.startswith("es")
        assert len(clip.load()) > 16_000


@needs("flite")
def test_a_language_without_voices():
    with pytest.raises(UserError, match="flite has no voice for 'es'; choose another with --tts"):
        list(tts.speak_all(open_corpus(None, "es", "demo").utterances, "flite"))


def test_text_is_cut_at_a_word():
    text = "word " * 60
    assert tts.cut(text) == ("word " * 50).strip()
    assert tts.cut("x" * 300) == "x" * 250
    assert tts.cut("a" * 250) == "a" * 250
    assert tts.cut("a" * 250 + " b") == "a" * 250
    assert tts.cut("short") == "short"


@needs("espeak-ng")
def test_the_reference_is_cut_with_what_is_spoken(clean):
    from dataclasses import replace

    (clip,) = tts.speak_all([replace(clean[0], text="never " * 100)], "espeak")
    assert clip.text == clip.audio.text == ("never " * 41).strip()


def test_unknown_engines_and_missing_programs(monkeypatch):
    with pytest.raises(UserError, match="not an engine; the engines are espeak"):
        tts.open_voice_engine("siri")
    monkeypatch.setattr(tts.shutil, "which", lambda name: None)
    with pytest.raises(UserError, match="apt install espeak-ng"):
        tts.open_voice_engine("espeak")
    with pytest.raises(UserError, match="no such folder of voices"):
        tts.open_voice_engine("yourtts@/nowhere")


def test_the_papers_engines():
    assert [tts.default_engine(language) for language in ("en", "es", "de")] == ["yourtts", "bark", "mms"]


# transformers


@pytest.fixture(scope="module")
def vits(tmp_path_factory):
    """A VITS model, two speakers, a few thousand weights that were never trained."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    folder = tmp_path_factory.mktemp("vits")
    letters = "_ abcdefghijklmnopqrstuvwxyz'"
    (folder / "vocab.json").write_text(json.dumps({letter: number for number, letter in enumerate(letters)}))
    tokenizer = transformers.VitsTokenizer(str(folder / "vocab.json"), pad_token="_", unk_token="_", phonemize=False)
    tokenizer.save_pretrained(folder)
    config = transformers.VitsConfig(
        vocab_size=len(letters),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        ffn_dim=16,
        flow_size=16,
        spectrogram_bins=17,
        num_speakers=2,
        speaker_embedding_size=4,
        upsample_initial_channel=32,
        prior_encoder_num_flows=1,
        prior_encoder_num_wavenet_layers=1,
        posterior_encoder_num_wavenet_layers=1,
        duration_predictor_num_flows=1,
        depth_separable_num_layers=1,
        duration_predictor_filter_channels=16,
        sampling_rate=22_050,
    )
    torch.manual_seed(0)
    transformers.VitsModel(config).save_pretrained(folder)
    return folder


def test_vits_through_transformers(vits, clean):
    import torch

    engine = f"hf:{vits}"
    first, second = tts.speak_all(clean[:2], engine)
    assert first.speaker in ("0", "1")
    before = torch.random.get_rng_state()
    samples = first.load()
    assert torch.equal(torch.random.get_rng_state(), before)  # nobody else's stream moves
    assert samples.dtype == np.float32
    assert samples.ndim == 1
    assert len(samples) > 1_000
    torch.manual_seed(99)
    assert np.array_equal(first.load(), samples)
    other = tts.SpokenAudio("x", first.text, "en", engine, first.audio.voice, first.audio.seed + 1).load()
    assert not np.array_equal(other[:1_000], samples[:1_000])  # VITS draws its rhythm and its tone
    assert len(second.load())


def test_vits_with_nothing_to_say(vits):
    with pytest.raises(UserError, match="can say nothing of"):
        tts.open_voice_engine(f"hf:{vits}").speak("", "0", "en", 0)


def test_other_models_are_refused(tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    transformers.BertConfig().save_pretrained(tmp_path)
    with pytest.raises(UserError, match="is a bert model; text-to-speech works with bark, speecht5, vits"):
        tts.open_voice_engine(f"hf:{tmp_path}")


def test_a_model_that_is_not_there():
    pytest.importorskip("transformers", reason="transformers is not installed")
    with pytest.raises(UserError, match="cannot be loaded"):
        tts.open_voice_engine("hf:/nowhere/model")


def test_speecht5_with_an_x_vector(tmp_path, clean, monkeypatch):
    """The code of SpeechT5 with tiny untrained weights; its tokenizer, which needs more files, is a stand-in."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    torch = pytest.importorskip("torch", reason="torch is not installed")
    sizes = {"hidden_size": 16, "encoder_layers": 1, "encoder_attention_heads": 2, "encoder_ffn_dim": 16}
    sizes |= {"decoder_layers": 1, "decoder_attention_heads": 2, "decoder_ffn_dim": 16}
    config = transformers.SpeechT5Config(
        vocab_size=40,
        num_mel_bins=8,
        speaker_embedding_dim=4,
        **sizes,
        speech_decoder_prenet_units=8,
        speech_decoder_postnet_units=8,
    )
    vocoder = transformers.SpeechT5HifiGan(
        transformers.SpeechT5HifiGanConfig(model_in_dim=8, upsample_initial_channel=32)
    )
    torch.manual_seed(0)
    parts = {
        "AutoConfig": config,
        "SpeechT5ForTextToSpeech": transformers.SpeechT5ForTextToSpeech(config),
        "SpeechT5HifiGan": vocoder,
        "AutoProcessor": lambda text, return_tensors: {"input_ids": torch.tensor([[5, 6, 7, 8]])},
    }
    monkeypatch.setattr(tts, "_from_hub", lambda kind, name, revision: parts[kind])
    np.save(tmp_path / "alice.npy", np.ones(4))
    (clip,) = tts.speak_all(clean[:1], f"hf:microsoft/speecht5_tts@{tmp_path}")
    assert clip.speaker == "alice"
    assert clip.licence.endswith("MIT")
    samples = clip.load()
    assert len(samples) > 100
    assert np.array_equal(clip.load(), samples)
    tts.TransformersVoice._vocoder.cache_clear()


def test_bark_voices_and_call(monkeypatch, clean):
    """What Bark is asked for; the model itself is far too large for a test."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    asked = []

    class Bark:
        generation_config = types.SimpleNamespace(sample_rate=24_000)

        def eval(self):
            return self

        def generate(self, **inputs):
            asked.append(inputs)
            return torch.rand(1, 24_000) - 0.5

    parts = {
        "AutoConfig": types.SimpleNamespace(model_type="bark"),
        "AutoProcessor": lambda text, voice_preset: {"input_ids": text, "history_prompt": voice_preset},
        "BarkModel": Bark(),
    }
    revisions = set()
    monkeypatch.setattr(tts, "_from_hub", lambda kind, name, revision: (revisions.add(revision), parts[kind])[1])
    spanish = open_corpus(None, "es", "demo").utterances
    spoken = list(tts.speak_all(spanish, "bark"))
    assert {clip.audio.voice for clip in spoken} <= {f"v2/es_speaker_{number}" for number in range(10)}
    assert len({clip.audio.voice for clip in spoken}) > 3
    samples = spoken[0].load()
    assert len(samples) == 16_000
    assert asked[0]["history_prompt"] == spoken[0].audio.voice
    assert np.array_equal(spoken[0].load(), samples)
    commit = tts._REVISIONS["suno/bark"]
    assert revisions == {commit}
    assert spoken[0].audio.parameters["engine"] == f"bark?revision={commit}"  # also in another process, and tomorrow
    assert tts.material_of(spoken) == ("bark (the paper's text-to-speech)", False)


def test_a_model_of_the_hub_is_named_by_its_commit(monkeypatch, clean):
    config = types.SimpleNamespace(model_type="vits", num_speakers=1, _commit_hash="c" * 40)
    model = types.SimpleNamespace(config=config, eval=lambda: model)
    asked = set()

    def from_hub(kind, name, revision):
        asked.add((name, revision))
        return config if kind == "AutoConfig" else model

    monkeypatch.setattr(tts, "_from_hub", from_hub)
    tts.open_voice_engine.cache_clear()
    assert next(tts.speak_all(clean, "mms")).audio.engine == f"mms?revision={'c' * 40}"
    assert next(tts.speak_all(clean, "hf:ORG/VOICE?revision=v1")).audio.engine == "hf:ORG/VOICE?revision=v1"
    assert ("ORG/VOICE", "v1") in asked
    for wrong in ("mms?speed=2", "mms?revision=", "mms?revision=../x"):
        with pytest.raises(UserError, match="the only option"):
            tts.open_voice_engine(wrong)
    tts.open_voice_engine.cache_clear()


# YourTTS


class FakeTTS:
    """As the API of the `TTS` package: a list of floats at the synthesizer's rate."""

    synthesizer = types.SimpleNamespace(output_sample_rate=16_000)
    speakers: ClassVar = ["male-en-2", "female-en-5"]
    calls: ClassVar[list] = []

    def __init__(self, model):
        assert model == "tts_models/multilingual/multi-dataset/your_tts"

    def tts(self, **call):
        self.calls.append(call)
        return [0.1] * 8_000


@pytest.fixture
def yourtts(monkeypatch):
    pytest.importorskip("torch", reason="torch is not installed")
    FakeTTS.calls.clear()
    monkeypatch.setitem(sys.modules, "TTS", types.ModuleType("TTS"))
    monkeypatch.setitem(sys.modules, "TTS.api", types.SimpleNamespace(TTS=FakeTTS))
    return FakeTTS


def test_yourtts_in_its_own_voices(yourtts, clean):
    spoken = list(tts.speak_all(clean, "yourtts"))
    assert {(clip.speaker, clip.gender) for clip in spoken} == {("female-en-5", "female"), ("male-en-2", "male")}
    assert len(spoken[0].load()) == 8_000
    assert yourtts.calls == [{"text": spoken[0].text, "language": "en", "speaker": spoken[0].audio.voice}]


def test_yourtts_in_the_voices_of_vctk(yourtts, clean, tmp_path):
    for speaker in ("p225", "p226"):
        for number in (2, 1):
            path = tmp_path / "wav48_silence_trimmed" / speaker / f"{speaker}_00{number}_mic1.flac"
            path.parent.mkdir(parents=True, exist_ok=True)
            soundfile.write(path, np.zeros(16), 48_000)
    spoken = list(tts.speak_all(clean, f"yourtts@{tmp_path}"))
    assert {clip.speaker for clip in spoken} == {"p225_001_mic1", "p226_001_mic1"}
    spoken[0].load()
    assert yourtts.calls[0]["speaker_wav"].endswith("_001_mic1.flac")


def test_yourtts_is_optional(monkeypatch):
    monkeypatch.setitem(sys.modules, "TTS", None)
    with pytest.raises(UserError, match=r"needs the package TTS .*--tts espeak works without it"):
        tts.open_voice_engine("yourtts")
