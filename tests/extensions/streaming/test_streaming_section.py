"""The report of streamed runs: a chart of WER against latency for each condition, and one clip as its words came."""

import re

import pytest
from support.part_records import part_of

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.result_records import ConfigResults
from speech_robust_bench.extensions.streaming.measure import CLEAN, HARD, Streaming, conditions
from speech_robust_bench.extensions.streaming.report import latency_charts
from speech_robust_bench.models.interface import Event

CONFIGS = ("en-demo_clean", "en-demo_gain_sev1")


class Hesitant:
    """Shows a word, takes it back a second later, and has the first words of the clip in the end."""

    name, revision, options, batch_size = "hesitant <b>", "1", {}, 1

    def stream(self, rate, language):
        return HesitantSession(rate)

    def transcribe(self, clips, rate, language):
        return [""] * len(clips)

    def close(self):
        pass


class HesitantSession:
    def __init__(self, rate):
        self.rate, self.samples = rate, 0

    def accept(self, chunk):
        before, self.samples = self.samples // self.rate, self.samples + len(chunk)
        now = self.samples // self.rate
        return [Event(["the", "a <script>"][now % 2])] if now > before else []

    def finish(self):
        return [Event("the river", final=True)]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    pytest.importorskip("pocketsphinx")
    folder = tmp_path_factory.mktemp("live")
    words = ["--model", "python:test_streaming_section:Hesitant", "--name", "hesitant", "--corpus", "en-demo"]
    assert main(["run", *words, *CONFIGS, "--limit", "2", "--out", str(folder), "--stream", "--quiet"]) == 0
    out = folder / "report.html"
    assert main(["report", str(folder / "hesitant"), "--corpus", "en-demo", "--out", str(out)]) == 0
    return out.read_text("utf-8")


def test_the_timeline_shows_words_that_were_taken_back(page):
    (part,) = re.findall(r'<div class="timelines">.*?</figure></div>', page, re.DOTALL)
    assert "<audio" in part
    assert "data:audio/flac;base64," in part
    assert 'class="erased"' in part
    assert "taken back at" in part
    assert 'class="wave"' in part
    assert 'class="end"' in part  # where a word had been said
    assert "<script>" not in part


def test_every_condition_has_its_chart(page):
    assert page.count("WER against latency: ") == 3  # clean, audio processing, all but clean


def entry(category, wer, settle, language="en"):
    delay = None if settle is None else {"n": 1, "median": {"value": settle}, "p95": {"value": 2 * settle}}
    streaming = {"settle_s": delay, "churn": {"value": 0.5}}
    measures = {"streaming": part_of(Streaming, streaming)}
    return part_of(ConfigResults, {"language": language, "category": category, "wer": {"value": wer}}).replace(
        measures=measures
    )


def test_a_condition_is_the_plain_mean_of_its_configs():
    found = conditions(
        {
            "a": entry(CLEAN, 5.0, 0.4),
            "b": entry("noise_env", 10.0, 0.5),
            "c": entry("noise_env", 30.0, 0.7),
            "d": entry("spatial", 40.0, 1.0),
            "e": entry("spatial", 99.0, 9.0, "es"),
        },
        "en",
    )
    assert list(found) == [CLEAN, "noise_env", "spatial", HARD]
    assert (found["noise_env"].wer, found["noise_env"].figures["settle"]) == (20.0, pytest.approx(0.6))
    assert (found[HARD].wer, found[HARD].figures["settle"]) == (30.0, pytest.approx(0.8))
    assert found[HARD].figures["churn"] == 0.5
    assert found[HARD].configs == 3


def test_nobody_becomes_quicker_by_recognising_nothing():
    found = conditions({"b": entry("noise_env", 10.0, 0.5), "c": entry("noise_env", 100.0, None)}, "en")
    assert found["noise_env"].figures["settle"] is None
    (chart,) = latency_charts([(0, "quick", conditions({"b": entry(CLEAN, 10.0, 0.5)}, "en"))], set())
    assert "polyline" not in chart  # who is not ranked makes no front
