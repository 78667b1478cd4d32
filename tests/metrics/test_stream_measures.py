"""Streaming measures on timelines worked out by hand."""

import pytest

from srb.metrics.stream_measures import SpokenWord, measure_clip, measure_lines, updates_of

WORDS = [["one", 0.0, 0.4], ["two", 0.5, 0.9], ["three", 1.0, 1.5]]
SPOKEN = [SpokenWord(*word) for word in WORDS]
# t, sent, text, kind: "one" at 0.6; "one too" at 1.1; corrected at 1.4; all at 1.9, final at 2.1
EVENTS = [
    [0.6, 0.5, "One", "partial"],
    [1.1, 1.0, "one too", "partial"],
    [1.4, 1.3, "one two", "partial"],
    [1.9, 1.6, "one two three", "partial"],
    [2.1, 1.6, "One, two, three.", "final"],
]


def line(events=EVENTS, **extra):
    stream = {"events": events, "busy_s": 0.4, "chunks": 16, "late_chunks": 4}
    return {"id": "a", "duration": 1.6, "stream": stream, "words": WORDS, **extra}


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
    measures = measure_lines([line(), line(id="b"), {"id": "c", "duration": 1.0}])
    assert measures["clips"] == 2
    assert measures["churn"]["value"] == pytest.approx(1 / 3)
    assert measures["flicker"]["value"] == pytest.approx(1 / 4)
    assert measures["late_chunks"]["value"] == pytest.approx(0.25)
    assert measures["rtf"]["value"] == pytest.approx(0.25)
    assert measures["early_cutoffs"]["value"] == 0
    assert measures["settle_s"]["median"]["value"] == pytest.approx(0.4)
    assert measures["settle_s"]["n"] == 6
    low, high = measures["settle_s"]["median"]["interval"]
    assert low <= measures["settle_s"]["median"]["value"] + 1e-9
    assert high >= 0.4 - 1e-9


def test_the_interval_of_a_quantile_is_that_of_numpys_quantile_of_each_draw():
    """Clips of one word each: the bootstrap quantile is the order statistic of the drawn values."""
    import numpy as np

    delays = np.random.default_rng(1).gamma(2.0, 0.3, 200)
    lines = [line([[1.5 + d, 1.6, "three", "final"]], id=str(i), words=WORDS[2:]) for i, d in enumerate(delays)]
    found = measure_lines(lines, replicates=400)["settle_s"]["p95"]
    draws = np.random.default_rng(0).integers(200, size=(400, 200))
    expected = np.quantile(np.quantile(delays[draws], 0.95, axis=1, method="inverted_cdf"), [0.025, 0.975])
    assert found["interval"] == pytest.approx(list(expected))


def test_what_was_not_streamed_has_no_measures():
    assert measure_lines([{"id": "c", "duration": 1.0}]) is None
