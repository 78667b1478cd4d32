"""What a list of terms gains and breaks: values by hand, the guard, and the command with an adapter of its own."""

from __future__ import annotations

import json
import types
from pathlib import Path

import numpy as np
import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.core import extensions as core_extensions
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, RunRecord, to_json
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.biasing.effect import BiasingOptions, Change, effect, term_counts, verdict
from speech_robust_bench.scoring.runs import Run, open_run

TERMS = ["Kaliko", "New York"]


def write_run(folder: Path, texts: list[tuple[str, str]], config: str = "en_clean") -> Run:
    """A run of (reference, transcript), a speaker for each two clips."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.json").write_bytes(to_json(RunRecord(model=folder.name)))
    lines = [
        to_json(Prediction(id=f"c{i:03}", text=text, pred_text=heard, speaker=f"s{i // 2}", duration=1.0, time=0.1))
        for i, (text, heard) in enumerate(texts)
    ]
    (folder / f"{config}.jsonl").write_bytes(b"".join(lines))
    return open_run(folder)


def sentences(count: int, first: str, second: str) -> list[tuple[str, str]]:
    """For each speaker a clip with a term, and one without."""
    return [("call kaliko now", first), ("see you next year", second)] * count


def test_recall_false_alarms_and_the_other_words(tmp_path):
    without = write_run(tmp_path / "plain", sentences(8, "call calico now", "see you next year"))
    listed = sentences(8, "call Kaliko now", "see you next year")
    listed[1] = ("see you next year", "see you New York")  # one false alarm, of two wrong words
    result = effect(without, write_run(tmp_path / "biased", listed), TERMS, BiasingOptions())
    clean = result.configs["en_clean"]
    assert (clean.said, clean.biased_clips, clean.anti_clips, clean.unit) == (8, 8, 8, "speakers")
    assert clean.recall
    assert (clean.recall.without, clean.recall.with_terms) == (0.0, 100.0)
    assert clean.recall.units == 8
    assert clean.recall.p == pytest.approx(3 * 2 / 2**8, abs=1e-6)  # all 8 signs alike, three tests
    assert clean.false_alarms
    assert clean.false_alarms.change.value == pytest.approx(100 / 8)
    assert clean.anti_wer
    assert clean.anti_wer.change.value == pytest.approx(100 * 2 / 32)
    assert clean.verdict == "helps"


def test_a_recogniser_that_writes_its_list_has_no_verdict(tmp_path):
    """It has every term, on every clip: no recall can make up for that."""
    without = write_run(tmp_path / "plain", sentences(8, "call calico now", "see you next year"))
    echo = write_run(tmp_path / "biased", sentences(8, "kaliko new york", "kaliko new york"))
    result = effect(without, echo, TERMS, BiasingOptions())
    assert result.configs["en_clean"].verdict == "no verdict"
    assert result.no_verdict
    assert "with terms: WER on clean speech" in result.no_verdict


def test_few_speakers_have_no_verdict(tmp_path):
    runs = [
        write_run(tmp_path / name, sentences(4, f"call {word} now", "see you next year"))
        for name, word in (("plain", "calico"), ("biased", "kaliko"))
    ]
    assert effect(*runs, TERMS, BiasingOptions()).configs["en_clean"].verdict == "no verdict"


def test_harm_is_told_beside_gain():
    def of(value: float, p: float) -> Change:
        return Change(without=0, with_terms=value, change=ScoreValue(value=value), p=p, units=20)

    def said(recall: Change, alarms: Change, wer: Change) -> str:
        return verdict({"recall": recall, "false_alarms": alarms, "anti_wer": wer}, 0.05)

    assert said(of(10, 0.01), of(5, 0.01), of(0, 1.0)) == "helps and harms"
    assert said(of(10, 0.2), of(0, 1.0), of(3, 0.04)) == "harms"
    assert said(of(-10, 0.01), of(0, 1.0), of(0, 1.0)) == "harms"
    assert said(of(10, 0.06), of(0, 1.0), of(0, 1.0)) == "no clear effect"
    assert said(of(10, 0.01), of(-1, 0.01), of(-2, 0.01)) == "helps"


def test_terms_are_counted_word_by_word():
    assert term_counts("new york new yorkshire", [("new", "york"), ("new",)]).tolist() == [1, 2]
    assert np.array_equal(term_counts("", [("new",)]), [0])


def test_runs_of_other_clips_are_refused(tmp_path):
    runs = [write_run(tmp_path / name, [(text, text)] * 6) for name, text in (("plain", "a b"), ("biased", "a c"))]
    with pytest.raises(UserError, match="not of the same clips"):
        effect(*runs, TERMS, BiasingOptions())


ADAPTER = """
from speech_robust_bench.models.interface import Described
from speech_robust_bench.models.prompts import read_terms


class Listener(Described):
    terms = ()

    def transcribe(self, clips, rate, language):
        return [" ".join(["the", *self.terms])] * len(clips)


def load(target, *, terms: str = ""):
    listener = Listener("listener", None, {"terms": terms})
    listener.terms = read_terms(terms) if terms else ()
    return listener
"""


def test_the_command_runs_a_model_twice_and_reports(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "listening.py").write_text(ADAPTER)
    (tmp_path / "terms.txt").write_text("bakery\n")
    known = core_extensions.extensions()
    listener = types.SimpleNamespace(ADAPTERS={"listener": "listening"})
    monkeypatch.setattr(core_extensions, "extensions", lambda: [*known, listener])
    command = "biasing en-demo_clean --model listener --terms terms.txt --corpus en-demo --quiet"
    assert main(command.split()) in (0, None)
    shown = capsys.readouterr().out
    assert "no verdict" in shown
    written = json.loads((tmp_path / "runs" / "listener-biased" / "biasing.json").read_text())
    recall = written["configs"]["en-demo_clean"]["recall"]
    assert (recall["without"], recall["with_terms"]) == (0, 100)
    assert main(["report", "runs/listener-biased", "--out", "page.html"]) in (0, None)
    assert "Lists of terms" in (tmp_path / "page.html").read_text()
    runs = ["--plain", "runs/listener", "--biased", "runs/listener-biased"]
    assert main(["biasing", *runs, "--terms", "terms.txt", "--json"]) in (0, None)
