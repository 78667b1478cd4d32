"""Two talkers at once: the level, who the second one is, both transcripts in the row, and the same clips everywhere."""

import csv
import json

import numpy as np
import pytest
import soundfile

import speech_robust_bench as srb
from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.corpora.base import FileAudio, Utterance
from speech_robust_bench.builders.plan import plan
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng
from speech_robust_bench.extensions.two_talkers.mixing import SecondTalkers, overlap

SOURCES = {("en", "demo"): None, ("es", "demo"): None}


def power_db(samples):
    return 10 * np.log10(np.mean(np.square(samples, dtype=np.float64)))


@pytest.mark.parametrize("sir_db", [10, 0, -5])
def test_the_second_clip_is_added_whole_at_the_ratio(sir_db):
    rng = np.random.default_rng(0)
    long, short = (rng.normal(0, level, size).astype(np.float32) for level, size in ((0.02, 3000), (0.3, 2000)))
    for first, second in ((long, short), (short, long)):
        mixed = overlap(first, second, sir_db)
        assert len(mixed) == 3000
        added = mixed - np.pad(first, (0, 3000 - len(first)))
        assert power_db(first) - power_db(added[: len(second)]) == pytest.approx(sir_db, abs=0.01)
        assert np.corrcoef(added[: len(second)], second)[0, 1] > 0.9999
    silence = np.zeros(10, np.float32)
    assert np.array_equal(overlap(silence, short, sir_db), short)


def utterance(clip_id, speaker=None):
    return Utterance(clip_id, FileAudio("x.wav"), clip_id, "en", speaker=speaker, corpus="tiny")


def drawn(item, corpus, severity=1):
    return SecondTalkers(corpus).draw(item, clip_rng("tiny", item.id, "overlap", severity))


def test_the_second_talker_is_another_speaker():
    named = [
        utterance(f"{speaker}-{n}", speaker) for speaker, count in (("a", 7), ("b", 1), ("c", 3)) for n in range(count)
    ]
    unnamed = [utterance(f"u-{n}") for n in range(3)]
    seconds = [(item, drawn(item, named + unnamed, severity)) for item in named for severity in range(1, 20)]
    assert all(second.speaker not in (None, item.speaker) for item, second in seconds)
    assert {second.id for item, second in seconds if item.speaker == "a"} == {"b-0", "c-0", "c-1", "c-2"}
    assert all(drawn(item, named + unnamed).id != item.id for item in unnamed)
    one_speaker = [utterance(f"a-{n}", "a") for n in range(3)]
    assert {drawn(one_speaker[1], one_speaker, severity).id for severity in range(1, 30)} == {"a-0", "a-2"}
    assert drawn(named[0], named[::-1]) == drawn(named[0], named)  # whatever order they are listed in
    with pytest.raises(UserError, match="needs a second clip, and the corpus has only 'a-0'"):
        drawn(one_speaker[0], one_speaker[:1])


def test_only_a_pattern_that_says_so_means_overlap():
    assert not [job for job in plan(["en-demo_*"], SOURCES) if "overlap" in str(job.name)]
    names = [str(job.name) for job in plan(["*_overlap_*"], SOURCES)]
    assert names == [f"{language}-demo_overlap_sev{n}" for language in ("en", "es") for n in (1, 2, 3, 4)]


def test_built_and_loaded_rows_have_both_transcripts(tmp_path):
    config = "en-demo_overlap_sev3"
    clean = {row["id"]: row for row in srb.load("en-demo_clean")}
    rows = list(srb.load(config, limit=3))
    for row in rows:
        second = clean[json.loads(row["parameters"])["second"]]
        assert row["text"] == f"{clean[row['id']]['text']} <sc> {second['text']}"
        assert row["speaker"] != second["speaker"]
        clips = [clean[row["id"]]["audio"]["array"], second["audio"]["array"]]
        assert len(row["audio"]["array"]) == max(map(len, clips))
        again = srb.perturb(clips[0], RATE, "overlap", severity=3, second=clips[1])
        assert np.array_equal(again.samples, row["audio"]["array"])
    out = tmp_path / "srb"
    assert main(["build", config, "--corpus", "en-demo", "--limit", "3", "--out", str(out), "--workers", "1"]) == 0
    stored = open_data(str(out)).config(config)
    hashes = [row["sha256"] for group in stored.groups for row in group.read(["sha256"]).to_pylist()]
    assert hashes == [row["sha256"] for row in rows]
    assert main(["check", "--data", str(out)]) == 0
    results = srb.evaluate(lambda clips, *_: ["so"] * len(clips), [config], limit=3, progress=False)
    entry = results.json["configs"][config]
    assert entry["content_sha256"] == stored.manifest.content_sha256
    assert entry["measures"]["overlap"]["two_texts"] == 0
    assert entry["wer"]["value"] >= entry["measures"]["overlap"]["best_wer"]["value"]


def test_clips_without_a_transcript_have_none_of_both(tmp_path):
    rng = np.random.default_rng(0)
    with (tmp_path / "manifest.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["file", "text", "speaker"])
        for name, text in (("a", "so it is"), ("b", "")):
            soundfile.write(tmp_path / f"{name}.wav", rng.normal(0, 0.1, RATE), RATE)
            rows.writerow([f"{name}.wav", text, name])
    rows = list(srb.load("en-mine_overlap_sev1", {"en-mine": tmp_path}))
    assert [row["text"] for row in rows] == [None, None]


def test_the_command_mixes_two_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    for name in ("a", "b"):
        soundfile.write(tmp_path / f"{name}.wav", rng.normal(0, 0.1, RATE), RATE)
    files = [str(tmp_path / "a.wav"), str(tmp_path / "o.flac")]
    chosen = ["--scenario", "overlap", "--severity", "4"]
    assert main(["perturb", *files, *chosen, "--second", str(tmp_path / "b.wav")]) == 0
    assert "sir_db -5" in capsys.readouterr().out
    assert main(["perturb", *files, *chosen]) == 2
    assert "needs a second clip" in capsys.readouterr().err
    assert main(["perturb", *files, "--scenario", "telephone", "--second", str(tmp_path / "b.wav")]) == 2
    assert "takes no second clip" in capsys.readouterr().err
    with pytest.raises(UserError, match="takes no second clip"):
        srb.perturb(np.zeros(10), RATE, "telephone", second=np.zeros(10))
