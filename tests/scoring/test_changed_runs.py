"""Predictions or results that were edited after the run are refused, with what was changed, unless asked for."""

from __future__ import annotations

import hashlib
import json

import pytest
from support.run_folders import TEXTS, write_run

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.rows import transcripts_digest

PREDICTIONS = {"clean": list(TEXTS.values()), "noise_sev1": ["the quick brown box", *list(TEXTS.values())[1:]]}
NOISE = "en-tiny_noise_sev1.jsonl"


@pytest.fixture
def run(tmp_path):
    """A run folder with the hashes that `srb run` records."""
    folder = write_run(tmp_path / "m", "m", PREDICTIONS)
    about = json.loads((folder / "run.json").read_text())
    for config, entry in about["configs"].items():
        data = (folder / f"{config}.jsonl").read_bytes()
        lines = [json.loads(line) for line in data.splitlines()]
        entry["sha256"] = hashlib.sha256(data).hexdigest()
        entry["rows_sha256"] = transcripts_digest((line["id"], line["text"]) for line in lines)
    (folder / "run.json").write_text(json.dumps(about))
    return folder


def _edit(run, change):
    lines = [json.loads(line) for line in (run / NOISE).read_text().splitlines()]
    (run / NOISE).write_text("".join(json.dumps(line) + "\n" for line in change(lines)))


CHANGES = {
    "clips taken out": (lambda lines: lines[:1], "has 1 lines, the run wrote 4"),
    "references replaced": (
        lambda lines: [{**line, "text": line["pred_text"]} for line in lines],
        "has other ids or references than the data it was run on",
    ),
    "a prediction put right": (
        lambda lines: [{**line, "pred_text": line["text"]} for line in lines],
        "was changed after the run",
    ),
}


@pytest.mark.parametrize("name", ["clips taken out", "references replaced"])
def test_an_edit_shows_without_the_hash_too(run, capsys, name):
    change, message = CHANGES[name]
    about = json.loads((run / "run.json").read_text())
    for entry in about["configs"].values():
        del entry["sha256"]
    (run / "run.json").write_text(json.dumps(about))
    assert main(["score", str(run)]) == 0
    _edit(run, change)
    assert main(["score", str(run)]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("command", ["score", "table"])
@pytest.mark.parametrize("name", CHANGES)
def test_edited_predictions_are_refused_unless_asked_for(run, capsys, name, command):
    change, message = CHANGES[name]
    assert main([command, str(run)]) == 0
    _edit(run, change)
    assert main([command, str(run)]) == 2
    assert message in capsys.readouterr().err
    assert main([command, str(run), "--allow-changed"]) == 0


def test_lines_that_are_no_predictions_are_one_line(run, capsys):
    (run / NOISE).write_text("{}\n")
    assert main(["score", str(run)]) == 2
    assert "was changed after the run" in capsys.readouterr().err


def test_an_edited_results_file_is_refused_unless_asked_for(run, capsys):
    assert main(["score", str(run)]) == 0
    path = run / "results.json"
    results = json.loads(path.read_text())
    results["configs"]["en-tiny_noise_sev1"]["wer"]["value"] = 0.0
    path.write_text(json.dumps(results))
    assert main(["table", str(run)]) == 2
    assert "results.json: was changed since it was scored" in capsys.readouterr().err
    assert main(["table", str(run), "--allow-changed"]) == 0
    assert main(["score", str(run)]) == 0  # makes it again
    assert main(["table", str(run)]) == 0


@pytest.mark.parametrize("text", ["[]", "{", '{"options": []}', '{"configs": 3}', "[" * 100_000, "null"])
def test_an_odd_results_file_is_made_again(run, text):
    (run / "results.json").write_text(text)
    assert main(["table", str(run)]) == 0


def test_names_reach_no_terminal_or_spreadsheet_as_they_are(run, capsys):
    about = json.loads((run / "run.json").read_text())
    about["model"] = '\x1b]0;x\x07=HYPERLINK("http://x")'
    (run / "run.json").write_text(json.dumps(about))
    for form in ((), ("--csv",), ("--markdown",), ("--latex",)):
        assert main(["table", str(run), *form]) == 0
        out = capsys.readouterr()
        assert "\x1b" not in out.out + out.err
    about["model"] = '=HYPERLINK("http://x")'
    (run / "run.json").write_text(json.dumps(about))
    assert main(["score", str(run)]) == 0
    capsys.readouterr()
    assert main(["table", str(run), "--csv"]) == 0
    assert ",=" not in capsys.readouterr().out
