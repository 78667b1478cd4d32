"""Hugging Face datasets as corpora: saved to disk, parquet folders, streamed; without torchcodec."""

import io
import pickle

import datasets
import numpy as np
import pyarrow.parquet
import pytest
import soundfile

from speech_robust_bench.builders.corpora import complete, open_corpus
from speech_robust_bench.builders.corpora.folder import HubSpec, parse_hub
from speech_robust_bench.core.errors import UserError


def flac(seed, duration_s=0.5):
    buffer = io.BytesIO()
    noise = np.random.default_rng(seed).uniform(-0.5, 0.5, round(duration_s * 16_000))
    soundfile.write(buffer, noise, 16_000, format="FLAC")
    return buffer.getvalue()


@pytest.fixture
def rows():
    """The columns of openslr/librispeech_asr."""
    ids = ["61-70968-0001", "61-70968-0000", "121-121726-0000"]
    return {
        "file": [f"{name}.flac" for name in ids],
        "audio": [{"bytes": flac(number), "path": f"{name}.flac"} for number, name in enumerate(ids)],
        "text": ["GIVE NOT", "HE BEGAN", "ALSO"],
        "speaker_id": [61, 61, 121],
        "chapter_id": [70968, 70968, 121726],
        "id": ids,
    }


def table(rows):
    """As `datasets` stores audio, put together without its encoder (which needs torchcodec)."""
    plain = datasets.Dataset.from_dict(rows)
    return plain.cast(
        datasets.Features({**plain.features, "audio": datasets.Audio(sampling_rate=16_000, decode=False)})
    )


@pytest.fixture
def saved(tmp_path, rows):
    datasets.DatasetDict({"test": table(rows)}).save_to_disk(tmp_path / "saved")
    return tmp_path / "saved"


@pytest.fixture
def parquet(tmp_path, rows, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    folder = tmp_path / "parquet" / "clean"
    folder.mkdir(parents=True)
    table(rows).to_parquet(folder / "test-00000-of-00001.parquet")
    return folder


def check(clips):
    assert [(clip.id, clip.text, clip.speaker) for clip in clips] == [
        ("121-121726-0000", "ALSO", "121"),
        ("61-70968-0000", "HE BEGAN", "61"),
        ("61-70968-0001", "GIVE NOT", "61"),
    ]
    for clip, seed in zip(clips, (2, 1, 0), strict=True):
        expected, _ = soundfile.read(io.BytesIO(flac(seed)), dtype="float32")
        assert np.array_equal(clip.load(), expected)


def test_saved_to_disk(saved):
    check(open_corpus(f"hf:{saved}", "en").utterances)


def test_parquet_folder(parquet):
    check(open_corpus(f"hf:{parquet}", "en").utterances)


def test_streaming_keeps_the_order_of_the_dataset(parquet):
    corpus = open_corpus(f"hf-stream:{parquet}", "en")
    assert [clip.id for clip in corpus] == ["61-70968-0001", "61-70968-0000", "121-121726-0000"]
    check(sorted(corpus, key=lambda clip: clip.id))


def test_a_listed_utterance_is_small_and_travels(saved):
    clip = open_corpus(f"hf:{saved}", "en").utterances[0]
    packed = pickle.dumps(clip)
    assert len(packed) < 1_000 < len(flac(0))
    assert np.array_equal(pickle.loads(packed).load(), clip.load())


def test_rows_without_audio_or_id(parquet, rows):
    rows["audio"][0] = {"bytes": None, "path": None}
    rows["audio"][1] = {"bytes": None, "path": str(parquet / "gone.flac")}
    del rows["id"]
    soundfile.write(parquet / "here.flac", np.zeros(160), 16_000)
    rows["audio"][2] = {"bytes": None, "path": str(parquet / "here.flac")}
    # Written by another tool: a plain struct column, which `datasets` does not know to be audio.
    pyarrow.parquet.write_table(pyarrow.table(rows), parquet / "test-00000-of-00001.parquet")
    corpus = open_corpus(f"hf:{parquet}", "en", "mine")
    (clip,) = corpus.utterances
    assert clip.id == "here"
    assert len(clip.load()) == 160
    assert [problem.what for problem in corpus.problems] == ["no audio", f"no such file: {parquet / 'gone.flac'}"]
    assert corpus.problems[1].where.endswith("row 1")


def test_corrupt_bytes_are_named_when_they_are_decoded(tmp_path, rows):
    rows["audio"][1] = {"bytes": b"not audio", "path": "broken.flac"}
    table(rows).save_to_disk(tmp_path / "saved")
    clip = open_corpus(f"hf:{tmp_path / 'saved'}", "en").utterances[1]
    with pytest.raises(UserError, match=r"broken\.flac: cannot be decoded"):
        clip.load()


def test_common_voice_columns(tmp_path):
    data = {
        "client_id": ["c1"],
        "path": ["en_test_0/common_voice_en_7.mp3"],
        "audio": [{"bytes": flac(0), "path": "common_voice_en_7.mp3"}],
        "sentence": ["Hello."],
        "age": ["teens"],
        "gender": ["female_feminine"],
        "accent": ["Welsh English"],
        "locale": ["en"],
    }
    table(data).save_to_disk(tmp_path / "saved")
    (clip,) = open_corpus(f"hf:{tmp_path / 'saved'}", "en", "commonvoice").utterances
    assert (clip.id, clip.text, clip.speaker) == ("common_voice_en_7", "Hello.", "c1")
    assert (clip.age, clip.gender, clip.accent) == ("teens", "female", "Welsh English")


def test_ami_rows_get_their_gender_from_the_speaker(tmp_path):
    data = {
        "meeting_id": ["EN2002a"] * 2,
        "audio_id": ["AMI_EN2002a_H00_MEE073_0000001_0000100", "AMI_EN2002a_H00_FEO070_0000200_0000300"],
        "text": ["OKAY", "I THINK SO TOO"],
        "audio": [{"bytes": flac(number), "path": f"{number}.wav"} for number in range(2)],
        "begin_time": [0.01, 2.0],
        "end_time": [1.0, 3.0],
        "speaker_id": ["MEE073", "FEO070"],
    }
    table(data).save_to_disk(tmp_path / "saved")
    (clip,) = open_corpus(f"hf:{tmp_path / 'saved'}", "en", scenario="social_ami_near").utterances
    assert (clip.id, clip.gender) == ("AMI_EN2002a_H00_FEO070_0000200_0000300", "female")


def test_wrong_split_and_wrong_columns(saved, tmp_path):
    with pytest.raises(UserError, match="no split 'dev'; it has test"):
        list(open_corpus(f"hf:{saved}::dev", "en"))
    datasets.Dataset.from_dict({"words": ["a"]}).save_to_disk(tmp_path / "bare")
    with pytest.raises(UserError, match="needs an audio column; it has words"):
        list(open_corpus(f"hf:{tmp_path / 'bare'}", "en", "mine"))


def test_a_dataset_that_is_not_there(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="nobody/nothing cannot be opened"):
        list(open_corpus("hf:nobody/nothing", "en"))


def test_the_grammar_of_names():
    assert parse_hub("/data/LibriSpeech") is None
    assert parse_hub("hf:a/b") == HubSpec("a/b")
    assert parse_hub("hf:a/b:clean:test") == HubSpec("a/b", "clean", "test")
    assert parse_hub("hf-stream:a/b::test") == HubSpec("a/b", None, "test", True)


@pytest.mark.parametrize(
    ("name", "language", "far", "expected"),
    [
        ("librispeech", "en", False, ("openslr/librispeech_asr", "clean", "test")),
        ("mls", "es", False, ("facebook/multilingual_librispeech", "spanish", "test")),
        ("ami", "en", True, ("edinburghcstr/ami", "sdm", "test")),
    ],
)
def test_hf_alone_is_the_standard_dataset(name, language, far, expected):
    from speech_robust_bench.builders.corpora import CORPORA

    spec = complete(HubSpec(""), CORPORA[name].info.hub, language, far)
    assert (spec.path, spec.config, spec.split) == expected


def test_a_corpus_that_is_not_on_the_hub():
    with pytest.raises(UserError, match="no standard Hub dataset"):
        open_corpus("hf:", "en", "chime")
