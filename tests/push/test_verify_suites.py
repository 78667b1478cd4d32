"""A run of a suite from the command to the leaderboard: submitted, verified against its own clips, marked, not ranked
beside the whole."""

from __future__ import annotations

import json

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import edit, seal

from speech_robust_bench.builders import suites
from speech_robust_bench.builders.suites import Suite, SuiteFile
from speech_robust_bench.cli.main import main
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.leaderboard import board, pages
from speech_robust_bench.push.verify import verify
from speech_robust_bench.push.verify_process import check

CONFIGS = {"noise_env": ["noise_sev1", "noise_sev3"]}
SMALL = Suite("small", SuiteFile(version=2, configs=CONFIGS, pool=8, clips={"noise_env": 3}))


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setattr(suites, "SUITES", {"small": ""})
    monkeypatch.setattr(suites, "load", lambda name: SMALL)
    monkeypatch.chdir(tmp_path)
    return make_built(tmp_path / "srb", ["en_clean", "en_noise_sev1", "en_noise_sev2", "en_noise_sev3"], clips=30)


@pytest.fixture
def sent(data, tmp_path):
    """A submission of a run of the suite."""
    command = ["run", "--suite", "small", "--model", "cmd:echo the cat sat {}", "--name", "few", "--quiet"]
    assert main(command) == 0
    return submission.make("runs/few", tmp_path / "few", {"owner": "acme", "name": "few"})


def test_it_is_accepted_marked_and_not_ranked_beside_the_whole(sent, data, tmp_path):
    known = expected_rows.load(str(data))
    out = tmp_path / "verified"
    outcome = check(sent, known, out=out)
    assert outcome.reasons == []
    verified = json.loads((out / "acme--few.json").read_text())
    assert verified["suite"] == "small-2"
    assert verified["reproduce"] == ""  # a program of the submitter's own is nothing for visitors to run
    alone = board.load(out).rows("en")
    assert [row.place for row in alone] == [None] or alone[0].why  # it gets every word wrong, which is the reason then
    whole = make_run(tmp_path / "whole", data, "whole", 0.1, 0)
    made = submission.make(whole, tmp_path / "sent-whole", {"owner": "acme", "name": "whole"})
    assert check(made, known, out=out).accepted
    rows = {row.entry.name: row for row in board.load(out).rows("en")}
    assert rows["acme/whole"].place == 1
    assert rows["acme/few"].place is None
    assert rows["acme/few"].why == "suite small-2: a part of the configs and clips"
    assert '<small class="suite"' in "".join(pages.ranking(list(rows.values()), "en"))


def test_a_run_on_a_corpus_is_reproduced_from_it(tmp_path):
    run = make_run(tmp_path / "m", make_built(tmp_path / "srb", ["en_clean"]), "m", 0.1, 0)
    about = {"spec": "moonshine", "data": "--corpus en=LibriSpeech", "perturbed": {"corpora": {"en": "LibriSpeech"}}}
    edit(run, "run.json", lambda record: record.update(about))
    made = submission.make(run, tmp_path / "sent", {"owner": "acme"})
    command = json.loads((made / "submission.json").read_text())["reproduce"]
    assert command == "srb run --model moonshine 'en*_*' --corpus en=LibriSpeech --name m && srb score runs/m"


def test_other_clips_than_those_of_the_suite_are_refused(sent, data):
    known = expected_rows.load(str(data))
    edit(sent, "results.json", lambda scored: scored.update(suite="small-1"))
    seal(sent)
    assert "knows no suite small-1" in verify(sent, known).reasons[0]
    edit(sent, "results.json", lambda scored: scored.update(suite=None))
    seal(sent)
    assert "missing; a submission has every config" in verify(sent, known).reasons[0]
    edit(sent, "results.json", lambda scored: scored.update(suite="small-2"))
    path = sent / "en_noise_sev1.jsonl"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:-1]))
    seal(sent)
    assert "2 lines, but the config has 3 clips" in verify(sent, known).reasons[0]


def test_a_suite_perturbed_as_it_ran_has_no_hash_of_the_whole(sent, data):
    known = expected_rows.load(str(data))
    edit(sent, "run.json", lambda run: run["configs"]["en_noise_sev1"].update(content_sha256=None))
    seal(sent)
    assert verify(sent, known).reasons == []


def test_the_file_of_the_benchmark_has_the_suites_clips(data):
    known = expected_rows.load(str(data))
    again = expected_rows.from_json(expected_rows.to_json(known))
    assert again == known
    parts = expected_rows.of_suite(again, "small-2")
    assert {config: (part.rows, part.of) for config, part in parts.items()} == {
        "en_clean": (8, 30),
        "en_noise_sev1": (3, 30),
        "en_noise_sev3": (3, 30),
    }
