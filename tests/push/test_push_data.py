"""`srb push data` against the loopback Hub, read back with the real clients."""

from __future__ import annotations

import hashlib
import json
import shutil

import pyarrow.parquet as pq
import yaml
from support.built_data import make_config, many_configs

REPO = "acme/srb"


def local_files(folder):
    paths = [path for path in folder.rglob("*") if path.is_file() and path.parent != folder]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def rows_of(config):
    """What `load_dataset` must give of a built config of one shard, the audio as its hash."""
    table = pq.read_table(config / "test-00000-of-00001.parquet").to_pylist()
    return [[row["id"], row["text"], hashlib.sha256(row["audio"]["bytes"]).hexdigest()] for row in table]


def header(repo):
    return yaml.safe_load(repo.files["README.md"].data.decode().split("---\n")[1])


def listed(repo):
    return [config["config_name"] for config in header(repo)["configs"]]


def test_120_configs_go_up_and_come_back_the_same(hub, srb, client, built):
    names = many_configs(120)
    assert "en_noise_sev3" in names
    folder = built(names, clips=2)
    srb("push", "data", "--dataset", REPO, "--data", folder)
    repo = hub.repo(REPO)
    assert repo.private
    assert repo.tags == {"v1": repo.refs["main"]}
    wanted = local_files(folder)
    assert {path: file.data for path, file in repo.files.items() if "/" in path} == wanted
    assert sorted(listed(repo)) == sorted(names)
    assert {task["id"] for task in yaml.safe_load(repo.files["eval.yaml"].data)["tasks"]} == {
        *names,
        "en_nwer",
        "en_nwerd",
    }

    # The card of 120 configs is read anew for each: libyaml reads it ten times faster than Python does.
    code = f"""
import hashlib, json, yaml
yaml.SafeLoader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
from datasets import Audio, load_dataset
from huggingface_hub import snapshot_download
from pathlib import Path
root = Path(snapshot_download({REPO!r}, repo_type="dataset"))
found = [p for p in root.rglob("*.*") if p.is_file()]
files = {{p.relative_to(root).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}}
rows = {{}}
for name in {names!r}:
    split = load_dataset({REPO!r}, name, split="test").cast_column("audio", Audio(decode=False))
    rows[name] = [[row["id"], row["text"], hashlib.sha256(row["audio"]["bytes"]).hexdigest()] for row in split]
print(json.dumps([files, rows]))
"""
    files, rows = json.loads(client(code))
    assert {path: digest for path, digest in files.items() if "/" in path} == {
        path: hashlib.sha256(data).hexdigest() for path, data in wanted.items()
    }
    assert rows == {name: rows_of(folder / name) for name in names}

    with hub.watched():
        again = srb("push", "data", "--dataset", REPO, "--data", folder)
        assert hub.uploads() == []
        assert hub.commits() == []
    assert "0 files uploaded" in again.stdout

    make_config(folder, names[3], clips=3)
    with hub.watched():
        srb("push", "data", "--dataset", REPO, "--data", folder)
        changed = hashlib.sha256((folder / names[3] / "test-00000-of-00001.parquet").read_bytes()).hexdigest()
        assert hub.uploads() == [f"/lfs/{changed}"]
    assert {path: file.data for path, file in repo.files.items() if "/" in path} == local_files(folder)


def test_the_benchmarks_tasks_have_what_the_hub_asks_for(hub, srb, built):
    """The keys are those of the example in the Hub's documentation (docs/hub/eval-results.md)."""
    srb("push", "data", "--dataset", REPO, "--data", built(["en_noise_sev3", "en_clean", "es_echo_sev1"]))
    made = yaml.safe_load(hub.repo(REPO).files["eval.yaml"].data)
    assert set(made) == {"name", "description", "evaluation_framework", "tasks"}
    assert made["evaluation_framework"] == "speech-robust-bench"
    assert {frozenset(task) for task in made["tasks"]} == {frozenset({"id", "config", "split"})}
    tasks = {task["id"]: task["config"] for task in made["tasks"]}
    assert len(tasks) == len(made["tasks"])
    assert set(tasks.values()) == set(listed(hub.repo(REPO)))
    assert tasks["en_nwerd"] == "en_clean"
    assert tasks["es_nwerd"] == "es_echo_sev1"


def test_a_dry_run_says_what_goes_where_and_sends_nothing(hub, srb, built):
    folder = built(["en_clean", "en_noise_sev3"])
    done = srb("push", "data", "--dataset", REPO, "--data", folder, "--dry-run", token=None)
    assert "en_noise_sev3/test-00000-of-00001.parquet" in done.stdout
    assert "2 of 2 configs to upload" in done.stdout
    assert "CC-BY-4.0" in done.stdout
    assert (("dataset", REPO)) not in hub.repos
    assert {method for method, _, _ in hub.log} <= {"GET"}


def test_a_dry_run_needs_no_network(srb, built, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    done = srb("push", "data", "--dataset", REPO, "--data", built(["en_clean"]), "--dry-run")
    assert "1 of 1 configs to upload" in done.stdout
    assert "empty repository" in done.stderr


def test_fewer_shards_take_the_old_ones_away(hub, srb, built):
    folder = built(["en_clean"], clips=6, shards=3)
    srb("push", "data", "--dataset", REPO, "--data", folder)
    shutil.rmtree(folder / "en_clean")
    make_config(folder, "en_clean", clips=6, shards=2)
    srb("push", "data", "--dataset", REPO, "--data", folder)
    assert sorted(p for p in hub.repo(REPO).files if p.endswith(".parquet")) == [
        "en_clean/test-00000-of-00002.parquet",
        "en_clean/test-00001-of-00002.parquet",
    ]


def test_configs_of_another_machine_stay_in_the_card(hub, srb, built, tmp_path):
    folder = built(["en_clean", "en_noise_sev3"])
    srb("push", "data", "--dataset", REPO, "--data", folder)
    elsewhere = tmp_path / "other"
    make_config(elsewhere, "en_echo_sev1")
    srb("push", "data", "--dataset", REPO, "--data", elsewhere)
    repo = hub.repo(REPO)
    assert listed(repo) == ["en_clean", "en_echo_sev1", "en_noise_sev3"]
    assert set(json.loads(repo.files["benchmark.json"].data)["configs"]) == {
        "en_clean",
        "en_echo_sev1",
        "en_noise_sev3",
    }


def test_the_tag_stays_unless_it_is_to_move(hub, srb, built):
    folder = built(["en_clean"])
    srb("push", "data", "--dataset", REPO, "--data", folder)
    first = hub.repo(REPO).tags["v1"]
    make_config(folder, "en_echo_sev1")
    done = srb("push", "data", "--dataset", REPO, "--data", folder)
    assert "--retag" in done.stdout
    assert hub.repo(REPO).tags["v1"] == first
    srb("push", "data", "--dataset", REPO, "--data", folder, "--retag")
    assert hub.repo(REPO).tags["v1"] == hub.repo(REPO).refs["main"] != first


def test_a_public_repository_has_to_be_meant(hub, srb, built):
    folder = built(["en_clean"])
    hub.create(REPO, "dataset", private=False)
    refused = srb("push", "data", "--dataset", REPO, "--data", folder, code=2)
    assert "--public" in refused.stderr
    srb("push", "data", "--dataset", REPO, "--data", folder, "--public")


def test_a_branch_of_its_own(hub, srb, built):
    folder = built(["en_clean"])
    srb("push", "data", "--dataset", REPO, "--data", folder, "--revision", "draft", "--tag", "none")
    repo = hub.repo(REPO)
    assert "README.md" not in repo.files
    assert "en_clean/_manifest.json" in repo.commits[repo.refs["draft"]]
    assert repo.tags == {}


def test_a_config_whose_files_are_missing_is_not_pushed(hub, srb, built):
    folder = built(["en_clean", "en_noise_sev3"])
    (folder / "en_noise_sev3" / "test-00000-of-00001.parquet").unlink()
    done = srb("push", "data", "--dataset", REPO, "--data", folder, code=2)
    assert "test-00000-of-00001.parquet: is missing; `srb build en_noise_sev3" in done.stderr
    assert ("dataset", REPO) not in hub.repos
