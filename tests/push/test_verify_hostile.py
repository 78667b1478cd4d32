"""Submissions that are broken or meant to harm: each is refused with its reason, and the honest one is accepted."""

from __future__ import annotations

import os
import pickle
import shutil
import zipfile
import zlib

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import each_line, edit, edit_lines, seal, set_in

from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.verify import verify

CONFIGS = ["en_clean", "en_noise_sev1", "en_noise_sev3", "en_gaussian_sev2", "en_rir_sev2", "en_silence"]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("truth") / "srb", CONFIGS, clips=30)


@pytest.fixture(scope="module")
def known(data):
    return expected_rows.load(str(data))


@pytest.fixture(scope="module")
def original(data, tmp_path_factory):
    base = tmp_path_factory.mktemp("honest")
    run = make_run(base / "runs" / "hears", data, "hears")
    return submission.make(run, base / "hears", {"params_m": 39.0, "id": "acme/hears", "licence": "MIT"})


@pytest.fixture
def honest(original, tmp_path):
    return shutil.copytree(original, tmp_path / "hears")


NOISE = "en_noise_sev3"


BAD = {
    "edited score": (
        lambda f: edit(f, "results.json", set_in("configs", NOISE, "wer", "value", value=1.0)),
        "configs.en_noise_sev3.wer.value says 1.0, the predictions give",
    ),
    "edited average": (
        lambda f: edit(f, "results.json", set_in("languages", "en", "overall", "nwerd", "value", value=0.5)),
        "languages.en.overall.nwerd.value says 0.5, the predictions give",
    ),
    "edited interval": (
        lambda f: edit(f, "results.json", set_in("configs", NOISE, "wer", "interval", value=[0.0, 1.0])),
        "configs.en_noise_sev3.wer.interval says [0.0, 1.0]",
    ),
    "a score left out": (
        lambda f: edit(f, "results.json", lambda made: made["configs"].pop(NOISE)),
        "configs.en_noise_sev3 says nothing",
    ),
    "better predictions, old results": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(pred_text=line["text"]))),
        "configs.en_noise_sev3.wer.value says",
    ),
    "predictions swapped between configs": (
        lambda f: shutil.copyfile(f / "en_noise_sev1.jsonl", f / f"{NOISE}.jsonl"),
        "'audio_filepath' is 'en_noise_sev1/clip-0000.flac', of another clip or config",
    ),
    "predictions of a mild config under a hard one's name": (
        lambda f: (f / f"{NOISE}.jsonl").write_text(
            (f / "en_gaussian_sev2.jsonl").read_text().replace("en_gaussian_sev2", NOISE)
        ),
        "to the letter",
    ),
    "predictions swapped between clips": (
        lambda f: edit_lines(f, NOISE, lambda ls: [{**a, "id": b["id"]} for a, b in zip(ls, ls[::-1], strict=True)]),
        "of another clip or config",
    ),
    "missing config": (lambda f: (f / f"{NOISE}.jsonl").unlink(), "en_noise_sev3: missing; a submission has every"),
    "missing clip": (lambda f: edit_lines(f, NOISE, lambda lines: lines[:-1]), "29 lines, but the config has 30 clips"),
    "one clip too many": (
        lambda f: edit_lines(
            f, NOISE, lambda ls: [*ls, {**ls[0], "id": "more", "audio_filepath": f"{NOISE}/more.flac"}]
        ),
        "more lines than the config has clips (30)",
    ),
    "duplicate id": (
        lambda f: edit_lines(f, NOISE, lambda ls: [ls[0], ls[0], *ls[2:]]),
        "line 2: the id 'clip-0000' occurs twice",
    ),
    "clips in another order": (lambda f: edit_lines(f, NOISE, lambda lines: lines[::-1]), "not in its order"),
    "edited reference": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(text=line["pred_text"]))),
        "ids or references are not those of the benchmark",
    ),
    "edited gender": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(gender="female"))),
        "durations or speakers are not those of the benchmark",
    ),
    "edited duration": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(duration=line["duration"] * 10))),
        "durations or speakers are not those of the benchmark",
    ),
    "a config that does not exist": (
        lambda f: shutil.copyfile(f / f"{NOISE}.jsonl", f / "en_unheard_sev1.jsonl"),
        "the benchmark has no config of that name",
    ),
    "NaN": (
        lambda f: (f / f"{NOISE}.jsonl").write_text(
            (f / f"{NOISE}.jsonl").read_text().replace('"time": ', '"time": NaN, "x": ', 1)
        ),
        "line 1: NaN is not a number that JSON has",
    ),
    "infinity in results": (
        lambda f: (f / "results.json").write_text('{"schema": 1, "model": 1e999}'),
        "results.json: 1e999 is too large a number",
    ),
    "impossible speed": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(time=1e-9))),
        "times faster than it is spoken, which nothing does",
    ),
    "no time at all": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(time=0))),
        "line 1: recognised in no time at all",
    ),
    "negative time": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(time=-1))),
        "line 1: 'time': expected `float` >= 0",
    ),
    "edited speed in run.json": (
        lambda f: edit(f, "run.json", set_in("configs", NOISE, "rtf", value=0.00001)),
        "run.json: en_noise_sev3.rtf says 1e-05, it is",
    ),
    "time as text": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(time="fast"))),
        "line 1: 'time': expected `float`, got `str`",
    ),
    "a failed clip without its error": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(pred_text=None))),
        "a clip has either a transcript or an 'error'",
    ),
    "a long line": (
        lambda f: edit_lines(f, NOISE, lambda lines: [{**lines[0], "pred_text": "x" * 3_000_000}, *lines[1:]]),
        "line 1: longer than 2000000 bytes",
    ),
    "a transcript without end": (
        lambda f: edit_lines(f, NOISE, lambda lines: [{**lines[0], "pred_text": "x" * 300_000}, *lines[1:]]),
        "line 1: 'pred_text': expected `str` of length <= 200000",
    ),
    "an unknown key": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(__class__="os.system"))),
        "line 1: object contains unknown field `__class__`",
    ),
    "deep nesting": (
        lambda f: (f / "results.json").write_text('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}"),
        "results.json: nested deeper than 12",
    ),
    "a number of a million digits": (
        lambda f: (f / "results.json").write_text('{"schema": ' + "9" * 1_000_000 + "}"),
        "results.json: not JSON",
    ),
    "a key twice": (
        lambda f: (f / "results.json").write_text('{"schema": 1, "schema": 1}'),
        "results.json: a key occurs twice",
    ),
    "not UTF-8": (lambda f: (f / f"{NOISE}.jsonl").write_bytes(b"\xff\xfe{}\n"), "line 1: not UTF-8 text"),
    "terminal codes": (
        lambda f: edit_lines(f, NOISE, lambda ls: [{**ls[0], "pred_text": "\x1b[2Jaccepted"}, *ls[1:]]),
        "line 1: a control character (U+001B)",
    ),
    "text that turns around": (
        lambda f: edit(f, "submission.json", set_in("model", "training_data", value="\u202eabc")),
        "submission.json: a control character (U+202E)",
    ),
    "half a character": (
        lambda f: edit_lines(f, NOISE, lambda ls: [{**ls[0], "pred_text": "\ud800"}, *ls[1:]]),
        "line 1: a control character (U+D800)",
    ),
    "a script as the model's name": (
        lambda f: edit(f, "submission.json", set_in("model", "name", value="<script>alert(1)</script>")),
        "'model.name': has characters that are not allowed",
    ),
    "HTML in what it was trained on": (
        lambda f: edit(f, "submission.json", set_in("model", "training_data", value="<img src=x onerror=alert(1)>")),
        "'model.training_data': has characters that are not allowed",
    ),
    "a script as the address": (
        lambda f: edit(f, "submission.json", set_in("model", "url", value="javascript:alert(1)")),
        "'model.url': has characters that are not allowed",
    ),
    "a path as the model's name": (
        lambda f: edit(f, "submission.json", set_in("model", "name", value="../../etc/passwd")),
        "'model.name': has characters that are not allowed",
    ),
    "a path in audio_filepath": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(audio_filepath="../../../etc/passwd"))),
        "'audio_filepath' is '../../../etc/passwd', of another clip",
    ),
    "another benchmark version": (
        lambda f: edit(f, "run.json", set_in("configs", NOISE, "benchmark_version", value="0")),
        "run.json: en_noise_sev3.benchmark_version says 0, this benchmark has 1",
    ),
    "other audio": (
        lambda f: edit(f, "run.json", set_in("configs", NOISE, "content_sha256", value="0" * 64)),
        "run.json: en_noise_sev3.content_sha256 says 000",
    ),
    "another version of srb": (
        lambda f: edit(f, "submission.json", set_in("software", "speech-robust-bench", value="0.0.1")),
        "made with srb 0.0.1, this is",
    ),
    "another scoring": (
        lambda f: edit(f, "results.json", set_in("options", "normaliser", value="whisper-en")),
        "not scored with the leaderboard's options",
    ),
    "another version of the benchmark": (
        lambda f: edit(f, "submission.json", set_in("benchmark_version", value="2")),
        "submission.json: 'benchmark_version' is 2, the benchmark's is 1",
    ),
    "no versions of software": (
        lambda f: edit(f, "submission.json", set_in("software", value=None)),
        "submission.json: 'software': expected `object`",
    ),
    "scored with another version of srb": (
        lambda f: edit(f, "results.json", set_in("software", "speech-robust-bench", value="0")),
        "results.json: scored with srb 0, this is",
    ),
    "an unknown schema": (
        lambda f: edit(f, "submission.json", set_in("schema", value=0)),
        "submission.json: 'schema': invalid enum value 0",
    ),
    "an unknown field": (
        lambda f: edit(f, "submission.json", set_in("more", value=1)),
        "submission.json: object contains unknown field `more`",
    ),
    "a script as the command": (
        lambda f: edit(f, "submission.json", set_in("reproduce", value="<script>")),
        "submission.json: 'reproduce': ",
    ),
    "a command of any length": (
        lambda f: edit(f, "submission.json", set_in("reproduce", value="x" * 1001)),
        "submission.json: 'reproduce': ",
    ),
    "a run of another model": (
        lambda f: edit(f, "run.json", set_in("model", value="other")),
        "run.json: is of another model than submission.json says",
    ),
    "a config less in run.json": (
        lambda f: edit(f, "run.json", lambda made: made["configs"].pop(NOISE)),
        "run.json: 'configs' are not those that the submission has predictions of",
    ),
    "a config without facts in run.json": (
        lambda f: edit(f, "run.json", set_in("configs", NOISE, value={})),
        "run.json: en_noise_sev3.rows says nothing, it is 30",
    ),
    "another version of a scenario": (
        lambda f: edit(f, "run.json", set_in("configs", NOISE, "scenario_version", value="2")),
        "run.json: en_noise_sev3.scenario_version says 2, this benchmark has 1",
    ),
    "an error beside a transcript": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(error="broken"))),
        "line 1: a clip has either a transcript or an 'error'",
    ),
    "another schema": (lambda f: edit(f, "results.json", set_in("schema", value=99)), "'schema' must be 2"),
    "results of another model": (
        lambda f: edit(f, "results.json", set_in("model", value="other")),
        "results.json: is of another model",
    ),
    "a zip bomb": (
        lambda f: _zip_bomb(f / "predictions.zip"),
        "predictions.zip: only JSON, JSONL and parquet are taken",
    ),
    "a compressed file under a plain name": (
        lambda f: (f / f"{NOISE}.jsonl").write_bytes(zlib.compress(b"\0" * 1_000_000)),
        "line 1: not UTF-8 text",
    ),
    "a pickle": (
        lambda f: (f / "results.pkl").write_bytes(pickle.dumps({"wer": 0})),
        "results.pkl: only JSON, JSONL and parquet are taken",
    ),
    "code": (
        lambda f: (f / "conftest.py").write_text("import os"),
        "conftest.py: only JSON, JSONL and parquet are taken",
    ),
    "a hidden file": (lambda f: (f / ".gitattributes").write_text("*"), ".gitattributes: only JSON"),
    "a subfolder": (lambda f: (f / "more").mkdir(), "more: not a plain file"),
    "a pipe": (lambda f: os.mkfifo(f / "en_echo_sev1.jsonl"), "en_echo_sev1.jsonl: not a plain file"),
    "a link out of the folder": (
        lambda f: ((f / f"{NOISE}.jsonl").unlink(), (f / f"{NOISE}.jsonl").symlink_to("/etc/passwd")),
        "en_noise_sev3.jsonl: a link; links are not followed",
    ),
    "an empty file": (lambda f: (f / f"{NOISE}.jsonl").write_text(""), "0 lines, but the config has 30 clips"),
    "no results": (lambda f: (f / "results.json").unlink(), "results.json: missing"),
}
UNSEALED = {
    "files as a list": (
        lambda f: edit(f, "submission.json", set_in("files", value=[])),
        "submission.json: 'files': expected `object`",
    ),
    "a hash that does not fit": (
        lambda f: edit_lines(f, NOISE, each_line(lambda line: line.update(pred_text="x"))),
        "en_noise_sev3.jsonl does not have the sha256 and size that 'files' says",
    ),
    "a listed path that leads away": (
        lambda f: edit(
            f, "submission.json", lambda made: made["files"].update({"../../x.json": {"sha256": "0", "size": 0}})
        ),
        "'../../x.json' leads out of the folder",
    ),
    "a file that is not listed": (
        lambda f: edit(f, "submission.json", lambda made: made["files"].pop("run.json")),
        "'run.json' is not listed in 'files'",
    ),
    "a gigabyte in one line": (
        lambda f: os.truncate(f / f"{NOISE}.jsonl", 1_000_000_000),
        "1000000000 bytes; the limit",
    ),
    "a gigabyte of submission.json": (
        lambda f: os.truncate(f / "submission.json", 1_000_000_000),
        "submission.json: 1000000000 bytes; the limit",
    ),
}


def _zip_bomb(path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("en_clean.jsonl", b"\0" * 10_000_000)


def test_the_honest_one_is_accepted(honest, known):
    verdict = verify(honest, known)
    assert verdict.reasons == []
    assert verdict.results is not None
    seal(honest)  # and sealing it again is no edit
    assert verify(honest, known).accepted


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_refused_with_its_reason(name, honest, known):
    change, reason = BAD[name]
    change(honest)
    if name not in ("a link out of the folder", "a pipe"):
        seal(honest)
    verdict = verify(honest, known)
    assert not verdict.accepted
    assert any(reason in line for line in verdict.reasons), verdict.reasons


@pytest.mark.parametrize("name", UNSEALED)
def test_a_careless_one_is_refused_with_its_reason(name, honest, known):
    change, reason = UNSEALED[name]
    change(honest)
    verdict = verify(honest, known)
    assert any(reason in line for line in verdict.reasons), verdict.reasons


def test_there_are_more_than_thirty():
    assert len(BAD) + len(UNSEALED) > 30


def test_an_archive_is_not_a_submission(tmp_path, known):
    _zip_bomb(tmp_path / "hears.zip")
    assert "not an archive" in verify(tmp_path / "hears.zip", known).reasons[0]


def test_reasons_are_printable(honest, known):
    (honest / "\x1b[31mred\n.py").write_text("")
    for reason in verify(honest, known).reasons:
        assert reason.isprintable()


def test_a_language_is_submitted_whole_or_not_at_all(honest, known):
    more = {**known, "es_clean": known["en_clean"].replace(language="es")}
    assert verify(honest, more).accepted
