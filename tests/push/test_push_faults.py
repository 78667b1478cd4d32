"""What goes wrong on the way: it recovers, or stops with one clear line, and the card lists whole configs only."""

from __future__ import annotations

import json

import pytest
import yaml
from support.built_data import make_config
from support.loopback_hub import TOKEN

REPO = "acme/srb"
CONFIGS = ["en_clean", "en_echo_sev1", "en_noise_sev3"]


def whole(repo) -> list[str]:
    """The configs that the card lists, each of which must have every file of its manifest."""
    if "README.md" not in repo.files:
        return []
    header = yaml.safe_load(repo.files["README.md"].data.decode().split("---\n")[1])
    names = [config["config_name"] for config in header["configs"]]
    for name in names:
        manifest = json.loads(repo.files[f"{name}/_manifest.json"].data)
        assert all(f"{name}/{file}" in repo.files for file in manifest["files"])
    return names


@pytest.fixture
def push(srb, built):
    folder = built(CONFIGS)
    return lambda code=0, **how: srb("push", "data", "--dataset", REPO, "--data", folder, code=code, **how)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/api/repos/create"),
        ("POST", "/preupload/"),
        ("POST", "/objects/batch"),
        ("PUT", "/lfs/"),
        ("POST", "/lfs-verify/"),
        ("POST", "/commit/"),
        ("GET", "/tree/"),
        ("POST", "/tag/"),
    ],
)
@pytest.mark.parametrize("status", [500, 503])
def test_it_recovers_from_a_server_error_anywhere(hub, push, method, path, status):
    hub.fault(method, path, times=2, status=status)
    push()
    assert whole(hub.repo(REPO)) == CONFIGS
    assert hub.repo(REPO).tags


@pytest.mark.parametrize("path", ["/lfs/", "/commit/"])
def test_it_waits_as_long_as_it_is_told_to(hub, push, srb, path):
    hub.fault("PUT" if "lfs" in path else "POST", path, status=429, headers={"Retry-After": "7"})
    push()
    assert [wait for wait in srb.waits if wait >= 7]
    assert whole(hub.repo(REPO)) == CONFIGS


@pytest.mark.parametrize(("method", "path"), [("PUT", "/lfs/"), ("POST", "/commit/"), ("POST", "/objects/batch")])
def test_it_recovers_from_a_dropped_connection(hub, push, method, path):
    hub.fault(method, path, times=2, drop_after=100)
    push()
    assert whole(hub.repo(REPO)) == CONFIGS


@pytest.mark.parametrize(("method", "path"), [("PUT", "/lfs/"), ("POST", "/commit/"), ("POST", "/repos/create")])
def test_a_lost_answer_is_asked_for_again(hub, push, method, path):
    hub.fault(method, path, lose_answer=True)
    push()
    assert whole(hub.repo(REPO)) == CONFIGS


def test_slow_bytes_are_waited_for(hub, push):
    hub.fault("PUT", "/lfs/", times=3, slow_s=0.4)
    hub.fault("GET", "/tree/", slow_s=0.4)
    push()
    assert whole(hub.repo(REPO)) == CONFIGS


def test_a_server_that_stays_down_is_one_line_then_it_resumes(hub, push, srb):
    hub.fault("PUT", "/lfs/", times=10_000, skip=2, status=500)
    done = push(code=2)
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("srb push: acme/srb/en_clean: the Hub is not available (500")
    assert "run the same command again" in last
    assert whole(hub.repo(REPO)) == []
    hub.faults.clear()
    arrived = set(hub.objects)
    assert len(arrived) == 2
    with hub.watched():
        push()
        assert len(hub.uploads()) == 1  # the two that had arrived are not sent again
    assert whole(hub.repo(REPO)) == CONFIGS


def test_a_failure_between_data_and_card_leaves_the_old_card(hub, push, srb, tmp_path):
    push()
    make_config(tmp_path / "srb", "en_chorus_sev1")
    hub.fault("POST", "/commit/", times=10_000, skip=1, status=503)  # the data's commit goes well, the card's does not
    push(code=2)
    assert "en_chorus_sev1/_manifest.json" in hub.repo(REPO).files
    assert whole(hub.repo(REPO)) == CONFIGS
    hub.faults.clear()
    push()
    assert set(whole(hub.repo(REPO))) == {*CONFIGS, "en_chorus_sev1"}


def test_an_expired_token_stops_at_once(hub, push):
    hub.tokens[TOKEN]["expired"] = True
    done = push(code=2)
    assert "the Hub does not accept the token" in done.stderr
    assert "hf auth login" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_token_that_expires_on_the_way(hub, push):
    hub.fault("POST", "/commit/", times=99, status=401, body={"error": f"token {TOKEN} is expired"})
    done = push(code=2)
    assert "the Hub does not accept the token (token *** is expired)" in done.stderr
    assert whole(hub.repo(REPO)) == []


def test_nobody_is_logged_in(push):
    assert "hf auth login" in push(code=2, token=None).stderr


def test_a_token_that_may_only_read(hub, push):
    hub.tokens[TOKEN]["write"] = False
    assert "use a token that may write there" in push(code=2).stderr


def test_a_namespace_of_somebody_else(hub, srb, built):
    done = srb("push", "data", "--dataset", "others/srb", "--data", built(["en_clean"]), code=2)
    assert 'under the namespace "others"' in done.stderr


@pytest.mark.parametrize("status", [402, 403, 413])
def test_no_room_is_said_plainly(hub, push, status):
    hub.fault("POST", "/objects/batch", times=99, status=status, body={"error": "Private storage quota exceeded"})
    done = push(code=2)
    assert "no room on the Hub (Private storage quota exceeded)" in done.stderr
    assert whole(hub.repo(REPO)) == []


def test_a_conflict_that_passes(hub, push):
    hub.fault("POST", "/commit/", status=409, body={"error": "Another commit is in progress"})
    push()
    assert whole(hub.repo(REPO)) == CONFIGS


def test_a_conflict_that_does_not_pass(hub, push):
    hub.fault("POST", "/commit/", times=99, status=412, body={"error": "A commit has happened since"})
    done = push(code=2)
    assert "somebody else changed it at the same time" in done.stderr
    assert whole(hub.repo(REPO)) == []


def test_a_card_that_changed_meanwhile_is_made_again(hub, push):
    hub.fault("POST", "/commit/", skip=1, status=412, body={"error": "A commit has happened since"})
    push()
    assert whole(hub.repo(REPO)) == CONFIGS


def test_a_hub_that_is_not_there(hub, push, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert "the connection to the Hub failed" in push(code=2).stderr


def test_a_lost_part_of_a_large_file_is_sent_again(hub, srb, built, monkeypatch):
    monkeypatch.setattr("support.loopback_hub.MULTIPART_BYTES", 4096)
    folder = built(["en_clean"])
    hub.fault("PUT", "/lfs-part/.*/2", drop_after=64)
    srb("push", "data", "--dataset", REPO, "--data", folder)
    assert whole(hub.repo(REPO)) == ["en_clean"]


def test_offline_is_said_at_once_and_only_what_is_true(hub, push, srb, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for words in (("verify", "srb", "--data", "acme/other"), ("push", "data", "--dataset", REPO, "--data", "srb")):
        said = srb(*words, code=2).stderr
        assert "HF_HUB_OFFLINE is set" in said
        assert "again" not in said
    assert srb.waits == []


def test_a_dry_run_does_not_speak_of_uploads(hub, push, srb, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    said = srb("push", "data", "--dataset", REPO, "--data", "srb", "--dry-run").stderr
    assert "the connection to the Hub failed" in said
    assert "uploaded" not in said
