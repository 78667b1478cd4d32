"""The loopback Hub, a way to run `srb` against it as a user would, and small built folders."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from built_data import make_built
from loopback_hub import LoopbackHub

TOKEN = "hf_verySecretTokenOfTheTests12345"


@pytest.fixture
def hub():
    with LoopbackHub() as made:
        made.add_token(TOKEN)
        yield made


@pytest.fixture
def srb(hub, tmp_path):
    """Run a command in a process of its own, whose token, endpoint and home are those of the test."""

    def run(*words: object, token: str | None = TOKEN, code: int | None = 0, **env: str):
        environment = {**hub.env(tmp_path / "home", token), "COLUMNS": "200", **env}
        command = [sys.executable, "-m", "srb.cli.main", *map(str, words)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=tmp_path)
        output = done.stdout + done.stderr
        assert TOKEN not in output
        if code is not None:
            assert done.returncode == code, output
        return done

    return run


@pytest.fixture
def client(hub, tmp_path):
    """Run Python code with the real clients in a process of its own; returns what it printed."""

    def run(code: str, *, isolated: bool = False, token: str | None = TOKEN, cwd: Path | None = None) -> str:
        environment = hub.env(tmp_path / "reader", token)
        if isolated:  # without srb: the other packages alone
            import datasets

            environment["PYTHONPATH"] = os.pathsep.join([str(Path(datasets.__file__).parents[1])])
        command = [sys.executable, *(["-S"] if isolated else []), "-c", code]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=120, cwd=cwd or tmp_path
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


@pytest.fixture
def built(tmp_path):
    """`built(["en_clean", ...])` makes a built folder with these configs."""
    return lambda configs, **how: make_built(tmp_path / "srb", configs, **how)
