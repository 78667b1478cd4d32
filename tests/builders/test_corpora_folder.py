"""A user's own recordings: audio with .txt files, manifests, and everything that can be wrong with them."""

import json
import pickle

import numpy as np
import pytest
import soundfile
from support.speech import RATE

from speech_robust_bench.builders.corpora import Problem, as_sources, open_corpus
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import named_paths


def tone(path, seconds=0.5, rate=16_000, channels=1):
    path.parent.mkdir(parents=True, exist_ok=True)
    wave = 0.5 * np.sin(np.arange(round(seconds * rate)) * 440 * 2 * np.pi / rate)
    soundfile.write(path, np.column_stack([wave] * channels), rate)
    return path


def test_audio_with_txt_files(tmp_path):
    tone(tmp_path / "a" / "one.wav", rate=8_000)
    (tmp_path / "a" / "one.txt").write_text("Hello\nthere.\n")
    tone(tmp_path / "two.flac", channels=2)
    (tmp_path / "two.txt").write_text("Good night.")
    corpus = open_corpus(tmp_path, "en", "mine")
    assert [(clip.id, clip.text, clip.corpus, clip.language) for clip in corpus] == [
        ("a/one", "Hello there.", "mine", "en"),
        ("two", "Good night.", "mine", "en"),
    ]
    assert [clip.load().shape for clip in corpus] == [(8_000,), (8_000,)]
    assert not corpus.problems
    assert not corpus.derivatives_allowed  # nobody knows its terms


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
def test_a_manifest(tmp_path, suffix):
    tone(tmp_path / "clips" / "x.wav", 2.0)
    rows = [
        {"path": "clips/x.wav", "sentence": 'She said "no".', "client_id": "s1", "gender": "F", "id": "b"},
        {"path": "clips/x.wav", "sentence": "Yes.", "client_id": "s2", "gender": "", "id": "a"},
    ]
    manifest = tmp_path / f"list{suffix}"
    if suffix == ".jsonl":
        manifest.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif suffix == ".csv":
        manifest.write_text(
            'path,sentence,client_id,gender,id\nclips/x.wav,"She said ""no"".",s1,F,b\nclips/x.wav,Yes.,s2,,a\n'
        )
    else:
        lines = [list(rows[0]), *(row.values() for row in rows)]
        manifest.write_text("".join("\t".join(line) + "\n" for line in lines))
    for source in (tmp_path, manifest):
        clips = open_corpus(source, "en", "mine").utterances
        assert [(clip.id, clip.text, clip.speaker, clip.gender) for clip in clips] == [
            ("a", "Yes.", "s2", None),
            ("b", 'She said "no".', "s1", "female"),
        ]


def test_a_manifest_of_segments(tmp_path):
    tone(tmp_path / "long.wav", 3.0)
    (tmp_path / "list.csv").write_text("file,text,start,end\nlong.wav,one,0.5,1.0\nlong.wav,two,1.0,2.5\n")
    clips = open_corpus(tmp_path, "en", "mine").utterances
    assert [clip.id for clip in clips] == ["long-0000050", "long-0000100"]
    assert [len(clip.load()) for clip in clips] == [8_000, 24_000]
    whole, _ = soundfile.read(tmp_path / "long.wav", dtype="float32")
    assert np.array_equal(clips[1].load(), whole[16_000:40_000])


def test_utterances_travel_to_other_processes(tmp_path):
    tone(tmp_path / "x.wav")
    (tmp_path / "x.txt").write_text("hello")
    (clip,) = open_corpus(tmp_path, "en", "mine").utterances
    copy = pickle.loads(pickle.dumps(clip))
    assert copy == clip
    assert np.array_equal(copy.load(), clip.load())


def test_every_problem_is_collected(tmp_path):
    tone(tmp_path / "good.wav")
    tone(tmp_path / "good.flac")
    (tmp_path / "good.txt").write_text("fine")
    tone(tmp_path / "lonely.wav")
    tone(tmp_path / "empty.wav")
    (tmp_path / "empty.txt").write_text(" \n")
    (tmp_path / "orphan.txt").write_text("no sound")
    tone(tmp_path / "latin.wav")
    (tmp_path / "latin.txt").write_bytes("señor".encode("latin-1"))
    corpus = open_corpus(tmp_path, "en", "mine")
    assert [clip.id for clip in corpus.utterances] == ["good"]
    said = "\n".join(map(str, corpus.problems))
    assert len(corpus.problems) == 5
    for part in (
        "good: duplicate id",
        "lonely.wav: audio without",
        "empty: empty text",
        "orphan.txt: transcript without",
        "latin.txt: not UTF-8",
    ):
        assert part in said
    assert all(isinstance(problem, Problem) for problem in corpus.problems)


def test_manifest_problems_name_the_line(tmp_path):
    tone(tmp_path / "x.wav")
    (tmp_path / "list.csv").write_text("file,text,start\nx.wav,a,\ngone.wav,b,\n,c,\nx.wav,d,later\n")
    corpus = open_corpus(tmp_path, "en", "mine")
    assert len(corpus.utterances) == 1
    said = [str(problem) for problem in corpus.problems]
    assert "gone.wav: no such file (list.csv, line 3)" in said[0]
    assert "list.csv:4: names no audio file" in said[1]
    assert "list.csv:5: start and end must be seconds" in said[2]


def test_what_only_decoding_shows_is_named_by_load(tmp_path):
    soundfile.write(tmp_path / "a-silence.wav", np.zeros(0), 16_000)
    (tmp_path / "b-corrupt.flac").write_bytes(b"fLaC" + bytes(100))
    flac = tone(tmp_path / "c-cut.flac", 3.0)
    flac.write_bytes(flac.read_bytes()[: flac.stat().st_size // 2])
    tone(tmp_path / "d-short.wav")
    (tmp_path / "list.csv").write_text(
        "file,text,start,end\na-silence.wav,x,,\nb-corrupt.flac,x,,\nc-cut.flac,x,,\nd-short.wav,x,7,8\n"
    )
    corpus = open_corpus(tmp_path, "en", "mine")
    wanted = (
        "a-silence.wav: zero-length",
        "b-corrupt.flac: cannot be decoded",
        "c-cut.flac: ",
        "d-short.wav: 7.00 s lies",
    )
    assert len(corpus.utterances) == 4
    for clip, words in zip(corpus.utterances, wanted, strict=True):
        with pytest.raises(UserError, match=words):
            clip.load()


def test_speech_that_nobody_has_transcribed(tmp_path):
    for name in ("x", "y"):
        tone(tmp_path / "audio" / f"{name}.wav")
    assert [clip.text for clip in open_corpus(tmp_path / "audio", "en", "mine")] == [None, None]
    (tmp_path / "list.csv").write_text("file,region\naudio/x.wav,north\n")
    assert [clip.text for clip in open_corpus(tmp_path / "list.csv", "en", "mine")] == [None]
    (tmp_path / "list.jsonl").write_text(
        '{"file": "audio/x.wav", "text": null}\n{"file": "audio/y.wav", "text": "a"}\n'
    )
    assert [clip.text for clip in open_corpus(tmp_path / "list.jsonl", "en", "mine")] == [None, "a"]
    (tmp_path / "none.csv").write_text("words\nhello\n")
    with pytest.raises(UserError, match="no audio column; it may be called audio"):
        list(open_corpus(tmp_path / "none.csv", "en", "mine"))


def test_json_rows_may_each_have_columns_of_their_own(tmp_path):
    soundfile.write(tmp_path / "a.wav", np.zeros(3 * RATE), RATE)
    lines = ['{"audio": "a.wav", "text": "all"}', '{"audio": "a.wav", "text": "part", "start": 1, "sex": "F"}']
    (tmp_path / "m.jsonl").write_text("\n".join(lines))
    whole, part = open_corpus(tmp_path, "en", "mine")
    assert (len(whole.load()), whole.gender) == (3 * RATE, None)
    assert (len(part.load()), part.gender) == (2 * RATE, "female")


def test_a_manifest_that_is_no_text_is_named(tmp_path):
    (tmp_path / "m.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(UserError, match=r"m\.csv: not UTF-8"):
        list(open_corpus(tmp_path, "en", "mine"))


def test_flags():
    assert as_sources({"en": "/data/LibriSpeech"}) == {("en", "librispeech"): "/data/LibriSpeech"}
    assert as_sources(named_paths(["es=x", "en-tedlium=a=b"])) == {("es", "mls"): "x", ("en", "tedlium"): "a=b"}
    with pytest.raises(UserError, match="write LANGUAGE=PATH"):
        as_sources(named_paths(["/data/LibriSpeech"]))
    with pytest.raises(UserError, match="given twice"):
        as_sources({"en": "a", "en-librispeech": "b"})
    with pytest.raises(UserError, match="given twice"):
        named_paths(["en=a", "en=b"])


@pytest.mark.parametrize(
    ("language", "name", "way_out"),
    [
        ("en", None, "--corpus en=PATH"),
        ("es", None, "--corpus es=PATH"),
        ("en", "tedlium", "--corpus en-tedlium=PATH"),
        ("en", "mine", "--corpus en-mine=PATH"),
    ],
)
def test_a_missing_corpus_says_how_to_get_it(language, name, way_out):
    with pytest.raises(UserError, match=way_out):
        open_corpus(None, language, name)


def test_a_wrong_path_names_path_and_flag(tmp_path):
    with pytest.raises(UserError, match=r"gone: no such folder \(--corpus en="):
        open_corpus(tmp_path / "gone", "en")


def test_another_layout_is_explained(tmp_path):
    tone(tmp_path / "x.wav")
    with pytest.raises(UserError, match=r"looks like LibriSpeech.*--corpus en-mine="):
        list(open_corpus(tmp_path, "en"))
