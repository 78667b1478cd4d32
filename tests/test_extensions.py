"""Extensions plug in from outside, and the benchmark works without its own."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "tests" / "example_extension"
CORE = ("core", "builders", "scoring", "models", "attacks", "report", "push", "speech_robust_bench", "cli")


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> dict[str, str]:
    """The environment of a process in which the example package is installed."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(EXAMPLE / "srb_example", folder / "srb_example")
    about = folder / "srb_example_extension-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: srb-example-extension\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text("[speech_robust_bench.extensions]\nexample = srb_example\n")
    return {**os.environ, "PYTHONPATH": str(folder), "COLUMNS": "120"}


def srb(installed: dict[str, str], *words: object, cwd: Path) -> str:
    command = [sys.executable, "-m", "speech_robust_bench", *map(str, words)]
    done = subprocess.run(command, env=installed, cwd=cwd, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_package_adds_a_recogniser_a_corpus_and_a_scenario(installed, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("anna__good_morning", "bert__good_night"):
        soundfile.write(tmp_path / f"{name}.wav", 0.1 * rng.standard_normal(16_000), 16_000)
    assert "backwards" in srb(installed, "ls", cwd=tmp_path)
    run = ["run", "--model", "parrot:good morning", "en-whispers_*clean", "en-whispers_backwards_sev2"]
    srb(installed, *run, "--corpus", f"en-whispers={tmp_path}", "--name", "parrot", "--out", "runs", cwd=tmp_path)
    assert "WER 25.0" in srb(installed, "score", "runs/parrot", cwd=tmp_path)  # one wrong word of four


def imported(path: Path) -> set[str]:
    """What a module imports, but for type checkers."""
    tree = ast.parse(path.read_text("utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    nodes = [node for node in ast.walk(tree) if id(node) not in typing_only]
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    return names | {f"{n.module}.{a.name}" for n in nodes if isinstance(n, ast.ImportFrom) for a in n.names}


@pytest.mark.parametrize("room", CORE)
def test_nothing_in_the_core_knows_an_extension_by_name(room):
    knowing = {
        f"{path.relative_to(ROOT)} imports {name}"
        for path in (ROOT / room).rglob("*.py")
        for name in imported(path)
        if name.startswith("speech_robust_bench.extensions.")
    }
    assert not knowing
