"""The clips of a corpus before anything is made of them: who checks which, and what a worker keeps decoded."""

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.corpora import open_corpus
from speech_robust_bench.builders.live_config import KeptClips
from speech_robust_bench.builders.plan import CheckedClip, check_clips
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import content_id


@pytest.fixture
def corpus(tmp_path):
    for number in range(7):
        samples = np.random.default_rng(number).uniform(-0.5, 0.5, 160 + number)
        soundfile.write(tmp_path / f"{number}.wav", samples, 16_000)
        (tmp_path / f"{number}.txt").write_text("one two")
    return open_corpus(str(tmp_path), "en", "mine")


class Two(Inline):
    """Two workers in one: notes the clips of every item."""

    workers = 2

    def __init__(self):
        self.items = []

    def map(self, work, items, tick):
        self.items += [[item.id for item in each] for each in items]
        return super().map(work, items, tick)


def quiet(what, count):
    return lambda done: None


def test_a_clip_goes_to_the_worker_of_its_position(corpus):
    engine = Two()
    checked = check_clips(corpus, corpus.utterances, engine, quiet)
    assert engine.items == [["0", "2", "4", "6"], ["1", "3", "5"]]
    assert [clip.utterance.id for clip in checked.clips] == list("0123456")
    assert [clip.samples_digest for clip in checked.clips] == [content_id(item.load()) for item in corpus.utterances]


def test_a_broken_clip_is_a_problem_and_the_others_are_usable(corpus, tmp_path):
    (tmp_path / "3.wav").write_bytes(b"no audio")
    checked = check_clips(corpus, corpus.utterances, Two(), quiet)
    assert [clip.utterance.id for clip in checked.clips] == list("012456")
    assert "3.wav" in str(checked.problems[0])
    with pytest.raises(UserError, match="1 of the clips cannot be used"):
        checked.refuse_unusable("stop")
    checked.refuse_unusable("skip")


def clip_of(utterance):
    return CheckedClip(utterance, content_id(utterance.load()))


def test_a_kept_clip_is_decoded_once_and_has_the_same_bits(corpus, tmp_path):
    kept, clip = KeptClips(), clip_of(corpus.utterances[0])
    samples = kept.load(clip, 10_000)
    assert kept.bytes == 2 * len(samples)  # what was 16-bit is kept as 16-bit
    (tmp_path / "0.wav").unlink()
    again = kept.load(clip, 10_000)
    assert again.dtype == np.float32
    assert again.tobytes() == samples.tobytes()


@pytest.mark.parametrize("value", [0.1, -0.0, 1.0])
def test_what_16_bits_cannot_hold_is_kept_as_it_is(value):
    kept, samples = KeptClips(), np.full(100, value, np.float32)
    kept.keep("digest", samples, 10_000)
    assert kept.bytes == samples.nbytes
    assert kept.load(CheckedClip(None, "digest"), 0).tobytes() == samples.tobytes()


def test_what_a_worker_keeps_is_bounded(corpus, tmp_path):
    kept = KeptClips()
    clips = [clip_of(item) for item in corpus.utterances]
    for clip in clips:
        kept.load(clip, 700)
    assert kept.bytes < 700 + 2 * 170
    soundfile.write(tmp_path / "6.wav", np.zeros(100), 16_000)
    with pytest.raises(UserError, match="has changed"):
        kept.load(clips[6], 700)
