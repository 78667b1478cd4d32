"""`srb.Perturb` and `srb.RandomPerturb` inside audiomentations, `datasets` and a torch data loader."""

import pickle

import numpy as np
import pytest
from support.speech import RATE

import speech_robust_bench as srb
from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.errors import UserError


@pytest.fixture(scope="module")
def clips() -> list[np.ndarray]:
    return [item.load() for item in open_corpus(None, "en", "demo").utterances[:6]]


def examples() -> list[dict]:
    items = open_corpus(None, "en", "demo").utterances[:6]
    return [
        {"id": item.id, "corpus": item.corpus, "audio": {"array": item.load(), "sampling_rate": RATE, "path": None}}
        for item in items
    ]


def test_it_keeps_the_rate_and_the_shape(clips):
    augment = srb.Perturb("gain", 1)
    assert augment(samples=clips[0], sample_rate=8000).shape == clips[0].shape
    stereo = np.stack([clips[0], -clips[0]])
    made = augment(stereo, RATE)
    assert made.shape == stereo.shape
    assert np.array_equal(made[0], augment(clips[0], RATE))
    assert augment(stereo.T, RATE).shape == stereo.T.shape


def test_at_p_0_nothing_happens_and_at_p_half_about_half(clips):
    assert srb.Perturb("gain", 4, p=0)(clips[0], RATE) is clips[0]
    noises = [np.random.Generator(np.random.PCG64(i)).normal(0, 0.1, 800).astype(np.float32) for i in range(200)]
    augment = srb.Perturb("gain", 4, p=0.5)
    touched = sum(augment(noise, RATE) is not noise for noise in noises)
    assert 70 <= touched <= 130  # four standard deviations


def test_the_draw_is_the_clips_own_and_another_in_another_epoch(clips):
    augment = srb.RandomPerturb(seed=7)
    first = [augment(clip, RATE) for clip in clips]
    again = [pickle.loads(pickle.dumps(augment))(clip, RATE) for clip in reversed(clips)]
    assert all(np.array_equal(a, b) for a, b in zip(first, reversed(again), strict=True))
    augment.set_epoch(1)
    later = [augment(clip, RATE) for clip in clips]
    assert not any(np.array_equal(a, b) for a, b in zip(first, later, strict=True))


def test_random_severities_lie_between_those_of_the_table(clips):
    augment = srb.RandomPerturb(["noise_white", "rir"], severity=(2, 3))
    drawn = []
    for epoch in range(40):
        augment.set_epoch(epoch)
        augment(clips[0][:800], RATE)
        drawn.append(augment.serialize_parameters())
    white = [draw["snr_db"] for draw in drawn if draw["scenario"] == "gaussian"]
    assert all(10 <= snr_db <= 20 for snr_db in white)
    assert len(set(white)) > 10
    assert {draw["severity"] for draw in drawn if draw["scenario"] == "rir"} == {2, 3}


def test_inside_compose(clips):
    audiomentations = pytest.importorskip("audiomentations")
    alone = srb.Perturb("echo", 2)
    chain = audiomentations.Compose([srb.Perturb("echo", 2), audiomentations.Gain(-6, -6, p=1.0)])
    made = chain(samples=clips[0], sample_rate=RATE)
    assert made == pytest.approx(alone(clips[0], RATE) * 10 ** (-6 / 20), abs=1e-6)
    assert "Perturb('echo', severity=2" in repr(chain)


def test_frozen_it_goes_on_with_the_last_draw(clips):
    audiomentations = pytest.importorskip("audiomentations")
    chain = audiomentations.Compose([srb.RandomPerturb("noise_env", seed=1)])
    chain(samples=clips[0], sample_rate=RATE)
    kept = chain.transforms[0].serialize_parameters()
    chain.freeze_parameters()
    for clip in clips[1:]:
        chain(samples=clip, sample_rate=RATE)
        assert chain.transforms[0].serialize_parameters() == kept


def test_with_the_clean_configs_ids_it_gives_the_perturbed_config(clips):
    augment = srb.Perturb("noise", 3)
    for example in examples():
        wanted = srb.perturb(example["audio"]["array"], RATE, "noise", 3, corpus="demo", id=example["id"])
        assert np.array_equal(augment(example)["audio"]["array"], wanted.samples)


def test_set_transform_map_and_files(tmp_path):
    datasets = pytest.importorskip("datasets")
    import soundfile

    rows = examples()
    for row in rows:
        soundfile.write(tmp_path / f"{row['id']}.wav", to_pcm16(row["audio"]["array"]), RATE)
    paths = [{**row, "audio": {"path": str(tmp_path / f"{row['id']}.wav"), "bytes": None}} for row in rows]
    augment = srb.Perturb("noise", 3)
    wanted = [augment(row)["audio"]["array"] for row in paths]
    dataset = datasets.Dataset.from_list(paths)
    dataset.set_transform(augment)
    batch = dataset[1:3]["audio"]
    assert [np.array_equal(a["array"], b) for a, b in zip(batch, wanted[1:3], strict=True)] == [True, True]
    assert np.array_equal(dataset[4]["audio"]["array"], wanted[4])
    streamed = datasets.IterableDataset.from_generator(lambda: iter(paths)).map(augment)
    made = [np.asarray(row["audio"]["array"], np.float32) for row in streamed]
    assert all(np.array_equal(a, b) for a, b in zip(made, wanted, strict=True))


class Clips:
    """A dataset for torch's data loader."""

    def __init__(self, clips, augment):
        self.clips, self.augment = clips, augment

    def __len__(self):
        return len(self.clips)

    def __getitem__(self, index):
        return self.augment(samples=self.clips[index], sample_rate=RATE)


def test_a_data_loader_gives_the_same_with_any_number_of_workers(clips):
    torch = pytest.importorskip("torch")
    made = []
    for workers in (0, 2):
        data = Clips(clips, srb.RandomPerturb(["sfx", "noise_env"], seed=3))
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=workers)
        made.append([np.asarray(samples) for samples in loader])
    assert all(np.array_equal(a, b) for a, b in zip(*made, strict=True))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: srb.Perturb("noise"), "needs a severity"),
        (lambda: srb.Perturb("noise", 3, p=1.5), "probability"),
        (lambda: srb.RandomPerturb(["nosie"]), "did you mean noise"),
        (lambda: srb.RandomPerturb(["tts"]), "none of tts"),
        (lambda: srb.RandomPerturb(severity=(3, 1)), "least"),
        (lambda: srb.Perturb("gain", 1)(np.zeros(9)), "sample_rate is missing"),
        (lambda: srb.Perturb("gain", 1)({"sound": 1}), "no column 'audio'"),
        (lambda: srb.Perturb("gain", 1)({"audio": {"path": None}}), "neither an array"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(make, said):
    with pytest.raises(ValueError, match=said):
        make()


def test_scenarios_without_their_package_are_refused_at_once(monkeypatch):
    monkeypatch.setattr("speech_robust_bench.builders.scenario._installed", lambda package: package != "av")
    with pytest.raises(UserError, match="scenario 'amr' needs av"):
        srb.RandomPerturb(["gsm", "amr"])
    assert "amr" not in srb.RandomPerturb(["codec"]).scenarios
