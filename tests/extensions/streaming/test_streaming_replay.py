"""The virtual clock: events come when the chunk has arrived and the work before is done, whatever the real time."""

import itertools
import json
import time
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.streaming.replay import (
    Policy,
    PolicySession,
    StreamOptions,
    quickest,
    replay,
    stream_of,
    streamed,
)
from speech_robust_bench.extensions.streaming.streams import MOST_EVENTS, check_stream
from speech_robust_bench.models.interface import Event

RATE = 16_000


class Clock:
    """A timer that moves only when somebody works or sleeps."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Echo:
    """A session that takes `cost_s` a chunk and answers with the number of samples so far."""

    def __init__(self, clock: Clock, cost_s: float) -> None:
        self.clock, self.cost_s, self.samples = clock, cost_s, 0

    def accept(self, chunk):
        self.clock.now += self.cost_s
        self.samples += len(chunk)
        return [Event(str(self.samples))]

    def finish(self):
        self.clock.now += self.cost_s
        return [Event(str(self.samples), final=True)]


def run(cost_s: float, seconds: float = 0.5, **pace):
    clock = Clock()
    clip = np.zeros(round(seconds * RATE), np.float32)
    return replay(Echo(clock, cost_s), clip, RATE, StreamOptions(**pace), clock, clock.sleep)


def times(timeline):
    return [round(timed.time_s, 6) for timed in timeline.events]


def test_a_quick_recogniser_answers_each_chunk_as_it_arrives():
    timeline = run(0.02)
    assert times(timeline) == [0.12, 0.22, 0.32, 0.42, 0.52, 0.54]
    assert (timeline.calls.chunks, timeline.calls.late_chunks) == (5, 0)
    assert timeline.calls.busy_s == pytest.approx(0.12)
    assert timeline.text == "8000"


def test_a_slow_recogniser_falls_behind_and_the_queue_grows():
    timeline = run(0.25)
    assert times(timeline) == [0.35, 0.6, 0.85, 1.1, 1.35, 1.6]
    assert timeline.calls.late_chunks == 4  # the last one has no next


def test_a_machine_twice_as_fast_takes_half_the_time():
    assert times(run(0.25, speed=2.0)) == [0.225, 0.35, 0.475, 0.6, 0.725, 0.85]


def test_real_time_gives_what_the_virtual_clock_gives():
    assert times(run(0.02, realtime=True)) == times(run(0.02))
    assert times(run(0.25, realtime=True)) == times(run(0.25))


@pytest.mark.parametrize(("chunk_ms", "chunks"), [(20, 25), (100, 5), (300, 2), (500, 1)])
def test_chunks_of_any_length_carry_every_sample_once(chunk_ms, chunks):
    timeline = run(0.0, chunk_ms=chunk_ms)
    assert timeline.calls.chunks == chunks
    assert timeline.events[-1].event.text == "8000"


def test_an_empty_clip_has_no_chunk_and_is_finished():
    timeline = run(0.01, seconds=0)
    assert (timeline.calls.chunks, timeline.text) == (0, "0")


@pytest.mark.parametrize(
    "pace", [{"chunk_ms": 10}, {"chunk_ms": 600}, {"speed": 0}, {"speed": 2.0, "realtime": True}, {"repeats": 0}]
)
def test_a_pace_that_makes_no_sense_is_refused(pace):
    with pytest.raises(UserError):
        StreamOptions(**pace)


def test_a_session_that_never_stops_answering_is_cut_off():
    class Flood(Echo):
        def accept(self, chunk):
            return [Event("x")] * (MOST_EVENTS + 1)

    with pytest.raises(ValueError, match="events"):
        replay(Flood(Clock(), 0), np.zeros(1600, np.float32), RATE)


def test_a_stream_without_a_final_event_keeps_its_partial():
    class Never(Echo):
        def finish(self):
            return []

    clock = Clock()
    assert replay(Never(clock, 0), np.zeros(1600, np.float32), RATE, timer=clock).text == "1600"


def test_of_several_repeats_the_quickest_of_each_call_counts():
    """Calls of 0.2, 0.1, 0.3 s and of 0.1, 0.4, 0.2 s, for chunks that arrive every 0.1 s: 0.1, 0.1 and 0.2 s."""
    spent = iter([0.2, 0.1, 0.3, 0.1, 0.4, 0.2])
    clip = np.zeros(3200, np.float32)
    timelines = []
    for _ in range(2):
        clock = Clock()

        class Uneven(Echo):
            def accept(self, chunk):
                self.cost_s = next(spent)
                return super().accept(chunk)

            def finish(self):
                self.cost_s = next(spent)
                return super().finish()

        timelines.append(replay(Uneven(clock, 0), clip, RATE, StreamOptions(repeats=2), timer=clock))
    timeline = quickest(timelines)
    assert timeline.calls.took_s == pytest.approx([0.1, 0.1, 0.2])
    assert timeline.calls.done_s == pytest.approx([0.2, 0.3, 0.5])
    assert [timed.time_s for timed in timeline.events] == pytest.approx([0.2, 0.3, 0.5])
    check_stream(stream_of(timeline), 0.2)
    assert stream_of(timeline).repeats == 2
    other = replace(timelines[1], events=timelines[1].events[:1])
    assert quickest([timelines[0], other]) is timelines[0]  # it answers differently each time


def test_processor_time_is_counted_where_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(time, "process_time", itertools.count(0, 0.25).__next__)  # a quarter of a second at each look
    timeline = replay(Echo(Clock(), 0), np.zeros(3200, np.float32), RATE, StreamOptions(processor_time=True))
    assert timeline.calls.took_s == [0.25, 0.25, 0.25]
    assert stream_of(timeline).processor_time is True


def test_two_hours_leave_no_more_behind_than_their_events():
    """Beside the clip itself: a segment of audio at most, and what is stored of 72,000 chunks."""
    rate = 1000
    clip = np.zeros(7200 * rate, np.float32)
    session = PolicySession(lambda audio: "a b", rate, Policy(chunk_s=5.0))
    tracemalloc.start()
    timeline = replay(session, clip, rate)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert timeline.calls.chunks == 72_000
    assert len(timeline.events) < 1000
    assert peak < 30e6
    assert len(json.dumps(stream_of(timeline).as_json())) < 1e6


@pytest.mark.parametrize("seconds", [0.0, 0.01, 2.0])
def test_pocketsphinx_takes_empty_and_silent_streams(seconds):
    pytest.importorskip("pocketsphinx")
    from speech_robust_bench.models.interface import open_model

    timeline = replay(
        open_model("pocketsphinx?workers=1").stream(RATE, "en"), np.zeros(int(seconds * RATE), "f4"), RATE
    )
    assert timeline.text == ""


def test_the_first_clip_is_streamed_once_before_it_counts():
    """Three seconds of it at most: what a recogniser loads at first use is in nobody's latency."""
    lengths = []

    class Opened:
        name, revision, options, batch_size = "opened", None, {}, 1

        def stream(self, rate, language):
            lengths.append(0)
            return self

        def accept(self, chunk):
            lengths[-1] += len(chunk)
            return []

        def finish(self):
            return []

    clips = [np.zeros(5 * RATE, np.float32), np.zeros(RATE, np.float32)]
    streamed(Opened(), StreamOptions()).transcribe(clips, RATE, "en")
    assert lengths == [3 * RATE, 5 * RATE, RATE]


def test_pocketsphinx_cuts_speech_without_a_pause():
    pytest.importorskip("pocketsphinx")
    from speech_robust_bench.models.adapters.pocketsphinx import PocketSphinxSession

    class Decoder:
        """Says how many seconds of the utterance it has got."""

        def reinit_feat(self):
            pass

        def start_utt(self):
            self.samples = 0

        def process_raw(self, speech, *_):
            self.samples += len(speech) // 2

        def end_utt(self):
            pass

        def hyp(self):
            return SimpleNamespace(hypstr=f"{self.samples / RATE:.0f}")

    session = PocketSphinxSession(RATE, Decoder())
    always = {"in_speech": True, "frame_bytes": 960, "process": lambda frame: frame, "end_stream": lambda rest: rest}
    session._endpointer = SimpleNamespace(**always)
    timeline = replay(session, np.zeros(150 * RATE, np.float32), RATE, StreamOptions(500))
    assert timeline.text == "60 60 30"
    assert not any(timed.event.endpoint for timed in timeline.events)
