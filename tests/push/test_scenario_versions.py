"""A scenario in a later version, from the manifest to the ranking: told, checked, and never set beside the first."""

from __future__ import annotations

import json

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import edit, seal

from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.verify import verify
from speech_robust_bench.scoring import results
from speech_robust_bench.scoring.compare import compare
from speech_robust_bench.scoring.ranking import candidate_of, rank
from speech_robust_bench.scoring.runs import open_run

CONFIGS = ["en_clean", "en_noise_sev1", "en_noise_sev3"]
LATER = "en_noise_sev3"


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return make_built(tmp_path_factory.mktemp("data") / "srb", CONFIGS, clips=30)


def with_later_version(data):
    path = data / LATER / "_manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "scenario_version": "2"}))
    return data


def sent(folder, data):
    run = make_run(folder / "run", data, "m", 0.2, 0)
    return submission.make(run, folder / "sent", {"owner": "acme", "name": "m"})


def test_the_version_goes_from_the_manifest_to_the_verdict(tmp_path):
    data = with_later_version(make_built(tmp_path / "srb", CONFIGS, clips=30))
    known = expected_rows.load(str(data))
    assert {config: entry.scenario_version for config, entry in known.items()} == {
        **dict.fromkeys(CONFIGS, "1"),
        LATER: "2",
    }
    text = expected_rows.to_json(known)
    assert text.count("scenario_version") == 1
    assert expected_rows.from_json(text) == known
    folder = sent(tmp_path, data)
    verdict = verify(folder, known)
    assert verdict.accepted, verdict.reasons
    entries = verdict.results.configs
    assert [entry.scenario_version for entry in entries.values()] == [None, None, "2"]
    edit(folder, "run.json", lambda run: run["configs"][LATER].pop("scenario_version"))
    seal(folder)
    assert f"run.json: {LATER}.scenario_version says 1, this benchmark has 2" in verify(folder, known).reasons


def test_results_of_another_version_are_refused(data, tmp_path):
    folder, known = sent(tmp_path, data), expected_rows.load(str(data))
    assert verify(folder, known).accepted
    later = {**known, LATER: known[LATER].replace(scenario_version="2")}
    assert any("scenario_version says 1, this benchmark has 2" in reason for reason in verify(folder, later).reasons)


def test_configs_of_two_versions_are_not_set_side_by_side(data, tmp_path):
    first = make_run(tmp_path / "a", data, "a", 0.2, 0)
    second = make_run(tmp_path / "b", data, "b", 0.3, 1)
    path = second / "run.json"
    about = json.loads(path.read_text())
    about["configs"][LATER]["scenario_version"] = "2"
    path.write_text(json.dumps(about))
    runs = [open_run(folder) for folder in (first, second)]
    standings = rank([candidate_of(results.results(run), "en") for run in runs])
    assert [(s.name, s.place, s.configs) for s in standings] == [("a", 1, 1), ("b", 2, 1)]  # en_noise_sev1 alone
    rows = {row.name: row for row in compare(*(run.counts() for run in runs), replicates=50)}
    assert rows["noise_env"].configs == 1
    assert rows["noise_env"].missing == (LATER,)
