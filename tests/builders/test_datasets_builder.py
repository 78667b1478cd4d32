"""`SpeechRobustBench`: the rows of `srb build`, `srb.load` and `srb run --corpus`, and no stale audio in a cache."""

import inspect

import datasets
import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile

import speech_robust_bench as srb
from speech_robust_bench.builders.live_config import LiveConfigs
from speech_robust_bench.cli.main import main

CONFIG = "en_noise_sev3"
WORDS = ("ONE TWO", "THREE", "FOUR FIVE SIX", "SEVEN EIGHT", "NINE TEN")


@pytest.fixture
def corpus(tmp_path):
    """Five clips of noise in the layout of LibriSpeech."""
    root = tmp_path / "LibriSpeech"
    chapter = root / "test-clean/61/70968"
    chapter.mkdir(parents=True)
    (root / "SPEAKERS.TXT").write_text("61   | M | test-clean       |  8.00 | Somebody\n")
    for number, _ in enumerate(WORDS):
        write_clip(chapter / f"61-70968-{number:04d}.flac", seed=number)
    lines = [f"61-70968-{number:04d} {text}\n" for number, text in enumerate(WORDS)]
    (chapter / "61-70968.trans.txt").write_text("".join(lines))
    return root


def write_clip(path, seed):
    samples = np.random.default_rng(seed).normal(0, 0.1, 8000 + 400 * seed)
    soundfile.write(path, samples, 16_000)


@pytest.fixture
def builder(tmp_path):
    def make(config=CONFIG, **options):
        return srb.SpeechRobustBench(cache_dir=str(tmp_path / "cache"), config_name=config, **options)

    return make


def rows(dataset):
    return list(dataset.cast_column("audio", datasets.Audio(decode=False)))


def built(folder, config):
    return [row for path in sorted((folder / config).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def test_all_ways_make_the_same_rows(corpus, builder, tmp_path):
    made = builder(corpora={"en": str(corpus)})
    made.download_and_prepare()
    prepared = rows(made.as_dataset(split="test"))
    assert [row["text"] for row in prepared] == list(WORDS)
    assert main(["build", CONFIG, "--corpus", f"en={corpus}", "--out", str(tmp_path / "srb")]) == 0
    assert prepared == built(tmp_path / "srb", CONFIG)
    assert prepared == rows(builder(data_dir=str(corpus)).as_streaming_dataset(split="test"))
    assert prepared == list(srb.load(CONFIG, corpus, decode=False))
    configs = LiveConfigs({("en", "librispeech"): str(corpus)}, workers=1)
    try:
        config = configs.config(CONFIG)
        assert len(list(config.windows({row.position for row in config.rows}))) == 1
        assert [config.digests[place] for place in range(len(WORDS))] == [row["sha256"] for row in prepared]
    finally:
        configs.close()


def test_processes_share_the_demo(builder, tmp_path):
    alone, shared = builder("en-demo_echo_sev2", limit=6), builder("en-demo_echo_sev2", limit=6)
    alone.download_and_prepare(str(tmp_path / "one"), file_format="parquet")
    shared.download_and_prepare(str(tmp_path / "two"), file_format="parquet", num_proc=2)
    assert len(list((tmp_path / "two").glob("*.parquet"))) == 2
    assert built(tmp_path, "one") == built(tmp_path, "two")
    assert built(tmp_path, "one") == list(srb.load("en-demo_echo_sev2", limit=6, decode=False))


def test_what_the_content_depends_on_changes_the_hash(corpus, builder, tmp_path):
    noises = tmp_path / "noises"
    noises.mkdir()
    write_clip(noises / "hum.wav", seed=7)
    hashes = [builder(data_dir=str(corpus)).hash, builder(data_dir=str(corpus), noise_dir=str(noises)).hash]
    assert hashes[0] == builder(corpora={"en": corpus}).hash
    write_clip(noises / "hum.wav", seed=8)
    hashes.append(builder(data_dir=str(corpus), noise_dir=str(noises)).hash)
    hashes.append(builder(data_dir=str(corpus), limit=2).hash)
    write_clip(corpus / "test-clean/61/70968/61-70968-0000.flac", seed=9)
    hashes.append(builder(data_dir=str(corpus)).hash)
    transcripts = corpus / "test-clean/61/70968/61-70968.trans.txt"
    transcripts.write_text(transcripts.read_text().replace("ONE TWO", "ONE TOO"))
    hashes.append(builder(data_dir=str(corpus)).hash)
    assert len(set(hashes)) == len(hashes)


def test_changed_audio_is_prepared_anew(corpus, builder):
    def first():
        made = builder("en_clean", data_dir=str(corpus))
        made.download_and_prepare()
        return rows(made.as_dataset(split="test"))[0]["sha256"]

    before = first()
    assert first() == before
    write_clip(corpus / "test-clean/61/70968/61-70968-0000.flac", seed=9)
    assert first() != before


def test_it_is_called_as_every_builder_is():
    ours, known = srb.SpeechRobustBench, datasets.ArrowBasedBuilder
    for method in ("download_and_prepare", "as_dataset", "as_streaming_dataset"):
        assert inspect.signature(getattr(ours, method)) == inspect.signature(getattr(known, method))
    first = list(inspect.signature(known.__init__).parameters)[:4]
    assert list(inspect.signature(ours.__init__).parameters)[:4] == first


def test_it_knows_the_names_of_every_language():
    names = srb.SpeechRobustBench.config_names()
    assert {"en_noise_sev3", "de_clean", "en-tedlium_echo_sev1", "es-demo_gsm", "en_tts", "en_accent"} <= set(names)
    german = srb.SpeechRobustBench.config_names("de")
    assert german
    assert all(name.startswith("de") for name in german)


@pytest.mark.parametrize(
    ("config", "options", "said"),
    [
        (None, {}, "config_name is missing"),
        ("en-noise-sev3", {}, "did you mean en_noise_sev3"),
        ("en_nosie_sev3", {}, "did you mean noise"),
        ("en_noise_sev3", {}, r"openslr.org/12.*data_dir=PATH or corpora=\{\"en\": PATH\}"),
        ("en_noise_sev3", {"data_dir": "/nowhere/at/all"}, "no such folder"),
    ],
)
def test_a_mistake_is_one_clear_error(builder, config, options, said):
    with pytest.raises(ValueError, match=said):
        builder(config, **options)


def test_a_broken_clip_is_named(corpus, builder):
    (corpus / "test-clean/61/70968/61-70968-0003.flac").write_bytes(b"no audio")
    with pytest.raises(ValueError, match=r"61-70968-0003\.flac"):
        builder(data_dir=str(corpus)).download_and_prepare()
