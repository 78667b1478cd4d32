"""Every command that talks to the Hub, in a process of its own: nothing may rest on what another import brought in.

`huggingface_hub.utils` is an attribute only once somebody has imported it by name; inside this test process somebody
has. With `SRB_OLD_HUB` naming a folder that holds another version of huggingface_hub (`pip install --target`), the
commands are run with that one too.
"""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.loopback_hub import TOKEN

OLD = os.environ.get("SRB_OLD_HUB")
VERSIONS = ["installed", *(["old"] if OLD else [])]


@pytest.fixture
def fresh(hub, tmp_path):
    """Run `srb` as a new process against the loopback Hub."""

    def run(*words, version="installed"):
        environment = hub.env(tmp_path / "home", TOKEN)
        if version == "old":
            environment["PYTHONPATH"] = str(OLD)
        command = [sys.executable, "-m", "speech_robust_bench", *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr[-3000:]
        assert TOKEN not in done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.parametrize("version", VERSIONS)
def test_push_submit_and_verify(hub, fresh, tmp_path, version):
    data = make_built(tmp_path / "srb", ["en_clean", "en_noise_sev3"], clips=4)
    fresh("push", "data", "--dataset", "acme/srb", "--data", data, version=version)
    run = make_run(tmp_path / "runs" / "m", data, "m")
    hub.create("acme/results", "dataset")
    hub.create("acme/m", "model")
    out = fresh(
        "submit", run, "--to", "acme/results", "--data", "acme/srb", "--out", tmp_path / "sent", version=version
    )
    assert "accepted" in out
    out = fresh("verify", tmp_path / "sent", "--data", "acme/srb", "--out", tmp_path / "verified", version=version)
    assert "accepted" in out
    out = fresh("push", "results", run, "--model-id", "acme/m", "--dataset", "acme/srb", version=version)
    assert "acme/m/discussions/1" in out
    fresh("push", "metrics", "wer_ci", "--namespace", "acme", version=version)
