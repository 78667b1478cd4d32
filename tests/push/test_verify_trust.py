"""Nothing false is ranked: what a submission says of itself, whose it is, copies of others, and a sample run again."""

from __future__ import annotations

import json
import shutil

import pytest
from support.built_data import make_built, text_of
from support.fake_runs import make_run
from support.forged_submissions import edit, seal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.leaderboard import board
from speech_robust_bench.push.rerun import rerun
from speech_robust_bench.push.verify import verify
from speech_robust_bench.push.verify_process import check
from speech_robust_bench.scoring import results
from speech_robust_bench.scoring.runs import open_run

CONFIGS = ["en_clean", "en_noise_sev1", "en_noise_sev3"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("data") / "srb", CONFIGS, clips=30)


@pytest.fixture(scope="module")
def known(data):
    return expected_rows.load(str(data))


def sent(folder, data, name="m", owner="acme", rate=0.2, seed=0):
    """A submission of a recogniser that loses words by chance."""
    run = make_run(folder / f"run-{owner}-{name}-{seed}", data, name, rate, seed)
    return submission.make(run, folder / f"{owner}-{name}-{seed}", {"owner": owner, "name": name})


def again(folder):
    """Score and seal a submission whose predictions were changed, as somebody who cheats would."""
    run = json.loads((folder / "run.json").read_text())
    (folder / "results.json").write_text(json.dumps(results.results(open_run(folder)).as_json()))
    for config in run["configs"]:
        lines = [json.loads(line) for line in (folder / f"{config}.jsonl").read_text().splitlines()]
        run["configs"][config]["failed"] = sum(line["pred_text"] is None for line in lines)
    (folder / "run.json").write_text(json.dumps(run))
    seal(folder)


def predict(folder, config, text):
    """Replace the predictions of a config by those of a function of (id, reference)."""
    path = folder / f"{config}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    path.write_text("".join(json.dumps({**line, "pred_text": text(line["id"], line["text"])}) + "\n" for line in lines))


def test_another_benchmark_version_is_refused(data, known, tmp_path):
    folder = sent(tmp_path, data)
    edit(folder, "submission.json", lambda about: about.update(benchmark_version="7"))
    assert "'benchmark_version' is 7" in verify(folder, known).reasons[0]


@pytest.mark.parametrize("key", ["rtf", "rows", "content_sha256", "seconds"])
def test_a_run_file_that_lacks_a_key_is_refused(data, known, tmp_path, key):
    folder = sent(tmp_path, data)
    edit(folder, "run.json", lambda run: run["configs"]["en_noise_sev1"].pop(key))
    seal(folder)
    assert any(f"en_noise_sev1.{key} says nothing" in reason for reason in verify(folder, known).reasons)


def test_one_that_breaks_the_checker_costs_only_itself(data, known, tmp_path, monkeypatch, capsys):
    """Whatever happens in the process, the next submission is checked."""
    from speech_robust_bench.cli.main import main

    good, bad = sent(tmp_path, data), sent(tmp_path, data, name="bad")
    edit(bad, "submission.json", lambda about: about.update(model=None))
    monkeypatch.setattr(
        "speech_robust_bench.push.verify_process.MEMORY_BYTES", 1
    )  # of this process; the child reads its own
    assert main(["verify", str(bad), str(good), "--data", str(data)]) == 1
    out = capsys.readouterr().out
    assert f"{bad.name}: refused" in out
    assert f"{good.name}: accepted" in out


def test_a_checker_that_dies_is_a_refusal(data, known, tmp_path, monkeypatch):
    folder = sent(tmp_path, data)
    monkeypatch.setattr("sys.executable", shutil.which("false"))
    assert "breaks the checker (exit code 1)" in check(folder, known).reasons[0]


def test_direction_marks_in_a_transcript_are_let_in(tmp_path, monkeypatch):
    """Hebrew and Arabic transcripts hold U+200E and U+200F; the builder lets them in, so must `verify`."""
    monkeypatch.setattr("support.built_data.text_of", lambda index: f"\u200e{text_of(index)}\u200f")
    place = make_built(tmp_path / "srb", ["en_clean"], clips=4)
    folder = sent(tmp_path, place)
    assert verify(folder, expected_rows.load(str(place))).reasons == []


def test_names_belong_to_owners_and_versions_are_kept(data, known, tmp_path):
    out = tmp_path / "verified"
    first, second = sent(tmp_path, data, rate=0.3), sent(tmp_path, data, rate=0.1, seed=1)
    other = sent(tmp_path, data, owner="zoe", rate=0.2, seed=2)
    for folder in (first, other):
        assert check(folder, known, out=out).accepted
    before = json.loads((out / "acme--m.json").read_text())
    assert check(first, known, out=out).accepted  # the same again is no new version
    assert json.loads((out / "acme--m.json").read_text())["version"] == 1
    assert check(second, known, out=out).accepted
    after = json.loads((out / "acme--m.json").read_text())
    assert (before["version"], after["version"]) == (1, 2)
    assert [past["nwerd"]["en"] for past in after["history"]] == [before["languages"]["en"]["overall"]["nwerd"]]
    assert json.loads((out / "history" / "acme--m--1.json").read_text()) == before
    assert sorted(entry.name for entry in board.load(out).entries) == ["acme/m", "zoe/m"]


def test_somebody_elses_name_is_refused(data, known, tmp_path):
    folder = sent(tmp_path, data)
    assert "belongs to 'acme', but mallory sent it" in check(folder, known, author="mallory").reasons[0]
    assert check(folder, known, author="Acme").accepted


def test_references_as_predictions_are_flagged(data, known, tmp_path):
    folder = sent(tmp_path, data)
    predict(folder, "en_noise_sev3", lambda clip, text: text)
    again(folder)
    verdict = verify(folder, known)
    assert verdict.reasons == []
    assert verdict.flags == ["en_noise_sev3: 30 of 30 predictions are exactly the references"]


def test_references_in_another_dress_are_flagged(data, known, tmp_path):
    folder = sent(tmp_path, data)
    predict(folder, "en_noise_sev3", lambda clip, text: f"{text.upper()}!")
    again(folder)
    told = "30 of 30 predictions from severity 3 on are the references, but for case and punctuation"
    assert verify(folder, known).flags == [told]


def test_clean_predictions_under_noise_are_flagged_or_refused(data, known, tmp_path):
    folder = sent(tmp_path, data, rate=0.02)
    clean = {json.loads(line)["id"]: json.loads(line)["pred_text"] for line in (folder / "en_clean.jsonl").open()}
    predict(folder, "en_noise_sev3", lambda clip, text: clean[clip])
    again(folder)
    assert any("predictions are those of en_clean" in flag for flag in verify(folder, known).flags)
    wrong = sent(tmp_path, data, name="wrong", rate=3.0)  # so many errors that the copy is certain
    clean = {json.loads(line)["id"]: json.loads(line)["pred_text"] for line in (wrong / "en_clean.jsonl").open()}
    predict(wrong, "en_noise_sev3", lambda clip, text: clean[clip])
    again(wrong)
    assert any("transcripts are those of en_clean" in reason for reason in verify(wrong, known).reasons)
    predict(wrong, "en_noise_sev3", lambda clip, text: f"{clean[clip].upper()}!")
    again(wrong)
    told = [flag for flag in verify(wrong, known).flags if "wrong predictions of en_clean again" in flag]
    assert told
    assert told[0].startswith("en_noise_sev3: has ")


def test_two_names_that_would_share_a_file_are_refused(data, known, tmp_path):
    for owner, name in (("acme--labs", "m"), ("acme", "labs--m")):
        with pytest.raises(UserError, match=r"labs"):
            sent(tmp_path, data, name=name, owner=owner)
        folder = sent(tmp_path / name, data, name=name.replace("--", "-"), owner=owner.replace("--", "-"))
        model = {"owner": owner, "name": name}
        edit(folder, "submission.json", lambda about, model=model: about["model"].update(model))
        seal(folder)
        assert any("'model." in reason for reason in verify(folder, known).reasons)


def test_a_copy_of_another_submission_is_flagged_and_not_ranked(data, known, tmp_path):
    out = tmp_path / "verified"
    check(sent(tmp_path, data, rate=0.9), known, out=out)
    check(sent(tmp_path, data, owner="mallory", rate=0.9), known, out=out)
    copied = json.loads((out / "mallory--m.json").read_text())
    assert "the wrong transcripts are those of acme/m, to the letter" in copied["flags"][0]
    rows = {row.entry.name: row for row in board.load(out).rows("en")}
    assert rows["mallory/m"].place is None
    assert rows["acme/m"].place == 1


def test_a_changed_copy_is_flagged_and_the_original_stays(data, known, tmp_path):
    out = tmp_path / "verified"
    original = sent(tmp_path, data, rate=0.9)
    check(original, known, out=out)
    copy = sent(tmp_path, data, owner="mallory", rate=0.9)
    for config in CONFIGS:
        texts = {json.loads(line)["id"]: json.loads(line)["pred_text"] for line in (copy / f"{config}.jsonl").open()}
        predict(copy, config, lambda clip, text, texts=texts: f"{texts[clip]} indeed".capitalize())
    again(copy)
    (flag,) = check(copy, known, out=out).flags
    assert flag.startswith("en: ")
    assert flag.endswith("wrong words of a sample are those of acme/m, on the same clips")
    other = check(sent(tmp_path, data, owner="other", rate=0.9, seed=1), known, out=out)
    assert other.flags == []
    assert check(original, known, out=out).flags == []  # verified again, after its copy
    assert {row.entry.name for row in board.load(out).rows("en") if row.place} == {"acme/m", "other/m"}


RECOGNISER = """
def transcribe(clips, rate, language):
    return [TEXTS[len(clip)] for clip in clips]
"""


def test_a_sample_is_run_again_with_a_recorded_seed(data, known, tmp_path, monkeypatch, capsys):
    """A recogniser that knows each clip by its length gives the same words again; another one does not."""
    from speech_robust_bench.cli.main import main

    folder = sent(tmp_path, data, rate=0.0)
    texts = {800 + 100 * index: text_of(index) for index in range(30)}
    for name, said in (("same_words", texts), ("other_words", dict.fromkeys(texts, "nothing of it"))):
        (tmp_path / f"{name}.py").write_text(f"TEXTS = {said!r}\n{RECOGNISER}")
    monkeypatch.syspath_prepend(str(tmp_path))
    edit(folder, "run.json", lambda run: run.update(revision=None))
    again(folder)
    words = ["verify", str(folder), "--data", str(data), "--out", str(tmp_path / "verified"), "--sample", "12"]
    assert main([*words, "--rerun", "python:same_words:transcribe"]) == 0
    noted = json.loads((tmp_path / "verified" / "acme--m.json").read_text())["rerun"]
    assert (noted["clips"], noted["same"], noted["difference"], noted["agrees"]) == (12, 12, 0.0, True)
    assert f"seed {noted['seed']}" in capsys.readouterr().out
    assert main([*words, "--rerun", "python:other_words:transcribe"]) == 1
    assert "rerun does not agree: 0 of 12" in capsys.readouterr().out
    seeds = {rerun(folder, data, "python:same_words:transcribe", 2).seed for _ in range(2)}
    assert len(seeds) == 2


def test_a_rerun_with_other_weights_is_refused(data, tmp_path, monkeypatch):
    folder = sent(tmp_path, data)
    (tmp_path / "weights.py").write_text(f"TEXTS = {{}}\n{RECOGNISER}")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(UserError, match="the submission was made with 0000"):
        rerun(folder, data, "python:weights:transcribe", 2)
