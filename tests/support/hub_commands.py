"""The loopback Hub, a way to run `srb` against it as a user would, and small built folders."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from time import sleep

import pytest
from support.built_data import make_built
from support.loopback_hub import TOKEN, LoopbackHub


@pytest.fixture
def hub():
    with LoopbackHub() as made:
        made.add_token(TOKEN)
        yield made


@dataclass
class Done:
    """What a command came to."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def srb(hub, tmp_path, monkeypatch, capfd, caplog):
    """Run a command in this process, whose endpoint, home and token are those of the test; waits are cut short."""
    from huggingface_hub import constants, utils

    from speech_robust_bench.cli.main import main

    monkeypatch.setattr(constants, "ENDPOINT", hub.url)
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub.url + "/{repo_id}/resolve/{revision}/{filename}")
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "home" / "token"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "home" / "hub"))
    monkeypatch.chdir(tmp_path)
    waits: list[float] = []
    monkeypatch.setattr("time.sleep", lambda seconds: (waits.append(seconds), sleep(min(seconds, 0.01)))[1])
    caplog.set_level("DEBUG", logger="srb")

    def run(*words: object, token: str | None = TOKEN, code: int | None = 0) -> Done:
        monkeypatch.setenv("HF_TOKEN", token or "")
        capfd.readouterr()
        got = main([str(word) for word in words])
        done = Done(got, *capfd.readouterr())
        assert TOKEN not in done.stdout + done.stderr + caplog.text
        assert "Traceback" not in done.stderr
        if code is not None:
            assert done.code == code, done.stdout + done.stderr
        return done

    run.waits = waits  # type: ignore[attr-defined]
    yield run
    utils.close_session()
    leaks = [p for p in tmp_path.rglob("*") if p.is_file() and TOKEN.encode() in p.read_bytes()]
    assert not leaks


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
            command, env=environment, capture_output=True, text=True, timeout=300, cwd=cwd or tmp_path
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return done.stdout

    return run


@pytest.fixture
def built(tmp_path):
    """`built(["en_clean", ...])` makes a built folder with these configs."""
    return lambda configs, **how: make_built(tmp_path / "srb", configs, **how)
