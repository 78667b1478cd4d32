"""The demo corpus: what is promised about it, read from the files themselves."""

import csv
from pathlib import Path

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.corpora.folder import DEMO_FOLDER
from speech_robust_bench.core.errors import UserError


@pytest.fixture(scope="module")
def english():
    return open_corpus(None, "en", "demo").utterances


def test_forty_english_clips_and_three_minutes(english):
    assert len(english) >= 40
    assert sum(len(clip.load()) for clip in english) / 16_000 >= 180


def test_four_speakers_of_both_genders(english):
    speakers = {(clip.speaker, clip.gender) for clip in english}
    assert len(speakers) >= 4
    assert {gender for _, gender in speakers} == {"female", "male"}


def test_a_dozen_spanish_clips():
    spanish = open_corpus(None, "es", "demo").utterances
    assert len(spanish) >= 12
    assert {clip.language for clip in spanish} == {"es"}


def test_another_language_is_refused_with_those_it_has():
    with pytest.raises(UserError, match="en, es"):
        open_corpus(None, "fr", "demo")


def test_under_five_megabytes():
    assert sum(path.stat().st_size for path in DEMO_FOLDER.iterdir() if path.is_file()) < 5_000_000


def test_files_and_manifest_agree_and_every_clip_has_a_licence():
    with (DEMO_FOLDER / "manifest.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert {row["file"] for row in rows} == {path.name for path in DEMO_FOLDER.glob("*.flac")}
    assert {row["licence"] for row in rows} == {"Apache-2.0", "MIT", "MIT-Festival"}
    assert {row["kind"] for row in rows} == {"human", "synthetic"}


def test_the_notice_of_each_licence_names_the_clips_under_it():
    _, *sections = (DEMO_FOLDER / "NOTICE.md").read_text(encoding="utf-8").split("\n## ")
    named = {head.split(":")[0]: head for head in (section.splitlines()[0] for section in sections)}
    with (DEMO_FOLDER / "manifest.csv").open(encoding="utf-8") as file:
        wanted = {(row["licence"], row["file"].rsplit("-", 1)[0]) for row in csv.DictReader(file)}
    assert {licence for licence, _ in wanted} == set(named)
    assert [(licence, clips) for licence, clips in sorted(wanted) if f"`{clips}-*.flac`" not in named[licence]] == []


def test_flac_of_16_bit_at_16_khz_with_sane_levels_and_margins():
    for path in sorted(DEMO_FOLDER.glob("*.flac")):
        info = soundfile.info(path)
        assert (info.samplerate, info.channels, info.subtype) == (16_000, 1, "PCM_16"), path
        samples, _ = soundfile.read(path)
        assert np.abs(samples).max() == pytest.approx(10 ** (-3 / 20), abs=0.01), path
        loud = np.flatnonzero(np.abs(samples) > 0.05)
        assert loud[0] / 16_000 < 0.6, path
        assert (len(samples) - loud[-1]) / 16_000 < 0.6, path


def test_its_card_says_that_it_is_mostly_synthetic():
    for text in (open_corpus(None, "en", "demo").info.note, Path(DEMO_FOLDER, "README.md").read_text(encoding="utf-8")):
        assert "mostly synthetic" in text.lower()
        assert "not to rank" in text


def test_a_recogniser_understands_it(english):
    """Pocketsphinx, small and old, gets most words of the clearest voice; a broken clip would give it none."""
    pocketsphinx = pytest.importorskip("pocketsphinx", reason="pocketsphinx is not installed")
    decoder = pocketsphinx.Decoder(loglevel="FATAL")
    for clip in [clip for clip in english if clip.speaker == "heart"][:3]:
        decoder.start_utt()
        decoder.process_raw((clip.load() * 32767).astype(np.int16).tobytes(), full_utt=True)
        decoder.end_utt()
        hypothesis = set(decoder.hyp().hypstr.split())
        said = {word.strip(".,?").lower() for word in clip.text.split()}
        assert len(said & hypothesis) >= len(said) / 2, clip.id
