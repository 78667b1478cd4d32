"""What a message tells the user to install: a command that works, for every extra that a message names."""

import configparser
import re
import shlex
from pathlib import Path

import pytest

from speech_robust_bench.core.errors import install_hint

ROOT = Path(__file__).parents[2]
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg")
ROOMS = [line.split(" = ")[1] for line in SETUP["options"]["package_dir"].split("\n") if line]
SOURCES = {path.name: path.read_text("utf-8") for room in ROOMS for path in (ROOT / room).rglob("*.py")}
NAMED = sorted({name for source in SOURCES.values() for name in re.findall(r"install_hint\(['\"](\w+)", source)})


def test_from_a_clone_it_names_the_clone():
    assert shlex.split(install_hint("models")) == ["pip", "install", "-e", f"{ROOT}[models]"]


def test_a_folder_with_spaces_is_quoted(tmp_path):
    clone = tmp_path / "my clone"
    clone.mkdir()
    (clone / "setup.cfg").touch()
    assert shlex.split(install_hint("push", clone))[-1] == f"{clone}[push]"


def test_without_a_clone_it_names_the_distribution(tmp_path):
    assert install_hint("push", tmp_path) == "pip install 'speech-robust-bench[push]'"


@pytest.mark.parametrize("extra", NAMED)
def test_every_extra_that_is_named_exists(extra):
    assert extra in SETUP["options.extras_require"]


def test_no_message_names_the_distribution_instead():
    assert [name for name, source in SOURCES.items() if "pip install 'speech-robust-bench[" in source] == []
