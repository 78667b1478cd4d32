"""Heads for enhancement and separation: loss by hand, readers, a training that helps and goes on, the front end."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile

torch = pytest.importorskip("torch")
pytest.importorskip("pystoi")
pytest.importorskip("pesq")

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.front_ends.adapter import open_chain
from speech_robust_bench.extensions.superb_sg.mask_head import MaskHead, mask_loss, spectrum
from speech_robust_bench.extensions.superb_sg.mixtures import librimix, split_dev, voicebank

RATE = 16_000


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def voice(seed: int, pitch: float, seconds: float = 0.8) -> np.ndarray:
    """Harmonics of a pitch in bursts: a little like speech."""
    rng = np.random.default_rng(seed)
    t = np.arange(int(seconds * RATE)) / RATE
    bursts = np.clip(np.sin(2 * np.pi * 3 * t + rng.uniform(0, 6)), 0, None)
    return (0.1 * bursts * sum(np.sin(2 * np.pi * pitch * k * t) / k for k in range(1, 6))).astype(np.float32)


@pytest.fixture(scope="module")
def speakers(tmp_path_factory):
    """LibriSpeech's layout with two speakers of eight clips each: a low and a high voice."""
    root = tmp_path_factory.mktemp("LibriSpeech")
    for speaker, pitch in ((11, 120.0), (22, 900.0)):
        folder = root / "dev-clean" / str(speaker) / "1"
        folder.mkdir(parents=True)
        names = [f"{speaker}-1-{n:04d}" for n in range(8)]
        for n, name in enumerate(names):
            soundfile.write(folder / f"{name}.flac", voice(n, pitch), RATE)
        (folder / f"{speaker}-1.trans.txt").write_text("".join(f"{name} A WORD\n" for name in names))
    return root / "dev-clean"


def test_the_loss_is_zero_for_the_ideal_mask_in_any_order():
    first, second = (torch.from_numpy(voice(n, pitch)) for n, pitch in ((1, 150.0), (2, 700.0)))
    mixed, signals = spectrum(first + second, 160), spectrum(torch.stack([first, second]), 160)
    phase = (signals.angle() - mixed.angle()).cos().clamp_min(0)
    ideal = signals.abs() * phase / mixed.abs().clamp_min(1e-12)
    assert float(mask_loss([ideal], [mixed], [signals])) == pytest.approx(0, abs=1e-6)
    assert float(mask_loss([ideal.flip(0)], [mixed], [signals])) == pytest.approx(0, abs=1e-6)
    nothing = torch.zeros_like(ideal)
    energy = float((signals.abs() * phase).square().sum()) / (2 * len(mixed))
    assert float(mask_loss([nothing], [mixed], [signals])) == pytest.approx(energy, rel=1e-5)


def test_the_head_has_the_size_that_the_paper_names():
    """SUPERB-SG, Table 5: 3 BLSTM layers of 896 units have 51.4 million parameters, on HuBERT Base."""
    head = MaskHead(layers=13, width=768, signals=2)
    assert sum(p.numel() for p in head.parameters()) == pytest.approx(51.4e6, rel=0.01)


def test_published_layouts_are_read(tmp_path):
    clips = {"trainset_28spk_wav": ("p226_001", "p227_001", "p228_001"), "testset_wav": ("p232_001",)}
    for part, names in clips.items():
        for kind, level in (("clean", 1.0), ("noisy", 2.0)):
            (tmp_path / f"{kind}_{part}").mkdir()
            for name in names:
                soundfile.write(tmp_path / f"{kind}_{part}" / f"{name}.wav", level * voice(0, 200.0), 48_000)
    assert [m.id for m in voicebank(str(tmp_path), "train")] == ["p227_001", "p228_001"]
    assert [m.id for m in voicebank(str(tmp_path), "dev")] == ["p226_001"]
    (test,) = voicebank(str(tmp_path), "test")
    mixed, signals = test.load(10**9)
    assert (len(mixed), signals.shape[0], test.speaker) == (pytest.approx(0.8 * RATE / 3, abs=2), 1, "p232")
    assert mixed == pytest.approx(2 * signals[0], abs=1e-3)
    base = tmp_path / "Libri2Mix" / "wav16k" / "min" / "test"
    pair = voice(1, 150.0), voice(2, 700.0)
    for kind, samples in (("mix_clean", pair[0] + pair[1]), ("s1", pair[0]), ("s2", pair[1])):
        (base / kind).mkdir(parents=True)
        soundfile.write(base / kind / "61-70968-0000_8455-210777-0012.wav", samples, RATE, subtype="FLOAT")
    (mixture,) = librimix(str(tmp_path), "test", "separation")
    mixed, signals = mixture.load(8000)
    assert (mixed.shape, signals.shape, mixture.speaker) == ((8000,), (2, 8000), "61")
    assert mixed == pytest.approx(signals.sum(0), abs=1e-6)
    with pytest.raises(UserError, match="holds no"):
        librimix(str(tmp_path), "train", "separation")


def test_the_dev_part_shares_no_speaker_where_there_are_ten():
    mixtures = [type("M", (), {"speaker": f"s{n // 3}", "id": str(n)})() for n in range(36)]
    train, dev = split_dev(mixtures)
    assert len(train) + len(dev) == 36
    assert not {m.speaker for m in train} & {m.speaker for m in dev}


def train(task: str, corpus, out, steps: int):
    options = srb.SuperbOptions(steps=steps, batch_size=6, units=24, lr=1e-2, dropout=0.0, eval_every=steps)
    data = srb.SuperbData(corpus={"en": corpus}, scenarios=["gaussian"])
    return srb.train_superb_head(task, "fbank", out, data, superb_options=options, progress=False)


def test_separation_learns_and_the_head_is_a_front_end(speakers, tmp_path, capsys):
    untrained = train("separation", speakers, tmp_path / "untrained", 1)
    trained = train("separation", speakers, tmp_path / "trained", 60)
    assert trained.best.scores.si_sdri_db.value > untrained.best.scores.si_sdri_db.value + 3
    assert trained.best.scores.si_sdri_db.value > 3
    outputs = open_chain(f"superb:{tmp_path / 'trained'}")(voice(1, 120.0) + voice(9, 900.0), RATE)
    assert outputs.shape == (2, int(0.8 * RATE))
    words = ["superb", "test", str(tmp_path / "trained"), "--corpus", f"en={speakers}", "--limit", "6", "--json"]
    assert main(words) == 0
    scores = json.loads(capsys.readouterr().out)["as given"]
    assert (scores["clips"], scores["si_sdri_db"]["interval"]) == (6, None)  # one speaker has no interval


def test_enhancement_learns_and_goes_on_after_an_interruption(speakers, tmp_path, monkeypatch):
    from speech_robust_bench.extensions.superb_sg.mask_training import MaskTraining

    def scored(folder):
        return train("enhancement", speakers, folder, 30).best.scores

    whole = scored(tmp_path / "whole")
    assert whole.si_sdri_db.value > 1  # dB better than the noisy clips
    take_step = MaskTraining._step
    with monkeypatch.context() as patched:  # a kill after the first checkpoint
        patched.setattr(MaskTraining, "_step", lambda self: 1 / (self.done < 12) and take_step(self))
        patched.setattr(MaskTraining, "run", halting(MaskTraining.run))
        with pytest.raises(ZeroDivisionError):
            scored(tmp_path / "halted")
    assert (tmp_path / "halted" / "checkpoint.pt").is_file()
    assert scored(tmp_path / "halted") == whole
    with pytest.raises(UserError, match="is no trained head"):
        srb.score_superb_head(tmp_path, srb.SuperbData(corpus={"en": speakers}))


def halting(run):
    """A training that saves a checkpoint every ten steps, as one with earlier tests would."""

    def run_with_checkpoints(self, progress, say):
        take = self._step

        def step():
            loss = take()
            if self.done % 10 == 0:
                self._save()
            return loss

        self._step = step
        return run(self, progress, say)

    return run_with_checkpoints


def test_one_place_of_data_is_asked_for(tmp_path, capsys):
    assert main(["superb", "train", "separation", "--upstream", "fbank", "--out", str(tmp_path / "x")]) == 2
    assert "one of --librimix, --corpus" in capsys.readouterr().err
    words = ["superb", "train", "separation", "--upstream", "fbank", "--out", str(tmp_path / "x"), "--voicebank", "v"]
    assert main(words) == 2
    assert "one of --librimix, --corpus" in capsys.readouterr().err
