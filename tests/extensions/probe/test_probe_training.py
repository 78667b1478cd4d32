"""Probes: the head is the paper's, training repeats and resumes to the same weights, and a probe is a recogniser."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
import soundfile
from rapidfuzz.distance import Levenshtein
from safetensors.torch import load_file
from support.small_models import moonshine_folder

import speech_robust_bench as api
from speech_robust_bench.cli.main import main as srb
from speech_robust_bench.extensions.probe.head import (
    Head,
    Letters,
    spec_augment,
)
from speech_robust_bench.extensions.probe.probe_file import WEIGHTS, read_probe, read_weights
from speech_robust_bench.extensions.probe.training import batch_of_step
from speech_robust_bench.extensions.probe.upstream import open_upstream
from speech_robust_bench.models.interface import open_model

RATE = 16_000
# after the first test on the dev set, and between two
KILLED_AT_STEP_25 = """
import os, signal, sys, torch
from speech_robust_bench.cli.main import main
from speech_robust_bench.extensions.probe.training import Training
torch.set_num_threads(1)
save = Training.save
def save_and_die(self):
    save(self)
    if self.done == 25:
        os.kill(os.getpid(), signal.SIGKILL)
Training.save = save_and_die
main(sys.argv[1:])
"""
PITCHES = {"a": 400, "b": 900, "c": 1700, "d": 2900}


def tones(text: str) -> np.ndarray:
    """A language in which a letter is 80 ms of its own pitch, and a space silence."""
    t = np.arange(1280) / RATE
    parts = [0.3 * np.sin(2 * np.pi * PITCHES[c] * t) * np.hanning(1280) if c != " " else 0 * t for c in text]
    return np.concatenate(parts).astype(np.float32)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """More cost much where cores are shared, and sums in another order are other weights."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    """Clips of two or three words of tones, as a plain folder."""
    folder = tmp_path_factory.mktemp("tones")
    rng = np.random.default_rng(0)
    for n in range(60):
        text = " ".join("".join(rng.permutation(list("abcd"))[: rng.integers(2, 5)]) for _ in range(rng.integers(2, 4)))
        soundfile.write(folder / f"clip{n:02d}.wav", tones(text), RATE)
        (folder / f"clip{n:02d}.txt").write_text(text)
    return folder


@pytest.fixture(scope="module")
def wav2vec2(tmp_path_factory) -> Path:
    """A small wav2vec 2.0 with random weights, whose features do not move with padding."""
    place = tmp_path_factory.mktemp("wav2vec2")
    torch.manual_seed(1)
    transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=True).save_pretrained(place)
    config = transformers.Wav2Vec2Config(
        hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64, num_feat_extract_layers=2,
        num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, conv_dim=(16, 16), conv_kernel=(400, 3),
        conv_stride=(320, 1), feat_extract_norm="layer", do_stable_layer_norm=True,
    )  # fmt: skip
    transformers.Wav2Vec2Model(config).save_pretrained(place)
    return place


def command(corpus: Path, out: Path, upstream: str = "fbank", *more: str) -> list[str]:
    given = ["probe", "train", "--upstream", upstream, "--corpus", f"en-tones={corpus}", "--out", str(out), "--quiet"]
    sizes = ["--head", "small", "--units", "16", "--lr", "0.01", "--batch-size", "8", "--no-spec-augment"]
    return [*given, *sizes, "--steps", "60", "--eval-every", "20", "--save-every", "5", *more]


@pytest.fixture(scope="module")
def trained(corpus, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("probes") / "fbank"
    assert srb(command(corpus, out)) == 0
    return out


@pytest.mark.parametrize(("size", "millions"), [("small", 24.1), ("medium", 53.4), ("large", 112.2)])
def test_the_heads_have_the_sizes_of_the_papers_table_5(size, millions):
    """TERA is 768 wide; what depends on the alphabet, whose mean size the paper does not print, is taken off."""
    with torch.device("meta"):
        parameters = [sum(p.numel() for p in Head(s, 4, 768, 2, stride=160).parameters()) for s in ("medium", size)]
    medium, this = parameters
    assert (this - medium) / 1e6 == pytest.approx(millions - 53.4, abs=0.1)
    assert medium / 1e6 == pytest.approx(53.4, rel=0.05)


def test_layers_are_weighed_by_a_softmax_that_starts_even():
    head = Head("linear", 3, 4, 5, stride=320)
    states = torch.arange(24.0).reshape(3, 2, 4)
    assert torch.allclose(head.mixed(states), states.mean(0))
    head.layer_logits.data = torch.tensor([0.0, 100.0, 0.0])
    assert torch.allclose(head.mixed(states), states[1])


def test_frames_of_10_ms_are_thinned_to_20():
    head = Head("linear", 1, 4, 5, stride=160)
    logits, frames = head([torch.zeros(1, 7, 4), torch.zeros(1, 4, 4)])
    assert frames.tolist() == [4, 2]
    assert logits.shape == (2, 4, 5)


def test_spec_augment_masks_no_more_than_it_may():
    torch.manual_seed(0)
    for _ in range(20):
        masked = spec_augment(torch.ones(300, 256) + 0.5)
        assert masked.shape == (300, 256)
        empty = masked == 0
        assert empty.all(1).sum() <= 2 * 39
        assert empty.all(0).sum() <= 4 * 49
    assert empty.any()


def test_greedy_decoding_merges_repeats_before_it_drops_blanks():
    letters = Letters(" helo")
    numbers = letters.encode("hello")
    with_blank = [numbers[0], numbers[0], numbers[1], numbers[2], 0, numbers[3], numbers[4], numbers[4], 0]
    assert letters.decode(with_blank) == "hello"
    assert letters.decode([]) == ""
    assert letters.encode("hexlo") == letters.encode("helo")


def test_every_batch_comes_once_an_epoch_in_another_order():
    epochs = [[batch_of_step(epoch * 7 + n, 7, seed=3) for n in range(7)] for epoch in range(3)]
    for number, steps in enumerate(epochs):
        assert [epoch for epoch, _ in steps] == [number] * 7
        assert sorted(batch for _, batch in steps) == list(range(7))
    assert epochs[0] != [(0, batch) for _, batch in epochs[1]]


def test_the_filter_bank_puts_a_tone_where_it_belongs():
    states = open_upstream("fbank").states([np.concatenate([tones("a" * 10), tones("d" * 10)])])[0][0]
    assert states.shape[1] == 240
    strongest = [int(part[:, :80].mean(0).argmax()) for part in (states[10:60], states[100:150])]
    assert strongest[0] < strongest[1]
    assert torch.allclose(states.mean(0), torch.zeros(240), atol=1e-4)


def test_a_probe_learns_and_transcribes(trained, corpus):
    probe = read_probe(trained)
    first, best = probe.evaluations[0]["dev_wer"], probe.dev_wer
    assert best < 30 < first + 40
    model = open_model(f"probe:{trained}")
    (text,) = model.transcribe([tones("abc cd")], RATE, "en")
    assert Levenshtein.distance(text, "abc cd") <= 2  # another processor may round its way to other weights
    assert sum(probe.layer_weights) == pytest.approx(1)
    assert probe.data["clips"] + probe.data["dev_clips"] == 60


def test_a_clip_gives_the_same_alone_and_in_a_batch(trained):
    model = open_model(f"probe:{trained}?batch_size=4")
    clips = [tones("abc cd"), tones("da"), tones("cb bad " * 60)]
    together = model.transcribe(clips, RATE, "en")
    assert together == [model.transcribe([clip], RATE, "en")[0] for clip in clips]
    assert len(together[2].split()) >= 100  # 33 s: more than the encoder takes at a time


def test_a_resumed_training_ends_with_the_same_weights(trained, corpus, tmp_path):
    out = tmp_path / "killed"
    process = subprocess.run([sys.executable, "-c", KILLED_AT_STEP_25, *command(corpus, out)], check=False)
    assert process.returncode == -signal.SIGKILL
    assert not (out / "probe.json").is_file()
    assert torch.load(out / "checkpoint.pt", weights_only=True)["done"] == 25
    assert srb(command(corpus, out)) == 0
    before, after = read_weights(trained), read_weights(out)
    assert all(torch.equal(before[name], after[name]) for name in before)
    assert read_probe(out).evaluations == read_probe(trained).evaluations
    assert not (out / "checkpoint.pt").exists()


def test_a_finished_probe_is_kept_and_other_settings_refused(trained, corpus, capsys):
    stamp = (trained / WEIGHTS).stat().st_mtime_ns
    assert srb(command(corpus, trained)) == 0
    assert (trained / WEIGHTS).stat().st_mtime_ns == stamp
    assert srb([*command(corpus, trained), "--lr", "0.02"]) == 2
    assert "lr 0.01, now 0.02" in capsys.readouterr().err


def test_an_unfinished_or_damaged_probe_is_one_line(trained, corpus, tmp_path, capsys):
    from speech_robust_bench.core.errors import UserError

    for folder, word in ((tmp_path, "is no trained probe"), (trained, None)):
        if word:
            with pytest.raises(UserError, match=word):
                open_model(f"probe:{folder}")
    broken = tmp_path / "broken"
    broken.mkdir()
    about = json.loads((trained / "probe.json").read_text())
    (broken / "probe.json").write_text(json.dumps({**about, "letters": about["letters"] + "z"}))
    (broken / WEIGHTS).write_bytes((trained / WEIGHTS).read_bytes())
    with pytest.raises(UserError, match="do not fit"):
        open_model(f"probe:{broken}")
    (broken / WEIGHTS).write_bytes(b"x" * 100)
    with pytest.raises(UserError, match="cannot be read"):
        open_model(f"probe:{broken}")
    (broken / "probe.json").write_text('{"format": 1, "upstream": 3}')
    with pytest.raises(UserError, match="not a probe's record"):
        open_model(f"probe:{broken}")


def test_it_stops_when_the_dev_set_gets_no_better(corpus, tmp_path):
    out = tmp_path / "stopped"
    assert srb([*command(corpus, out), "--lr", "1e-9", "--eval-every", "2", "--patience", "2"]) == 0
    assert read_probe(out).steps_done == 6
    assert read_probe(out).best["step"] == 2


@pytest.mark.parametrize("kind", ["wav2vec2", "moonshine", "random"])
def test_encoders_of_transformers(kind, wav2vec2, corpus, tmp_path):
    place = tmp_path / "model"
    place.mkdir()
    upstream = f"hf:{moonshine_folder(place) if kind == 'moonshine' else wav2vec2}"
    upstream = upstream.replace("hf:", "random:") if kind == "random" else upstream
    out = tmp_path / "probe"
    assert srb([*command(corpus, out, upstream), "--steps", "4", "--eval-every", "2"]) == 0
    record = read_probe(out)
    assert record.about["upstream"]["layers"] == (2 if kind == "moonshine" else 3)
    assert len(record.layer_weights) == record.about["upstream"]["layers"]
    model = open_model(f"probe:{out}")
    clips = [tones("abc cd"), tones("da da da")]
    assert model.transcribe(clips, RATE, "en") == [model.transcribe([clip], RATE, "en")[0] for clip in clips]
    assert model.options["pads_safely"] is (kind != "moonshine")


def test_features_are_kept_on_the_disk_only_if_asked(wav2vec2, corpus, tmp_path):
    quick = ["--steps", "4", "--eval-every", "4"]
    assert srb([*command(corpus, tmp_path / "plain", f"hf:{wav2vec2}"), *quick]) == 0
    cached = [*command(corpus, tmp_path / "cached", f"hf:{wav2vec2}"), *quick, "--cache-features", str(tmp_path / "f")]
    assert srb(cached) == 0
    kept = list((tmp_path / "f").glob("*.npy"))
    assert kept
    plain, again = read_weights(tmp_path / "plain"), read_weights(tmp_path / "cached")
    assert all(torch.equal(plain[name], again[name]) for name in plain)


def test_training_draws_what_random_perturb_draws(corpus, tmp_path):
    import speech_robust_bench as api
    from speech_robust_bench.builders.apply import RandomScenarios
    from speech_robust_bench.extensions.probe.training import Augmentation, read_clips

    _, clips = read_clips({("en", "tones"): str(corpus)}, 30, lambda what, total: lambda n: None)
    augmentation = Augmentation(RandomScenarios.named(["sfx", "gaussian"], without=["pitch_up"]), p=0.7, seed=5)
    names = [row.name for row in augmentation.scenarios.rows]
    transform = api.RandomPerturb(names, p=0.7, seed=5)
    transform.set_epoch(2)
    changed = 0
    for clip in clips[:8]:
        samples = clip.listed.load()
        example = {"audio": {"array": samples, "sampling_rate": RATE}, "corpus": clip.corpus, "id": clip.id}
        theirs = transform(example)["audio"]["array"]
        ours = augmentation(clip, samples, 2)
        assert np.array_equal(ours, theirs)
        changed += not np.array_equal(ours, samples)
    assert 0 < changed < 8
    out = tmp_path / "probe"
    how = ["--train-augment", "sfx", "gaussian", "--held-out", "pitch_up", "--steps", "2", "--eval-every", "2"]
    assert srb([*command(corpus, out), *how]) == 0
    record = read_probe(out).about["augment"]
    assert record["scenarios"] == names
    assert {"pitch_up", "noise"} <= set(record["held_out"])
    assert not set(record["held_out"]) & set(names)
    assert open_model(f"probe:{out}").options["train_augment"] == names


def test_smaller_sets_are_parts_of_larger_ones(corpus):
    from speech_robust_bench.extensions.probe.training import first_hours, read_clips, split_dev

    _, clips = read_clips({("en", "tones"): str(corpus)}, 30, lambda what, total: lambda n: None)
    train, dev = split_dev(clips)
    assert len(train) + len(dev) == 60
    assert 1 <= len(dev) <= 15
    some, more = (first_hours(train, seconds / 3600) for seconds in (10, 30))
    assert {clip.id for clip in some} < {clip.id for clip in more}
    assert sum(clip.seconds for clip in more) <= 30


def test_layers_and_ranks_are_printed(trained, corpus, tmp_path, capsys):
    assert srb(["probe", "layers", str(trained), "--out", str(tmp_path / "layers.svg")]) == 0
    assert "layer  0  1.0000" in capsys.readouterr().out
    assert "<svg" in (tmp_path / "layers.svg").read_text()
    about = json.loads((trained / "probe.json").read_text())
    wers = {("medium", None): (30, 20, 10), ("small", None): (33, 22, 11), ("medium", 1.0): (50, 60, 40)}
    folders = []
    for (head, hours), row in wers.items():
        for name, wer in zip(("x/one", "x/two", "x/three"), row, strict=True):
            folder = tmp_path / f"{head}-{hours}-{Path(name).name}"
            folder.mkdir()
            changed = {
                **about,
                "upstream": {**about["upstream"], "spec": f"hf:{name}"},
                "head": {**about["head"], "size": head},
                "data": {**about["data"], "hours_asked": hours},
                "best": {"step": 1, "dev_wer": wer},
            }
            (folder / "probe.json").write_text(json.dumps(changed))
            folders.append(str(folder))
    assert srb(["probe", "rank", *folders, "--json"]) == 0
    settings = json.loads(capsys.readouterr().out)["settings"]
    assert [(row["head"], row["hours"], row["spearman"]) for row in settings] == [
        ("medium", None, pytest.approx(1)),
        ("medium", 1.0, pytest.approx(0.5)),
        ("small", None, pytest.approx(1)),
    ]
    assert srb(["probe", "rank", *folders]) == 0
    assert "Spearman 0.500" in capsys.readouterr().out


QUICK = api.ProbeOptions(units=8, lr=0.01, batch_size=8, spec_augment=False, steps=4, eval_every=2)


def test_training_from_python_equals_the_command(corpus, tmp_path):
    how = {"head": "small", "progress": False, "probe_options": QUICK}
    about = api.train_probe("fbank", {"en-tones": corpus}, tmp_path / "api", **how)
    assert about["best"]["step"] in (2, 4)
    assert about["head"]["size"] == "small"
    given = ["probe", "train", "--upstream", "fbank", "--corpus", f"en-tones={corpus}", "--out", str(tmp_path / "cli")]
    sizes = ["--head", "small", "--units", "8", "--lr", "0.01", "--batch-size", "8", "--no-spec-augment"]
    assert srb([*given, *sizes, "--steps", "4", "--eval-every", "2", "--quiet"]) == 0
    heads = [load_file(tmp_path / name / "head.safetensors") for name in ("api", "cli")]
    assert all(torch.equal(heads[0][name], heads[1][name]) for name in heads[0])
    results = api.evaluate(
        f"probe:{tmp_path / 'api'}", "en-tones_clean", corpus={"en-tones": corpus}, limit=2, progress=False
    )
    assert results.json["configs"]["en-tones_clean"]["utterances"] == 2


def test_an_ablation_trains_and_ranks_every_encoder(wav2vec2, corpus, tmp_path, capsys):
    upstreams = ["fbank", f"hf:{wav2vec2}", f"random:{wav2vec2}"]
    how = {"heads": ["linear", "small"], "hours": [0.005], "probe_options": QUICK}
    ranks = api.ablate_probes(upstreams, {"en-tones": corpus}, tmp_path / "probes", progress=False, **how)
    rows = ranks["settings"]
    assert [(row["head"], row["hours"]) for row in rows] == [("linear", None), ("small", None), ("linear", 0.005)]
    assert all(len(row["wer"]) == 3 for row in rows)
    capsys.readouterr()
    sizes = [
        "--units",
        "8",
        "--lr",
        "0.01",
        "--batch-size",
        "8",
        "--no-spec-augment",
        "--steps",
        "4",
        "--eval-every",
        "2",
    ]
    given = ["--corpus", f"en-tones={corpus}", "--out", str(tmp_path / "probes"), "--head", "linear", "small"]
    command = ["probe", "ablate", "--upstream", *upstreams, *given, "--hours", "0.005", *sizes, "--quiet", "--json"]
    assert srb(command) == 0  # all are there already
    assert json.loads(capsys.readouterr().out) == ranks
    assert srb([*command, "--head", "linear", "linear"]) == 2
    assert "each encoder, head and number of hours once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("more", "word"),
    [
        (["--upstream", "hubert"], "no upstream"),
        (["--upstream", "hf:/nowhere/at/all"], "hf:/nowhere/at/all"),
        (["--head", "huge"], "no head 'huge'"),
        (["--hours", "0"], "hours must be above 0"),
        (["--steps", "0"], "--steps must be 1 or more"),
        (["--corpus", "es-other=."], "one language"),
        (["--held-out", "noise"], "name what to train on"),
        (["--train-augment", "nois"], "noise"),
    ],
)
def test_a_mistake_is_one_line(more, word, corpus, tmp_path, capsys):
    assert srb([*command(corpus, tmp_path / "x"), *more]) == 2
    error = capsys.readouterr().err.strip()
    assert word in error
    assert len(error.splitlines()) == 1
