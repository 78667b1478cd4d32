"""The parts of `srb verify`: what is close enough, what differs, which files are listed, what is said of a model."""

import shutil

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import each_line, edit, edit_lines, seal, set_in

from speech_robust_bench.core.records import FileFacts
from speech_robust_bench.core.untrusted_files import Refused
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.submitted_files import check_listed
from speech_robust_bench.push.verify import Verdict, close, differences, verify


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


@pytest.fixture(scope="module")
def truth(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("truth") / "srb", ["en_clean"], clips=6)


@pytest.fixture(scope="module")
def known(truth):
    return expected_rows.load(str(truth))


@pytest.fixture(scope="module")
def original(truth, tmp_path_factory):
    base = tmp_path_factory.mktemp("honest")
    return submission.make(make_run(base / "runs" / "hears", truth, "hears"), base / "hears", {})


@pytest.fixture
def honest(original, tmp_path):
    return shutil.copytree(original, tmp_path / "hears")


@pytest.mark.parametrize(("times_real_time", "too_fast"), [(19_999, False), (20_001, True)])
def test_twenty_thousand_times_real_time_is_the_limit(honest, known, times_real_time, too_fast):
    edit_lines(honest, "en_clean", each_line(lambda line: line.update(time=line["duration"] / times_real_time)))
    seal(honest)
    assert any("times faster than it is spoken" in reason for reason in verify(honest, known).reasons) is too_fast


def test_times_in_run_json_may_be_rounded_and_no_more(honest, known):
    for change, accepted in ((1e-6, True), (8.0, False)):
        edit(honest, "run.json", lambda made, more=change: _add_seconds(made, more))
        seal(honest)
        assert verify(honest, known).accepted is accepted


def _add_seconds(run, more):
    run["configs"]["en_clean"]["seconds"] += more


def test_a_folder_without_parquet_is_read_as_it_is(honest, known):
    assert verify(honest, known).scratch is None


FULL = {
    "owner": "o" * 96,
    "name": "n" * 80,
    "id": "a/" + "b" * 138,
    "params_m": 10_000_000,
    "licence": "l" * 60,
    "url": "https://" + "u" * 292,
    "training_data": "t" * 300,
}


def test_what_is_said_of_a_model_is_bounded(honest, known):
    def reasons(model):
        edit(honest, "submission.json", set_in("model", value=model))
        for name in ("run.json", "results.json"):
            edit(honest, name, set_in("model", value=FULL["name"]))
        seal(honest)
        return verify(honest, known).reasons

    assert reasons(FULL) == []
    assert reasons(FULL | dict.fromkeys(("id", "params_m", "licence", "url", "training_data"))) == []
    wrong = {field: value + "x" for field, value in FULL.items() if field != "params_m"}
    wrong |= {"params_m": 10_000_001}
    worse = {"params_m": -1, "url": "http://x", "licence": "<b>", "training_data": "<b>", "id": "nobody", "owner": None}
    for field, value in [*wrong.items(), *worse.items()]:
        assert len(reasons(FULL | {field: value})) == 1, field
