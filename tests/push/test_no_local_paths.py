"""Nothing that is published says where it lay: neither the corpus's folder, nor the run's, nor anybody's home."""

from __future__ import annotations

import json

import numpy as np
import pytest
import soundfile as sf
from support.built_data import make_built
from support.fake_runs import make_run

from speech_robust_bench.core.secrets import without_folders


@pytest.fixture
def corpus(tmp_path):
    """A LibriSpeech of eight clips; one is not audio, one has no transcript, and one is missing."""
    folder = tmp_path / "home of alice" / "LibriSpeech"
    chapter = folder / "test-clean" / "61" / "70968"
    chapter.mkdir(parents=True)
    rng = np.random.default_rng(0)
    names = [f"61-70968-{index:04d}" for index in range(8)]
    for name in names[:-1]:
        sf.write(chapter / f"{name}.flac", 0.1 * rng.standard_normal(4000), 16_000)
    (chapter / f"{names[0]}.flac").write_bytes(b"no audio")
    (chapter / "61-70968.trans.txt").write_text("".join(f"{name} THE CAT\n" for name in names if name != names[1]))
    return folder


def pushed(hub):
    return b"".join(
        file.data for repo in hub.repos.values() for files in repo.commits.values() for file in files.values()
    )


def test_data(hub, srb, corpus, tmp_path):
    noises = tmp_path / "home of alice" / "noises"
    noises.mkdir()
    sf.write(noises / "fan.wav", 0.1 * np.random.default_rng(1).standard_normal(8000), 16_000)
    built = tmp_path / "srb"
    words = ["--corpus", f"en={corpus}", "--on-error", "skip", "--noise-dir", noises]
    srb("build", "en_clean", "en_noise_sev1", *words, "--out", built)
    for path in built.glob("*/_manifest.json"):
        skipped = json.loads(path.read_text())["skipped"]
        assert [line.split(":")[0].rpartition("/")[2] for line in skipped] == [
            "61-70968-0007",
            "61-70968-0001.flac",
            "61-70968-0000.flac",
        ]
        assert "test-clean/61/70968/61-70968.trans.txt" in skipped[0]
    srb("push", "data", "--dataset", "acme/srb", "--data", built, "--bank-licence", "recordings in noises=CC0-1.0")
    sent = pushed(hub)
    assert b"61-70968-0000.flac" in sent
    assert b"alice" not in sent
    assert str(tmp_path).encode() not in sent


def test_a_folder_built_before_is_refused(srb, built):
    folder = built(["en_clean"])
    path = folder / "en_clean" / "_manifest.json"
    made = json.loads(path.read_text())
    path.write_text(json.dumps({**made, "skipped": ["/home/alice/corpus/a.flac: cannot be decoded"]}))
    done = srb("push", "data", "--dataset", "acme/srb", "--data", folder, code=2)
    assert "names folders of this machine" in done.stderr


def test_a_submission(hub, srb, tmp_path):
    data = make_built(tmp_path / "srb", ["en_clean", "en_noise_sev3"], clips=12)
    run = make_run(tmp_path / "runs" / "hears", data, "hears")
    about = json.loads((run / "run.json").read_text())
    about.update(data=str(data), spec=f"hf:{tmp_path}/models/hears", target=f"{tmp_path}/models/hears")
    (run / "run.json").write_text(json.dumps(about))
    hub.create("acme/results", "dataset")
    srb("submit", run, "--to", "acme/results", "--data", data)
    sent = pushed(hub)
    assert b"srb run --model hf:hears" in sent
    assert str(tmp_path).encode() not in sent


@pytest.mark.parametrize(
    ("text", "public"),
    [
        ("/home/alice/corpus/a.flac: cannot be decoded", "a.flac: cannot be decoded"),
        ("clip1: no audio (/home/alice/test.tsv, line 3)", "clip1: no audio (test.tsv, line 3)"),
        ('{"spec": "hf:/models/mine"}', '{"spec": "hf:mine"}'),
        ("https://www.openslr.org/12/ and/or corpora/a.wav", "https://www.openslr.org/12/ and/or corpora/a.wav"),
        ("1/2/3, a / b", "1/2/3, a / b"),
    ],
)
def test_folders_are_cut_and_nothing_else(text, public):
    assert without_folders(text) == public
