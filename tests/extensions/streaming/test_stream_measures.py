"""Streaming measures on timelines worked out by hand."""

import doctest

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, StreamEvent, WordTime, convert
from speech_robust_bench.extensions.streaming import clip_measures, measure, streams
from speech_robust_bench.extensions.streaming.clip_measures import measure_clip
from speech_robust_bench.extensions.streaming.streams import arrivals, completions
from speech_robust_bench.scoring.bootstrap import weights

WORDS = [["one", 0.0, 0.4], ["two", 0.5, 0.9], ["three", 1.0, 1.5]]
SPOKEN = [WordTime(*word) for word in WORDS]
# t, sent, text, kind: "one" at 0.6; "one too" at 1.1; corrected at 1.4; all at 1.9, final at 2.1
EVENTS = [
    [0.6, 0.5, "One", "partial"],
    [1.1, 1.0, "one too", "partial"],
    [1.4, 1.3, "one two", "partial"],
    [1.9, 1.6, "one two three", "partial"],
    [2.1, 1.6, "One, two, three.", "final"],
]


def updates_of(events):
    return clip_measures.updates_of([StreamEvent(*event) for event in events])


def measure_lines(lines, **options):
    measured = measure.measure_lines([convert(line, Prediction) for line in lines], **options)
    return measured and measured.as_json()


def line(events=EVENTS, **extra):
    """A clip of 1.6 s in chunks of 100 ms, of which four took 110 ms and so were done after the next had arrived."""
    took_ms = [10.0] * 17
    took_ms[3] = took_ms[5] = took_ms[7] = took_ms[9] = 110.0
    done_ms = [1000 * done_s for done_s in completions(arrivals(25_600, 16_000, 100), [ms / 1000 for ms in took_ms])]
    done_ms[-1] = 10_000.0  # the last answers of a server come when they come
    stream = {"chunk_ms": 100, "speed": 1.0, "realtime": True, "took_ms": took_ms, "done_ms": done_ms, "events": events}
    return {"id": "a", "text": "one two three", "duration": 1.6, "stream": stream, "words": WORDS, **extra}


def test_delays_are_counted_from_the_ends_of_the_words():
    clip = measure_clip(updates_of(EVENTS), SPOKEN)
    assert clip.appear_s == pytest.approx([0.2, 0.5, 0.4])
    assert clip.settle_s == pytest.approx([0.2, 0.5, 0.4])
    assert clip.first_word_s == pytest.approx(0.6)
    assert clip.last_word_s == pytest.approx(0.4)
    assert clip.endpoint_s == pytest.approx(0.6)
    assert (clip.erased, clip.final_words, clip.updates, clip.revisions) == (1, 3, 4, 1)


def test_a_word_that_goes_and_comes_back_settles_late():
    events = [[0.5, 0.5, "one two", "partial"], [0.9, 0.9, "one", "partial"], [2.0, 1.6, "one two", "final"]]
    clip = measure_clip(updates_of(events), SPOKEN[:2])
    assert clip.appear_s == pytest.approx([0.1, -0.4])  # a word may be guessed before it has ended
    assert clip.settle_s == pytest.approx([0.1, 1.1])
    assert clip.erased == 1


def test_a_missed_last_word_has_no_latency():
    clip = measure_clip(updates_of([[2.0, 1.6, "one two", "final"]]), SPOKEN)
    assert clip.last_word_s is None
    assert len(clip.settle_s) == 2
    assert clip.endpoint_s == pytest.approx(0.5)


def test_an_endpoint_before_the_last_word_is_an_early_cutoff():
    events = [[1.0, 0.9, "one two", "endpoint"], [2.0, 1.6, "three", "final"]]
    assert measure_clip(updates_of(events), SPOKEN).early_cutoff
    late = [[2.0, 1.6, "one two three", "endpoint"]]
    assert not measure_clip(updates_of(late), SPOKEN).early_cutoff


def test_words_in_silence_have_churn_but_no_delay():
    clip = measure_clip(updates_of([[1.0, 1.0, "hello", "partial"], [2.0, 2.0, "", "final"]]))
    assert (clip.erased, clip.final_words, clip.first_word_s) == (1, 0, None)


def test_a_stream_without_events_is_measured_as_nothing():
    clip = measure_clip([], SPOKEN)
    assert (clip.first_word_s, clip.endpoint_s, clip.settle_s) == (None, None, [])


def test_a_config_pools_its_clips():
    measures = measure_lines([line(), line(id="b"), {"id": "c", "text": "", "duration": 1.0}])
    assert measures["clips"] == 2
    assert measures["churn"]["value"] == pytest.approx(1 / 3)
    assert measures["flicker"]["value"] == pytest.approx(1 / 4)
    assert measures["late_chunks"]["value"] == pytest.approx(0.25)
    assert measures["rtf"]["value"] == pytest.approx((13 * 0.01 + 4 * 0.11) / 1.6)
    assert measures["invented_words_per_minute"] is None  # somebody speaks in every clip
    assert measures["early_cutoffs"]["value"] == 0
    assert measures["settle_s"]["median"]["value"] == pytest.approx(0.4)
    assert measures["settle_s"]["n"] == 6
    assert measures["settle_s"]["median"]["interval"] is None  # two clips say nothing about others
    low, high = measure_lines([line(id=str(i)) for i in range(5)])["settle_s"]["median"]["interval"]
    assert low <= 0.4 + 1e-9
    assert high >= 0.4 - 1e-9


def test_the_interval_of_a_quantile_is_numpys():
    """Clips of one word each: the bootstrap quantile is the order statistic of the drawn values."""
    import numpy as np

    delays = 0.2 + np.random.default_rng(1).gamma(2.0, 0.3, 200)
    lines = [
        line([[1.5 + d, 1.6, "three", "final"]], id=str(i), words=WORDS[2:]) for i, d in enumerate(delays.tolist())
    ]
    found = measure_lines(lines, replicates=400)["settle_s"]["p95"]
    draws = [np.repeat(delays, row.astype(int)) for row in weights([str(i) for i in range(200)], replicates=400)]
    expected = np.quantile(np.quantile(draws, 0.95, axis=1, method="inverted_cdf"), [0.025, 0.975])
    assert found["interval"] == pytest.approx(list(expected), abs=0.1)  # a little wider, for 200 clips are not all


def test_what_was_not_streamed_has_no_measures():
    assert measure_lines([{"id": "c", "text": "", "duration": 1.0}]) is None


def test_every_word_shown_in_silence_is_invented():
    events = [[0.5, 0.5, "thank you", "partial"], [1.9, 1.6, "you", "final"]]
    silence = line(events, text="", words=None)
    measures = measure_lines([silence, line(id="b")])
    assert measures["invented_words_per_minute"]["value"] == pytest.approx(3 / (1.6 / 60))  # "thank you", then "you"
    assert measures["settle_s"]["n"] == 3  # of the other clip alone


def test_two_hours_are_measured_in_little_memory():
    """1,440 segments of 14 words, ten partials each: nothing grows with the square of the length."""
    import tracemalloc

    words = [f"w{i}" for i in range(14)]
    events = []
    for segment in range(1440):
        begin = 5.0 * segment
        events += [[begin + 0.4 * n, begin + 0.4 * n, " ".join(words[:n]), "partial"] for n in range(1, 11)]
        events.append([begin + 5, begin + 5, " ".join(words), "final"])
    spoken = [WordTime(w, 5.0 * s, 5.0 * s + 0.3) for s in range(1440) for w in words]
    tracemalloc.start()
    clip = measure_clip(updates_of(events), spoken[:1400])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (clip.final_words, clip.erased) == (14 * 1440, 0)
    assert peak < 100e6


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"took_ms": [1.0]}, "entries"),
        ({"took_ms": ["fast"] * 17}, "took_ms"),
        ({"took_ms": [float("nan")] * 17}, "milliseconds"),
        ({"done_ms": [0.0] * 17}, "before it can be"),
        ({"chunk_ms": 1}, "chunk_ms"),
        ({"speed": -1}, "speed"),
        ({"realtime": "no"}, "realtime"),
        ({"events": [[0.6, 0.5, "a"]]}, "event"),
        ({"events": [[0.6, 0.5, 7, "partial"]]}, "events"),
        ({"events": [[0.6, 0.5, "a", "<script>"]]}, "kind"),
        ({"events": [[0.6, 0.5, "a", "partial"], [0.5, 0.5, "a b", "partial"]]}, "order"),
        ({"events": [[0.6, 0.55, "a", "partial"]]}, "is not the end of a chunk"),
        ({"events": [[0.4, 0.5, "a", "partial"]]}, "before its audio"),
        ({"more": 1}, "more"),
    ],
)
def test_a_stored_stream_that_no_run_wrote_is_one_line(change, word):
    broken = line()
    broken["stream"] = {**broken["stream"], **change}
    with pytest.raises((UserError, ValueError), match=word):
        measure_lines([broken])


@pytest.mark.parametrize("words", [7, [["one", 0.0]], [["one", 0.5, 0.4]], [["one", 0.0, 99.0]], [[1, 0.0, 0.4]]])
def test_places_of_words_that_cannot_be_are_one_line(words):
    with pytest.raises((UserError, ValueError), match="words"):
        measure_lines([line(words=words)])


def test_an_event_comes_when_its_chunk_was_done():
    took_ms = [30.0] * 17
    virtual = {"chunk_ms": 100, "speed": 1.0, "realtime": False, "took_ms": took_ms}
    said = {**virtual, "events": [[0.53, 0.5, "one", "partial"], [1.66, 1.6, "one", "final"]]}
    assert measure_lines([line(stream=said)])["clips"] == 1
    quick = {**virtual, "events": [[0.5, 0.5, "one", "partial"]]}
    with pytest.raises(UserError, match="does not come when its chunk was done"):
        measure_lines([line(stream=quick)])


@pytest.mark.parametrize("module", [clip_measures, streams])
def test_the_worked_examples_are_right(module):
    outcome = doctest.testmod(module)
    assert outcome.attempted >= 3
    assert outcome.failed == 0
