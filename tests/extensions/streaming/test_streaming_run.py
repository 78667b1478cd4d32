"""`srb run --stream`: timelines and word times in the predictions, resumable, and measured by `srb score`."""

import json
import re

import numpy as np
import pytest

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.models.interface import Event

CONFIGS = ("en-demo_clean", "en-demo_tempo_up_sev4")


class Counting:
    """Says one word more with every second; its last word only when the stream ends."""

    name, revision, options, batch_size = "counting", "1", {}, 1

    def stream(self, rate, language):
        return CountingSession(rate)

    def transcribe(self, clips, rate, language):
        return ["one two"] * len(clips)

    def close(self):
        pass


class CountingSession:
    WORDS = ("it", "was", "the", "best", "of", "times", "it", "was", "the", "worst", "of", "times")

    def __init__(self, rate):
        self.rate, self.samples = rate, 0

    def accept(self, chunk):
        before, self.samples = self.samples // self.rate, self.samples + len(chunk)
        now = self.samples // self.rate
        return [Event(" ".join(self.WORDS[:now]))] if now > before else []

    def finish(self):
        return [Event(" ".join(self.WORDS), final=True)]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("live") / "srb"
    assert main(["build", *CONFIGS, "--limit", "2", "--workers", "1", "--out", str(folder)]) == 0
    return folder


def stream(data, out):
    words = ["run", "--model", "python:test_streaming_run:Counting", *CONFIGS, "--data", str(data), "--out", str(out)]
    return main([*words, "--stream", "--quiet"])


def lines(out, config):
    path = next(out.glob(f"*/{config}.jsonl"))
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


@pytest.fixture(scope="module")
def run(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("runs")
    assert stream(data, out) == 0
    return out


def test_every_prediction_has_its_timeline(run):
    for config in CONFIGS:
        for line in lines(run, config):
            stream = line["stream"]
            assert len(stream["took_ms"]) == int(np.ceil(line["duration"] / 0.1 - 1e-6)) + 1
            assert [event[3] for event in stream["events"]].count("final") == 1
            assert stream["events"][-1][0] >= line["duration"]
            assert line["pred_text"] == " ".join(CountingSession.WORDS)


def test_word_times_move_with_the_tempo(run):
    pytest.importorskip("pocketsphinx")
    clean, fast = (lines(run, config)[0] for config in CONFIGS)
    assert [word for word, *_ in clean["words"]] == re.findall(r"[a-z']+", clean["text"].lower())
    assert all(0 <= start < end <= clean["duration"] + 0.02 for _, start, end in clean["words"])
    ratio = fast["duration"] / clean["duration"]
    assert ratio == pytest.approx(0.5, abs=0.01)
    assert fast["words"][-1][2] == pytest.approx(clean["words"][-1][2] * ratio, abs=0.002)


def test_stretching_scenarios_change_the_length_throughout(speech):
    """Twice the clip gives twice the length, and not the same length, under a scenario that stretches."""
    clip = speech[: 2 * RATE]
    for scenario in SCENARIOS.values():
        if scenario.stretches:
            value = scenario.severities[-1]
            once = len(scenario.function(clip, RATE, value, None))
            assert abs(once - len(clip)) > 0.05 * len(clip)


def test_a_finished_run_is_not_repeated(data, run):
    before = {path: path.read_bytes() for path in run.glob("*/*.jsonl")}
    assert stream(data, run) == 0
    assert before == {path: path.read_bytes() for path in run.glob("*/*.jsonl")}


@pytest.mark.parametrize("content", ['{"edition": 3', "[]", '{"edition": null, "words": 7}'])
def test_a_damaged_file_of_word_times_is_made_anew(data, run, content):
    store = run / ".word_times" / "en-demo_clean.json"
    before = store.read_bytes()
    store.write_text(content)
    for path in run.glob("*/en-demo_clean.jsonl"):
        path.unlink()
    assert stream(data, run) == 0
    assert store.read_bytes() == before


def test_a_recogniser_of_whole_clips_says_what_to_put_in_front(data, tmp_path, capsys):
    words = ["run", "--model", "python:test_streaming_run:whole", CONFIGS[0], "--data", str(data)]
    assert main([*words, "--out", str(tmp_path), "--stream", "--quiet"]) == 2
    assert "live:" in capsys.readouterr().err


def whole(clips, rate, language):
    return [""] * len(clips)


def test_the_score_and_the_table_show_latency_and_stability(run, capsys):
    folder = str(next(run.glob("*/run.json")).parent)
    assert main(["score", folder]) == 0
    results = json.loads((run / folder / "results.json").read_text("utf-8"))
    streaming = results["configs"]["en-demo_clean"]["measures"]["streaming"]
    assert streaming["clips"] == 2
    assert 0 <= streaming["late_chunks"]["value"] < 100  # it computes nothing, but the machine may be busy
    assert streaming["churn"]["value"] == 0  # it never takes a word back
    capsys.readouterr()
    assert main(["table", folder, "--streaming"]) == 0
    printed = capsys.readouterr().out
    assert "churn" in printed
    assert "0.0" in printed
