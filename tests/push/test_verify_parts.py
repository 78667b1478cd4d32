"""The parts of `srb verify`, each by itself: what is close enough, what differs, which files and configs are there."""

import json

import pytest

from speech_robust_bench.core import __version__
from speech_robust_bench.core.records import FileFacts, RunConfig, RunRecord, SubmittedPrediction, convert
from speech_robust_bench.core.rows import transcripts_digest
from speech_robust_bench.core.untrusted_files import Refused
from speech_robust_bench.extensions.streaming.submission_check import StreamedLines
from speech_robust_bench.push import submission
from speech_robust_bench.push.evidence import Evidence
from speech_robust_bench.push.expected_rows import Expected, people_digest
from speech_robust_bench.push.submitted_files import SubmittedFiles, check_listed
from speech_robust_bench.push.verify import (
    Verdict,
    _check_coverage,
    _check_predictions,
    _check_run,
    _check_submission,
    _entry,
    _unpacked,
    close,
    differences,
)
from speech_robust_bench.scoring import results


@pytest.mark.parametrize(
    ("value", "expected", "tolerance", "is_close"),
    [
        (1.0, 1.1, 0.1000001, True),
        (1.1, 1.0, 0.09, False),
        (1, 1.0, 0, True),
        (True, 1, 0.5, False),
        (1, True, 0.5, False),
        (True, True, 0, True),
        ("1", 1, 5, False),
        (None, None, 0, True),
        (None, 0, 5, False),
        ([1, 2], [1, 2.05], 0.1, True),
        ([1, 2], [1, 2, 3], 9, False),
        ([1, 2], [1, 9], 1, False),
        ({"a": 1}, {"a": 1.05}, 0.1, True),
        ({"a": 1}, {"b": 1}, 9, False),
        ({"a": 1, "b": 2}, {"a": 1, "b": 9}, 1, False),
        ("a", "a", 0, True),
        ("a", "b", 0, False),
    ],
)
def test_close_is_equal_but_for_rounding(value, expected, tolerance, is_close):
    assert close(value, expected, tolerance) is is_close


def test_every_line_that_differs_is_said_by_its_place():
    claimed = {"a": {"value": 1.0, "interval": [1.0, 2.0]}, "b": "x", "mine": 3, "software": 1, "e": {"nwer": 2}}
    recomputed = {"a": {"value": 1.0001, "interval": [1.0015, 2.0]}, "b": "y", "c": 4, "software": 2, "e": {}}
    assert differences(claimed, recomputed, skip=("software",)) == [
        "b says x, the predictions give y",
        "c says nothing, the predictions give 4",
        "e.nwer says 2, the predictions give nothing",
        "mine says 3, the predictions give nothing",
    ]
    assert differences({"a": {"value": 1.0}}, {"a": {"value": 1.0002}}) == [
        "a.value says 1.0, the predictions give 1.0002"
    ]
    assert differences({"a": {"interval": [1.0]}}, {"a": {"interval": [1.0021]}}) == [
        "a.interval says [1.0], the predictions give [1.0021]"
    ]


def test_what_older_results_do_not_have_is_no_difference():
    assert differences({}, {"nwer": 1, "measures": {"confidence": 2}}) == []
    assert differences({"nwer": 3}, {"nwer": 2}) == ["nwer says 3, the predictions give 2"]


def test_a_measure_of_an_unknown_extension_is_passed_over():
    claimed, recomputed = {"measures": {"a": 1, "b": 2}}, {"measures": {"b": 3, "c": 4}}
    assert differences(claimed, recomputed) == [
        "measures.b says 2, the predictions give 3",
        "measures.c says nothing, the predictions give 4",
    ]


def test_a_verdict_keeps_fifty_reasons_and_accepts_without_any():
    verdict = Verdict()
    assert verdict.accepted
    for number in range(60):
        verdict.refuse(str(number))
    assert not verdict.accepted
    assert verdict.reasons == [str(number) for number in range(50)]


FACTS = FileFacts(sha256="0", size=8)


def listed(folder):
    return {path.name: submission.file_facts(path) for path in folder.iterdir() if path.name != "submission.json"}


def test_listed_files_are_those_of_the_folder(tmp_path):
    for name in ("submission.json", "run.json", "en_clean.jsonl"):
        (tmp_path / name).write_text(name)
    check_listed(listed(tmp_path), tmp_path)
    cases = {
        r"'\.\./x' leads out of the folder": listed(tmp_path) | {"../x": FACTS},
        r"'a\\b' leads out": listed(tmp_path) | {"a\\b": FACTS},
        r"'\.' leads out": listed(tmp_path) | {".": FACTS},
        r"'\.\.' leads out": listed(tmp_path) | {"..": FACTS},
        "'more' is listed but not there": listed(tmp_path) | {"more": FACTS},
        "'run.json' is not listed in 'files'": {"en_clean.jsonl": listed(tmp_path)["en_clean.jsonl"]},
        "run.json does not have the sha256 and size": listed(tmp_path) | {"run.json": FACTS},
    }
    for why, files in cases.items():
        with pytest.raises(Refused, match=why):
            check_listed(files, tmp_path)


LINES = [
    {
        "audio_filepath": f"en_clean/c{n}.flac", "id": f"c{n}", "text": text, "pred_text": text, "duration": 2.0,
        "time": 0.5, "speaker": "s", "gender": None, "age": None, "accent": None, "language": "en",
    }
    for n, text in enumerate(["good morning", "good night"])
]  # fmt: skip


def predictions(lines):
    return [convert(line, SubmittedPrediction) for line in lines]


EXPECTED = Expected(
    benchmark_version="1",
    content_sha256="c" * 64,
    rows=2,
    rows_sha256=transcripts_digest((line["id"], line["text"]) for line in LINES),
    people_sha256=people_digest(predictions(LINES)),
    language="en",
    corpus="librispeech",
    scenario="clean",
    severity=0,
    category="clean",
    source=None,
)


def test_a_submission_has_just_the_configs_of_its_languages():
    spanish = EXPECTED.replace(language="es")
    benchmark = {"en_clean": EXPECTED, "en_noise_sev1": EXPECTED, "es_clean": spanish}
    verdict = Verdict()
    _check_coverage(verdict, ["en_clean", "en_noise_sev1"], benchmark)
    assert verdict.accepted
    _check_coverage(verdict, ["en_clean", "fr_clean"], benchmark)
    assert verdict.reasons == [
        "fr_clean.jsonl: the benchmark has no config of that name",
        "en_noise_sev1: missing; a submission has every config of its languages",
    ]


def check(folder, lines, expected=EXPECTED):
    (folder / "en_clean.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return _check_predictions(folder, "en_clean", expected, Evidence(), {"stream": StreamedLines({})})


def test_predictions_give_their_entry_of_run_json(tmp_path):
    entry = check(tmp_path, LINES)
    assert entry == _entry(tmp_path / "en_clean.jsonl", predictions(LINES), EXPECTED)
    assert (entry.rows, entry.of, entry.audio_s, entry.seconds, entry.failed) == (2, 2, 4.0, 1.0, 0)
    assert (entry.rows_sha256, entry.content_sha256) == (EXPECTED.rows_sha256, "c" * 64)
    assert entry.suite is None
    assert "scenario_version" not in entry.as_json()
    part = EXPECTED.replace(suite="lite-1", of=5, of_sha256="whole", scenario_version="2")
    of_suite = _entry(tmp_path / "en_clean.jsonl", predictions(LINES), part)
    assert (of_suite.suite, of_suite.of, of_suite.rows_sha256) == ("lite-1", 5, "whole")
    assert of_suite.scenario_version == "2"


def changed(number=1, **change):
    return [line | change if index == number else line for index, line in enumerate(LINES)]


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (changed(id="c0", audio_filepath="en_clean/c0.flac"), "line 2: the id 'c0' occurs twice"),
        (changed(audio_filepath="en_noise/c1.flac"), "line 2: 'audio_filepath' is 'en_noise/c1.flac', of another"),
        (changed(pred_text=None), "line 2: a clip has either a transcript or an 'error'"),
        (changed(error="broken"), "line 2: a clip has either a transcript or an 'error'"),
        (changed(time=0), "line 2: recognised in no time at all"),
        ([*LINES, LINES[0] | {"id": "c2", "audio_filepath": "en_clean/c2.flac"}], r"more lines than .* clips \(2\)"),
        (LINES[:1], "1 lines, but the config has 2 clips"),
        (changed(text="good day"), "ids or references are not those of the benchmark"),
        (LINES[::-1], "ids or references are not those of the benchmark, or not in its order"),
        (changed(speaker="t"), "durations or speakers are not those of the benchmark"),
        ([line | {"time": 0.00005} for line in LINES], "recognised 40000 times faster than it is spoken"),
    ],
)
def test_predictions_that_cannot_be_are_refused(tmp_path, lines, why):
    with pytest.raises(Refused, match=why):
        check(tmp_path, lines)


def test_twenty_thousand_times_real_time_is_the_limit(tmp_path):
    check(tmp_path, [line | {"time": 0.0001} for line in LINES])
    check(tmp_path, changed(pred_text=None, error="broken", time=0))
    silent = [line | {"duration": 0, "time": 0} for line in LINES]
    check(tmp_path, silent, EXPECTED.replace(people_sha256=people_digest(predictions(silent))))


def test_run_json_says_what_the_predictions_give(tmp_path):
    entries = {"en_clean": check(tmp_path, LINES)}
    verdict = Verdict()
    _check_run(verdict, RunRecord(configs=entries), entries)
    _check_run(verdict, RunRecord(configs={"en_clean": entries["en_clean"].replace(seconds=1.000001)}), entries)
    assert verdict.accepted
    for configs in (None, {}, {"en_clean": RunConfig(), "more": RunConfig()}):
        verdict = Verdict()
        _check_run(verdict, RunRecord(configs=configs), entries)
        assert verdict.reasons == ["run.json: 'configs' are not those that the submission has predictions of"]
    verdict = Verdict()
    wrong = entries["en_clean"].replace(seconds=9.0, content_sha256="d" * 64, scenario_version="2")
    _check_run(verdict, RunRecord(configs={"en_clean": wrong}), entries)
    assert sorted(verdict.reasons) == [
        f"run.json: en_clean.content_sha256 says {'d' * 64}, this benchmark has {'c' * 64}",
        "run.json: en_clean.scenario_version says 2, this benchmark has 1",
        "run.json: en_clean.seconds says 9.0, it is 1.0",
    ]
    verdict = Verdict()
    _check_run(verdict, RunRecord(configs={"en_clean": None}), entries)
    assert "run.json: en_clean.rows says nothing, it is 2" in verdict.reasons


def test_the_content_of_a_suites_config_need_not_be_known(tmp_path):
    part = EXPECTED.replace(suite="lite-1", of=5)
    entries = {"en_clean": check(tmp_path, LINES, part)}
    for content, accepted in ((None, True), ("d" * 64, False)):
        verdict = Verdict()
        claimed = RunRecord(configs={"en_clean": entries["en_clean"].replace(content_sha256=content)})
        _check_run(verdict, claimed, entries)
        assert verdict.accepted is accepted


def test_a_folder_without_parquet_is_read_as_it_is(tmp_path):
    (tmp_path / "en_clean.jsonl").touch()
    verdict = Verdict()
    assert _unpacked(verdict, tmp_path, ["en_clean"], {"en_clean": EXPECTED}) == tmp_path
    assert verdict.scratch is None


@pytest.fixture
def documents(tmp_path):
    for name in ("run.json", "results.json", "submission.json"):
        (tmp_path / name).write_text(name)
    software = {"speech-robust-bench": __version__}
    about = {
        "schema": submission.SCHEMA,
        "model": {"owner": "acme", "name": "hears"},
        "benchmark_version": "1",
        "software": software,
        "reproduce": "srb run",
        "files": {name: facts.as_json() for name, facts in listed(tmp_path).items()},
    }
    scored = {
        "schema": results.SCHEMA,
        "software": software,
        "options": results.ScoreOptions().record.as_json(),
        "model": "hears",
    }
    return {"submission.json": about, "results.json": scored, "run.json": {"model": "hears"}}


def reasons(documents, folder, versions=("1",)):
    verdict = Verdict()
    for name, content in documents.items():
        (folder / name).write_text(json.dumps(content))
    try:
        files = SubmittedFiles.read(folder)
    except Refused as reason:
        return [str(reason)]
    for name in ("run.json", "results.json"):
        (folder / name).write_text(name)  # as it was listed
    _check_submission(verdict, folder, files, versions)
    return verdict.reasons


def test_an_honest_submission_says_nothing_wrong(documents, tmp_path):
    assert reasons(documents, tmp_path) == []
    assert reasons(documents, tmp_path, ()) == []  # a benchmark that says no version is of today's


@pytest.mark.parametrize(
    ("document", "change", "why"),
    [
        ("submission.json", {"schema": 0}, "submission.json: 'schema': invalid enum value 0"),
        ("submission.json", {"more": 1}, "submission.json: object contains unknown field `more`"),
        ("submission.json", {"reproduce": "<script>"}, "submission.json: 'reproduce': "),
        ("submission.json", {"reproduce": "x" * 1001}, "submission.json: 'reproduce': "),
        ("submission.json", {"files": []}, "submission.json: 'files': expected `object`"),
        (
            "submission.json",
            {"benchmark_version": "2"},
            "submission.json: 'benchmark_version' is 2, the benchmark's is 1",
        ),
        ("submission.json", {"software": {"speech-robust-bench": "0"}}, "submission.json: made with srb 0, this is"),
        ("submission.json", {"software": None}, "submission.json: 'software': expected `object`"),
        ("results.json", {"schema": 0}, "results.json: 'schema' must be"),
        ("results.json", {"software": {"speech-robust-bench": "0"}}, "results.json: scored with srb 0, this is"),
        ("results.json", {"options": {}}, "results.json: not scored with the leaderboard's options"),
        ("results.json", {"model": "other"}, "results.json: is of another model than submission.json says"),
        ("run.json", {"model": "other"}, "run.json: is of another model than submission.json says"),
    ],
)
def test_what_is_wrong_with_a_submissions_documents_is_said(documents, tmp_path, document, change, why):
    documents[document] |= change
    assert [reason[: len(why)] for reason in reasons(documents, tmp_path)] == [why]


FULL = {
    "owner": "o" * 96,
    "name": "n" * 80,
    "id": "a/" + "b" * 138,
    "params_m": 10_000_000,
    "licence": "l" * 60,
    "url": "https://" + "u" * 292,
    "training_data": "t" * 300,
}


def test_what_is_said_of_a_model_is_bounded(documents, tmp_path):
    documents["submission.json"]["model"] = dict(FULL)
    documents["run.json"]["model"] = documents["results.json"]["model"] = FULL["name"]
    assert reasons(documents, tmp_path) == []
    for field in ("id", "params_m", "licence", "url", "training_data"):
        documents["submission.json"]["model"] = FULL | {field: None}
        assert reasons(documents, tmp_path) == []
    wrong = {field: value + "x" for field, value in FULL.items() if field != "params_m"}
    wrong |= {"params_m": 10_000_001}
    worse = {"params_m": -1, "url": "http://x", "licence": "<b>", "training_data": "<b>", "id": "nobody", "owner": None}
    for field, value in [*wrong.items(), *worse.items()]:
        documents["submission.json"]["model"] = FULL | {field: value}
        assert len(reasons(documents, tmp_path)) == 1, field
