"""Two talkers from the command to the leaderboard: run with a separator and without, scored, shown, verified."""

from __future__ import annotations

import json

import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.leaderboard import board
from speech_robust_bench.push.verify import verify
from speech_robust_bench.push.verify_process import check

CONFIGS = ["en-demo_clean", "en-demo_overlap_sev1", "en-demo_overlap_sev4"]
# the recogniser knows every clip; the separator of this test splits nothing, so each stream has the same length
MODULE = """
import numpy as np

def split(clip, rate):
    return np.stack([clip, 0.5 * clip])

def first(clips, rate, language):
    return ["so it is said" for clip in clips]

def streams(clips, rate, language):
    sum(range(2_000_000))  # what takes no time is refused
    return ["so it is said" if np.abs(clip).max() > 0.3 else "and more of it" for clip in clips]
"""


@pytest.fixture
def runs(tmp_path, monkeypatch):
    (tmp_path / "two_streams.py").write_text(MODULE)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.chdir(tmp_path)
    corpus = ["--corpus", "en-demo", "--limit", "4"]
    assert main(["build", *CONFIGS, *corpus, "--out", "srb", "--workers", "1"]) == 0
    front = "front:python:two_streams:split|python:two_streams:streams"
    for name, model in (("one", "python:two_streams:first"), ("two", front)):
        assert main(["run", *CONFIGS, "--model", model, "--name", name, "--data", "srb", "--quiet"]) == 0
    return tmp_path / "runs"


def test_two_talkers_reach_every_stage(runs, tmp_path, capsys):
    for name in ("one", "two"):
        assert main(["score", str(runs / name), "--replicates", "20"]) == 0
    entries = [json.loads((runs / name / "results.json").read_text())["configs"] for name in ("one", "two")]
    overlaps = [entry["en-demo_overlap_sev4"]["measures"]["overlap"] for entry in entries]
    assert [each["two_texts"] for each in overlaps] == [0, 4]
    words = {c: e["hits"] + e["substitutions"] + e["deletions"] for c, e in entries[0].items()}
    assert words["en-demo_overlap_sev4"] > words["en-demo_clean"]  # of both talkers
    assert entries[0]["en-demo_overlap_sev4"]["werd"]["value"] is not None
    capsys.readouterr()
    assert main(["table", "--overlap", str(runs / "one"), str(runs / "two")]) == 0
    assert capsys.readouterr().out.count("en-demo_overlap_sev4") == 2
    assert main(["compare", str(runs / "one"), str(runs / "two"), "--by", "config", "--replicates", "20"]) == 0
    assert "overlap_sev4" in capsys.readouterr().out
    page = tmp_path / "report.html"
    assert main(["report", str(runs / "one"), str(runs / "two"), "--out", str(page)]) == 0
    assert "Two talkers at once" in page.read_text()
    assert main(["diagnose", str(runs / "two")]) == 0
    known = expected_rows.load(str(tmp_path / "srb"))
    assert main(["score", str(runs / "two")]) == 0
    sent = submission.make(runs / "two", tmp_path / "sent", {"owner": "acme", "name": "two"})
    assert check(sent, known, out=tmp_path / "verified").reasons == []
    (row,) = board.load(tmp_path / "verified").rows("en")
    assert row.entry.name == "acme/two"


def test_another_second_transcript_is_refused(runs, tmp_path):
    """Both transcripts are in the hash, so nobody can make the second talker say what a recogniser wrote."""
    path = runs / "two" / "en-demo_overlap_sev1.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    lines[0]["text"] = lines[0]["text"].partition(" <sc> ")[0] + " <sc> and more of it"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert main(["score", str(runs / "two"), "--allow-changed"]) == 0
    sent = submission.make(runs / "two", tmp_path / "sent", {"owner": "acme", "name": "two"})
    assert "references are not those of the benchmark" in " ".join(
        verify(sent, expected_rows.load(str(tmp_path / "srb"))).reasons
    )
