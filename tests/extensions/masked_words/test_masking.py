"""Masked words: which ones, where they lie in real speech, what is left of the clip, and what the rows keep."""

import itertools
import json

import numpy as np
import pytest
import soundfile

import speech_robust_bench as srb
from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.forced_alignment import align
from speech_robust_bench.builders.plan import DEMO, clips, plan
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.extensions.masked_words.masking import APART, draw_masks, is_content_word, replace_spans

SENTENCE = "In the beginning the old king of the northern island gave his three daughters a golden ship and a map"


@pytest.mark.parametrize("length", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", range(5))
def test_masks_begin_with_a_content_word_and_leave_context(length, seed):
    words = SENTENCE.split()
    masked = draw_masks(words, length, np.random.default_rng(seed))
    runs = np.split(np.array(masked), np.flatnonzero(np.diff(masked) > 1) + 1)
    assert masked
    assert all(len(run) == length for run in runs)
    assert all(is_content_word(words[run[0]]) for run in runs)
    assert all(after[0] - before[-1] > APART for before, after in itertools.pairwise(runs))


def test_a_short_text_has_one_mask():
    rng = np.random.default_rng(0)
    assert draw_masks(["eight"], 4, rng) == (0,)
    assert draw_masks(["seven", "nine"], 1, rng) in [(0,), (1,)]
    assert draw_masks(["to", "be", "or", "not", "to", "be"], 1, rng) == ()
    assert draw_masks([], 1, rng) == ()


def test_silence_and_noise_fill_the_place_and_the_rest_stays():
    samples = np.random.default_rng(1).normal(0, 0.1, 2 * RATE).astype(np.float32)
    silent = replace_spans(samples, [(0.5, 1.0)], "silence", np.random.default_rng(2))
    inside, far = slice(RATE // 2, RATE), slice(RATE + 200, None)
    assert not silent[inside].any()
    assert np.array_equal(silent[far], samples[far])
    assert len(silent) == len(samples)
    noisy = replace_spans(samples, [(0.5, 1.0)], "noise", np.random.default_rng(2))
    assert np.array_equal(noisy[far], samples[far])
    assert np.sqrt(np.mean(noisy[inside] ** 2)) == pytest.approx(0.1, rel=0.05)
    assert abs(np.corrcoef(noisy[inside], samples[inside])[0, 1]) < 0.05  # nothing of the word is left


def test_only_a_pattern_that_says_so_means_masked_configs():
    sources = {("en", "demo"): None, ("es", "demo"): None}
    assert not [job for job in plan(["en-demo_*"], sources) if "masked" in str(job.name)]
    names = [str(job.name) for job in plan(["*_masked_*"], sources)]
    assert len(names) == 8
    assert names[0] == "en-demo_masked_noise_sev1"


def test_rows_keep_the_masked_words_and_their_places(tmp_path):
    pytest.importorskip("pocketsphinx")
    config = "en-demo_masked_sev1"
    clean = {row["id"]: row for row in srb.load("en-demo_clean", limit=2)}
    rows = list(srb.load(config, limit=2))
    for row in rows:
        drawn, before = json.loads(row["parameters"]), clean[row["id"]]
        assert row["text"] == before["text"]
        assert drawn["words"] == [row["text"].split()[place] for place in drawn["masked"]]
        samples, kept = row["audio"]["array"], before["audio"]["array"]
        same = np.ones(len(samples), dtype=bool)
        for start, end in drawn["spans_s"]:
            assert not samples[round(start * RATE) : round(end * RATE)].any()
            same[max(round(start * RATE) - 160, 0) : round(end * RATE) + 160] = False
        assert np.array_equal(samples[same], kept[same])
    built = tmp_path / "srb"
    assert main(["build", config, "--corpus", "en-demo", "--limit", "2", "--out", str(built), "--workers", "1"]) == 0
    stored = open_data(str(built)).config(config)
    places = {row["id"]: " ".join(map(str, json.loads(row["parameters"])["masked"])) for row in rows}
    assert {row.id: row.facts["masked"] for row in stored.rows} == places
    results = srb.evaluate(lambda clips, *_: [""] * len(clips), config, limit=2, progress=False)
    assert {line["id"]: line["masked"] for line in results.predictions(config)} == places
    masked = results.json["configs"][config]["measures"]["masked"]
    assert masked["words"] == sum(len(text.split()) for text in places.values())
    assert masked["written"] == 0


def test_every_clip_of_the_demo_corpus_is_aligned():
    """One of them ends with its last word, which PocketSphinx leaves out unless something follows."""
    pytest.importorskip("pocketsphinx")
    _, utterances = clips(ConfigName("en", "clean", corpus="demo"), DEMO, None)
    for item in utterances:
        samples = item.load()
        words = align(samples, item.text)
        assert words is not None, item.id
        assert all(0 <= start < end <= len(samples) / RATE for _, start, end in words)


def test_a_clip_that_does_not_fit_its_transcript_stays_as_it_is(tmp_path):
    pytest.importorskip("pocketsphinx")
    clip = np.zeros(RATE // 2, np.float32)
    soundfile.write(tmp_path / "short.wav", clip, RATE)
    (tmp_path / "short.txt").write_text("far more words than anybody could say in half a second of silence")
    [row] = srb.load("en-mine_masked_sev1", corpus={"en-mine": tmp_path})
    assert json.loads(row["parameters"])["masked"] == []
    assert json.loads(row["parameters"])["aligned"] is False
    assert np.array_equal(row["audio"]["array"], clip)


def test_another_language_is_refused_in_one_line():
    with pytest.raises(UserError, match="the aligner, which only knows English, not 'es'"):
        next(iter(srb.load("es-demo_masked_sev1", limit=1)))
