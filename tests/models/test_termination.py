"""`kill` (SIGTERM) ends a command in one line, as Ctrl-C does, and the same command goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.run_folders import lines


def mortal(clips, rate, language):
    """The third time it is asked, somebody kills the process, once."""
    notes = Path(os.environ["NOTES"])
    with notes.open("a") as file:
        file.write("asked\n")
    if notes.read_text().count("asked") == 3:
        os.kill(os.getpid(), signal.SIGTERM)
    return ["yes"] * len(clips)


def test_a_terminated_run_is_one_line_and_goes_on(tones: Path, tmp_path: Path) -> None:
    words = ["run", "--model", "python:test_termination:mortal?batch_size=5", "--data", str(tones), "--quiet"]
    known = {
        **os.environ,
        "NOTES": str(tmp_path / "notes"),
        "PYTHONPATH": os.pathsep.join(map(str, Path(__file__).parents[:2])),
    }

    def start() -> subprocess.CompletedProcess:
        command = [
            sys.executable,
            "-m",
            "speech_robust_bench",
            *words,
            "en-demo_clean",
            "--out",
            str(tmp_path / "runs"),
        ]
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=300, check=False)

    done = start()
    assert done.returncode == 143
    assert done.stderr.splitlines() == ["srb run: interrupted; run the same command again to go on"]
    folder = tmp_path / "runs" / "test_termination-mortal"
    assert len(lines(folder / "en-demo_clean.jsonl.part")) == 10
    assert start().returncode == 0
    assert len(lines(folder / "en-demo_clean.jsonl")) == 23


IMPORTING = """
import os, signal, sys

signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background of a shell has it ignored

class Finder:
    def find_spec(self, name, *_):
        if name == {module!r}:
            try:
                os.kill(os.getpid(), signal.{signal})
                sum(range(100))
            except KeyboardInterrupt:
                raise {error} from None

sys.meta_path.insert(0, Finder())
sys.argv = ["srb", "ls"]
from speech_robust_bench.cli.program import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("module", "number", "error", "told"),
    [
        ("argparse", "SIGINT", "KeyboardInterrupt", "srb: interrupted; run the same command again"),
        ("numpy", "SIGINT", "KeyboardInterrupt", "srb ls: interrupted; run the same command again to start over"),
        ("numpy", "SIGINT", "ImportError('numpy')", "srb ls: interrupted; run the same command again to start over"),
        ("numpy", "SIGTERM", "ImportError('numpy')", "srb ls: interrupted; run the same command again to start over"),
    ],
)
def test_an_interrupt_while_something_is_imported_is_one_line(module, number, error, told) -> None:
    code = IMPORTING.format(module=module, signal=number, error=error)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=False)
    assert done.stderr.splitlines() == [told]
    assert done.returncode == 128 + signal.Signals[number]
