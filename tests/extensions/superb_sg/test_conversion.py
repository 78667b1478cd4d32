"""Voice conversion: spectrograms and scores against other programs, VCC 2020's layout, a training, the front end."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import soundfile

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.front_ends.adapter import open_chain
from speech_robust_bench.extensions.superb_sg.conversion_head import ConversionHead
from speech_robust_bench.extensions.superb_sg.conversion_training import VoiceTest
from speech_robust_bench.extensions.superb_sg.mel import MEL_RATE, griffin_lim, log_mel
from speech_robust_bench.extensions.superb_sg.voice_scores import SpeakerEncoder, mcd_db, mel_cepstra, warping
from speech_robust_bench.extensions.superb_sg.voices import VoiceClip, vcc2020

RATE = 16_000


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voice(seed: int, pitch: float, seconds: float = 0.8, rate: int = RATE) -> np.ndarray:
    """Harmonics of a pitch in bursts, with a formant that moves: a little like speech."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * rate)) / rate
    bursts = np.clip(np.sin(2 * np.pi * 3 * t + rng.uniform(0, 6)), 0, None)
    formant = 500 + 400 * np.sin(2 * np.pi * t + rng.uniform(0, 6))
    harmonics = sum(
        np.exp(-(((pitch * k - formant) / 400) ** 2)) * np.sin(2 * np.pi * pitch * k * t) for k in range(1, 12)
    )
    return (0.2 * bursts * harmonics + 1e-3 * rng.standard_normal(len(t))).astype(np.float32)


@pytest.mark.long
def test_log_mel_spectrograms_are_those_of_librosa():
    librosa = pytest.importorskip("librosa")
    wave = voice(0, 150.0, rate=MEL_RATE)
    magnitudes = np.abs(librosa.stft(wave, n_fft=1024, hop_length=256, window="hann", pad_mode="reflect"))
    bank = librosa.filters.mel(sr=MEL_RATE, n_fft=1024, n_mels=80, fmin=80, fmax=7600)
    assert log_mel(wave).numpy() == pytest.approx(np.log10(np.maximum(1e-10, bank @ magnitudes)).T, abs=2e-3)


def test_a_signal_comes_back_from_its_spectrogram():
    mel = log_mel(voice(0, 150.0, rate=MEL_RATE))
    again = log_mel(griffin_lim(mel))
    loud = mel > mel.max() - 2
    assert float((again - mel)[loud].abs().mean()) < 0.1  # decades


def test_the_head_has_s3prls_layers():
    """Taco2-AR with 1024 units on HuBERT Base, from the shapes in s3prl's model.py."""
    head = ConversionHead(layers=13, width=768, stride=320)
    encoder = 768 * 512 + 512 + 3 * (512 * 512 * 5 + 2 * 512) + 2 * 4 * 512 * (512 + 512 + 2)
    prenet = 80 * 256 + 256 + 256 * 256 + 256
    cells = 4 * 1024 * (1280 + 1024 + 2) + 4 * 1024 * (1024 + 1024 + 2) + 2 * (1024 * 1024 + 1024)
    assert sum(p.numel() for p in head.parameters()) == 13 + encoder + prenet + cells + 1024 * 80 + 80
    assert head.stretch == 1.875


def test_a_clip_alone_and_in_a_batch_give_one_spectrogram():
    torch.manual_seed(0)
    head = ConversionHead(layers=2, width=12, stride=320, units=16, dropout=0.0).eval()
    head.recalled = lambda frames: (
        frames.new_zeros(len(frames), 256) if frames.ndim == 2 else frames.new_zeros(*frames.shape[:2], 256)
    )
    states = torch.randn(2, 20, 12)
    with torch.no_grad():
        alone, (count,) = head([states])
        mels = [torch.randn(count, 80)]
        taught, _ = head([states], mels)
    assert taught[0] == pytest.approx(alone[0], abs=1e-5)
    assert float(head.distance(alone, [count], [alone[0]])) == 0


def test_mel_cepstra_are_those_of_sptk():
    pysptk = pytest.importorskip("pysptk")
    power = np.abs(np.fft.rfft(np.random.default_rng(0).standard_normal((5, 1024)))) ** 2 + 1e-3
    assert mel_cepstra(power) == pytest.approx(pysptk.sp2mc(power, 39, 0.466), abs=1e-6)


def test_the_warping_is_the_cheapest_path():
    """By hand: of three paths through [[0, 9], [1, 0], [5, 0]], the one of cost 0 + 0 + 0."""
    path = warping(np.array([[0.0, 9.0], [1.0, 0.0], [5.0, 0.0]]))
    assert path.tolist() == [[0, 0], [1, 1], [2, 1]]


def s3prl_mcd(x: np.ndarray, y: np.ndarray) -> float:
    """The steps of s3prl's vc_evaluate.py, with its packages."""
    fastdtw, pysptk, pyworld = (pytest.importorskip(name) for name in ("fastdtw", "pysptk", "pyworld"))
    from scipy.signal import firwin, lfilter
    from scipy.spatial.distance import euclidean

    def loud(samples):
        wave = lfilter(firwin(255, 70 / 12_000, pass_zero=False), 1, samples.astype(float) * 32767)
        f0, times = pyworld.harvest(wave, MEL_RATE, f0_floor=57, f0_ceil=405, frame_period=5)
        envelope = pyworld.cheaptrick(wave, f0, times, MEL_RATE, fft_size=1024)
        power = np.array([(row[0] + row[512] + 2 * sum(row[1:512])) / 1024 for row in envelope])
        return pysptk.sp2mc(envelope, 39, 0.466)[10 * np.log10(power / power.mean()) > -20]

    one, other = loud(x), loud(y)
    path = np.array(fastdtw.fastdtw(one, other, dist=euclidean)[1])
    squares = ((one[path[:, 0]] - other[path[:, 1]]) ** 2).sum(1)
    return float(np.mean(10 / np.log(10) * np.sqrt(2 * squares)))


def test_mcd_is_that_of_s3prl():
    pytest.importorskip("pyworld")
    x, y = voice(0, 120.0, rate=MEL_RATE), voice(1, 210.0, 1.0, MEL_RATE)
    assert mcd_db(x, y) == pytest.approx(s3prl_mcd(x, y), rel=0.02)  # fastdtw is an approximation
    assert mcd_db(x, x) == pytest.approx(0, abs=1e-9)
    assert mcd_db(x, np.zeros_like(x)) is None


def test_a_voice_is_accepted_as_itself_and_silence_is_not():
    pytest.importorskip("resemblyzer")
    encoder = SpeakerEncoder()
    x = voice(0, 120.0, 2.0)
    assert encoder.accepts(x, x)
    assert not encoder.accepts(x, np.zeros(RATE, np.float32))


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """VCC 2020 as its archives are unpacked: one target and two sources."""
    root = tmp_path_factory.mktemp("VCC2020")

    def write(folder, speaker, number, pitch):
        (root / folder / speaker).mkdir(parents=True, exist_ok=True)
        wave = voice(number, pitch, rate=MEL_RATE)
        soundfile.write(root / folder / speaker / f"E{number}.wav", wave, MEL_RATE)

    for number in (*range(10001, 10009), 10061, 10062, 20001, 20002):
        write("target_task1", "TEF1", number, 220.0)
    for number in range(30001, 30004):
        write("vcc2020_database_groundtruth", "TEF1", number, 220.0)
        for speaker, pitch in (("SEF1", 180.0), ("SEM1", 110.0)):
            write("vcc2020_database_evaluation", speaker, number, pitch)
    texts = root / "vcc2020_database_transcriptions" / "transcriptions_evaluation"
    texts.mkdir(parents=True)
    lines = "".join(f"{number} the words of {number}\n" for number in range(30001, 30004))
    (texts / "vcc2020_database_evaluation_transcriptions.txt").write_text(lines)
    return root


def test_the_published_layout_is_read(published):
    train, dev, test = (vcc2020(str(published), part, "TEF1") for part in ("train", "dev", "test"))
    assert (len(train), len(dev), len(test)) == (10, 2, 6)
    assert [clip.id for clip in test[:3]] == ["SEF1_E30001", "SEF1_E30002", "SEF1_E30003"]
    assert (test[0].text, test[0].speaker) == ("the words of 30001", "SEF1")
    assert len(test[0].load(RATE)) == pytest.approx(0.8 * RATE, abs=2)
    assert np.array_equal(test[0].target(MEL_RATE), test[3].target(MEL_RATE))
    with pytest.raises(UserError, match="no target 'TFF1'"):
        vcc2020(str(published), "train", "TFF1")


def test_a_head_learns_a_voice_and_is_a_front_end(published, tmp_path, capsys):
    def train(steps):
        how = {"units": 32, "lr": 3e-3, "warmup": 5, "decay": "none", "dropout": 0.0, "eval_every": steps}
        options = srb.SuperbOptions(steps=steps, **how)
        data = srb.SuperbData(vcc=published)
        folder = tmp_path / f"vc{steps}"
        return srb.train_superb_head("conversion", "fbank", folder, data, superb_options=options, progress=False)

    before, after = train(1).best.scores.l1.value, train(60).best.scores.l1.value
    assert after < 0.75 * before
    folder = str(tmp_path / "vc60")
    assert main(["superb", "test", folder, "--vcc", str(published), "--under", "gaussian_sev4", "--json"]) == 0
    tests = json.loads(capsys.readouterr().out)
    assert list(tests) == ["as given", "gaussian_sev4"]
    assert tests["as given"]["clips"] == 6
    output = open_chain(f"superb:{folder}")(voice(5, 110.0), RATE)
    assert (output.shape, len(output) / RATE) == ((len(output),), pytest.approx(0.8, abs=0.05))
    with pytest.raises(UserError, match="speaks as TEF1"):
        srb.score_superb_head(folder, srb.SuperbData(vcc=published, target="TEM1"))


class Parrot:
    """A recogniser that always writes the same."""

    def __init__(self, text: str) -> None:
        self.text = text

    def transcribe(self, clips, rate, language):
        return [self.text for _ in clips]


@pytest.mark.parametrize(("heard", "wer", "why"), [("good morning all", 100 / 3, False), ("", 100.0, True)])
def test_the_wer_says_nothing_where_the_recogniser_is_deaf(heard, wer, why):
    clips = [VoiceClip(str(n), None, "good evening all", lambda rate: voice(0, 150.0, rate=rate)) for n in range(6)]
    test = VoiceTest(None, None, "", clips, clips, Parrot(heard))  # type: ignore[arg-type]
    score, over, reason = test._wer([clip.load(RATE) for clip in clips])
    assert (score.value, over) == (pytest.approx(wer, abs=1e-3), "6 clips")
    assert bool(reason) is why


def test_any_speaker_of_a_corpus_can_be_the_target(tmp_path):
    for speaker in (11, 22, 33):
        folder = tmp_path / "dev-clean" / str(speaker) / "1"
        folder.mkdir(parents=True)
        names = [f"{speaker}-1-{n:04d}" for n in range(10)]
        for n, name in enumerate(names):
            soundfile.write(folder / f"{name}.flac", voice(n, 9.0 * speaker), RATE)
        (folder / f"{speaker}-1.trans.txt").write_text("".join(f"{name} A WORD\n" for name in names))
    sources = srb.SuperbData(corpus={"en": tmp_path / "dev-clean"}, target="22")
    train, dev, test = sources.parts("conversion", ("train", "dev", "test"), lambda name, total: lambda n: None)
    assert (len(train), [clip.id for clip in dev]) == (9, ["22-1-0009"])
    assert [clip.speaker for clip in test[:4]] == ["11", "33", "11", "33"]
    assert (dev[0].target is None, test[0].target is None) == (False, True)
    with pytest.raises(UserError, match="the speakers are 11, 22, 33"):
        replace(sources, target="x").parts("conversion", ("train",), lambda name, total: lambda n: None)
