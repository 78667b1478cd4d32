"""`srb push metrics`: what `evaluate.load("ORG/nwerd")` needs is in the Space, and it needs nothing else of this."""

from __future__ import annotations

import json

from speech_robust_bench.scoring.modules import METRICS

CODE = """
import importlib.util, json
assert importlib.util.find_spec("srb") is None
import evaluate
nwerd = evaluate.load("acme/nwerd")
made = nwerd.compute(references=["the cat sat down"], predictions=["the cat sat town"],
                     clean_predictions=["The cat sat down."], difficulty="en_noise_sev3")
werd = evaluate.load("acme/werd").compute(references=["a b c d"], predictions=["a b c"], clean_predictions=["a b c d"])
print(json.dumps([made, werd], default=float))
"""


def test_evaluate_loads_a_pushed_metric_without_srb(hub, srb, client):
    done = srb("push", "metrics", "--namespace", "acme")
    assert {id for _, id in hub.repos} == {f"acme/{metric}" for metric in METRICS}
    assert all(repo.private for repo in hub.repos.values())
    assert 'evaluate.load("acme/nwerd")' in done.stdout
    for repo in hub.repos.values():
        repo.private = False
    nwerd, werd = json.loads(client(CODE, isolated=True, token=None))
    assert werd["werd"] == 25.0
    assert nwerd["werd"] == 25.0
    assert nwerd["nwerd"] == 25.0 * 100 / nwerd["difficulty"]
    with hub.watched():
        srb("push", "metrics", "--namespace", "acme", "--public")
        assert hub.commits() == []


def test_a_dry_run_names_the_files(hub, srb):
    done = srb("push", "metrics", "nwerd", "--namespace", "acme", "--dry-run", token=None)
    assert "would push acme/nwerd (Space)" in done.stdout
    assert "requirements.txt" in done.stdout
    assert hub.log == []


def test_files_that_a_metric_no_longer_has_are_taken_away(hub, srb):
    from support.loopback_hub import File

    repo = hub.create("acme/werd", "space")
    repo.files["old.py"] = File(b"pass\n", False)
    srb("push", "metrics", "werd", "--namespace", "acme", "--public")
    assert "old.py" not in repo.files
    assert {".gitattributes", "werd.py", "app.py", "README.md", "requirements.txt"} <= set(repo.files)
