"""What the project's own files say of each other: one version, typed packages, commands that are there."""

import configparser
import importlib.util
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from speech_robust_bench.cli.main import parser_of
from speech_robust_bench.core import __version__

ROOT = Path(__file__).parents[1]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")


def lines(section: str, key: str) -> list[str]:
    return [line for line in SETUP[section][key].split("\n") if line]


def test_the_version_is_the_same_everywhere():
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))["version"]
    newest = next(line for line in (ROOT / "CHANGELOG.md").read_text("utf-8").splitlines() if line.startswith("## [0"))
    assert __version__ == version("speech-robust-bench") == cited
    assert newest.startswith(f"## [{__version__}] - ")


def test_every_room_is_installed_typed_and_checked():
    rooms = dict(line.split(" = ") for line in lines("options", "package_dir"))
    linked = {path.name: path.resolve() for path in (ROOT / ".typing" / "speech_robust_bench").iterdir()}
    front = {path.name: path for path in (ROOT / "speech_robust_bench").iterdir() if path.suffix == ".py"}
    assert linked.items() >= {name.rpartition(".")[2]: ROOT / folder for name, folder in rooms.items()}.items() - {
        ("speech_robust_bench", ROOT / "speech_robust_bench")
    }
    assert linked.items() >= front.items(), "link the new module in .typing/"
    assert [name for name, path in linked.items() if not path.exists()] == []
    assert [folder for folder in rooms.values() if not (ROOT / folder / "py.typed").is_file()] == []
    packages = {
        path.parent.relative_to(ROOT) for folder in rooms.values() for path in (ROOT / folder).rglob("__init__.py")
    }
    installed = set(lines("options", "packages"))
    names = {str(path).replace("/", ".") for path in packages}
    assert {name if name in installed else f"speech_robust_bench.{name}" for name in names} == installed


def test_ci_takes_the_commands_from_the_readme_and_can_be_run():
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o100
    try_it = (ROOT / "README.md").read_text("utf-8").split("## Try it")[1]
    commands = try_it.split("```bash\n")[1].split("```")[0].splitlines()
    assert [command.rsplit(" && ", 1)[1] for command in commands] == [".venv/bin/srb demo", ".venv/bin/pytest -n auto"]


def test_constraints_pin_everything_that_setup_cfg_names():
    """And each pinned version is one that setup.cfg allows."""
    pinned = {
        canonicalize_name(name): version
        for name, version in (
            line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
        )
    }
    texts = [SETUP["options"]["install_requires"], *SETUP["options.extras_require"].values()]
    wanted = [Requirement(line) for text in texts for line in text.split("\n") if line and not line.startswith("#")]
    assert [str(each) for each in wanted if canonicalize_name(each.name) not in pinned] == []
    assert [str(each) for each in wanted if pinned[canonicalize_name(each.name)] not in each.specifier] == []


def test_what_one_run_skips_is_what_the_next_is_given(tmp_path):
    """`.ci/outcomes.py` on the report of a run with a skipped file, a skipped test and parameter, and a failed test."""
    tests = tmp_path / "tests" / "room"
    tests.mkdir(parents=True)
    (tests / "test_whole.py").write_text("import pytest\npytest.importorskip('no_such_package')\ndef test_a(): pass\n")
    (tests / "test_parts.py").write_text(
        "import pytest\n"
        "def test_passes(): pass\n"
        "def test_skips(): pytest.skip('not here')\n"
        "@pytest.mark.parametrize('n', [1, 2])\n"
        "def test_some(n): n == 1 or pytest.skip('only 1')\n"
        "def test_fails(): assert False\n"
    )
    report = tmp_path / "report.xml"
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    command = [sys.executable, "-m", "pytest", "-q", f"--junitxml={report}", "tests"]
    assert subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True).returncode == 1

    def outcomes(outcome: str) -> list[str]:
        command = [sys.executable, ROOT / ".ci" / "outcomes.py", outcome, report]
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()

    assert outcomes("failed") == ["tests/room/test_parts.py::test_fails"]
    assert outcomes("skipped") == [
        "tests/room/test_parts.py::test_skips",
        "tests/room/test_parts.py::test_some[2]",
        "tests/room/test_whole.py",
    ]


def test_every_benchmark_has_its_figures():
    page = (ROOT / "benchmarks" / "README.md").read_text("utf-8")
    names = [path.name for path in (ROOT / "benchmarks").glob("*.py")]
    assert [name for name in names if f"python benchmarks/{name}" not in page] == []


def test_the_github_action_runs_the_gate_with_its_inputs(tmp_path):
    """Its script, with a stand-in for `srb`: a hostile input stays one word, and the exit code and summary are kept."""
    action = yaml.safe_load((ROOT / "action.yml").read_text("utf-8"))
    step = action["runs"]["steps"][1]
    inputs = {name: entry.get("default", "") for name, entry in action["inputs"].items()}
    inputs |= {"baseline": "runs/main", "model": "cmd:x $(touch hacked)", "configs": "en_noise_*\n\nen_rir_sev2\n"}
    inputs |= {"options": "--clips\n300\n"}
    assert all(value == f"${{{{ inputs.{name.lower()} }}}}" for name, value in step["env"].items())
    (tmp_path / "srb").write_text(
        '#!/bin/sh\nprintf "%s\\n" "$@" > words\nprintf "table" > gate/gate.md\nexit 1\n', encoding="utf-8"
    )
    (tmp_path / "srb").chmod(0o755)
    environment = {name: inputs[name.lower()] for name in step["env"]}
    environment |= {"PATH": f"{tmp_path}:{os.environ['PATH']}", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary")}
    script = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    assert subprocess.run(script, cwd=tmp_path, env=environment).returncode == 1
    assert (tmp_path / "summary").read_text() == "table"
    words = (tmp_path / "words").read_text().splitlines()
    given = parser_of("gate").parse_args(words)
    assert (given.baseline, given.model, given.worst, given.clips) == ("runs/main", "cmd:x $(touch hacked)", 0.0, 300)
    assert given.configs == ["en_noise_*", "en_rir_sev2"]
    assert not (tmp_path / "hacked").exists()


def test_the_dockerfile_pins_versions_and_drops_root():
    """`.ci/docker_steps.py` runs its steps; here it reads them, and the image has every room."""
    spec = importlib.util.spec_from_file_location("docker_steps", ROOT / ".ci" / "docker_steps.py")
    steps = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(steps)
    read = list(steps.instructions((ROOT / "Dockerfile").read_text("utf-8")))
    assert ("ARG", "TORCH=cpu") in read
    assert [rest for name, rest in read if name == "USER"] == ["1000"]
    assert any("-c source/constraints.txt" in rest for name, rest in read if name == "RUN")
    copied = {name.split("/")[0] for name in steps.context((ROOT / ".dockerignore").read_text("utf-8"))}
    rooms = {line.split(" = ")[1] for line in lines("options", "package_dir")}
    assert copied >= rooms | {"constraints.txt", "pyproject.toml", "setup.cfg", "LICENSE", "README.md"}
    assert "tests" not in copied
