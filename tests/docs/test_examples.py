"""Every example of every page runs: Python as it stands, commands as far as their arguments.

A page's Python blocks are run in order, as one program, in a folder with a small built corpus and one run. The lines
of its command blocks that call `srb` are given to that command's own parser, which also knows the options that the text
speaks of; links, scripts and names of modules lead somewhere.
"""

import argparse
import doctest
import re
import shlex
import textwrap
from pathlib import Path

import datasets
import pytest
import soundfile
import yaml
from support.metrics_by_name import metrics_by_name
from support.speech import speech_like

from speech_robust_bench.cli.command import commands
from speech_robust_bench.cli.main import main, parser_of

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "benchmarks" / "README.md",
    ROOT / "results" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# a block may stand in a list, indented
FENCED = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
FLAG = re.compile(r"(?<![\w-])--[a-z][\w-]*")


def fenced(page: Path, *languages: str) -> list[str]:
    found = FENCED.findall(page.read_text("utf-8"))
    return [textwrap.dedent(text) for _, language, text in found if language in languages]


def command_lines(page: Path) -> list[str]:
    """The lines of its command blocks without comments; a line may go on after a backslash."""
    lines = "\n".join(fenced(page, "bash", "sh", "console")).replace("\\\n", " ").splitlines()
    return [line.split("  #")[0].strip() for line in lines]


@pytest.fixture(scope="module")
def here(tmp_path_factory):
    """A folder such as the pages speak of: `srb/` with two configs over the default English corpus, and one run."""
    folder = tmp_path_factory.mktemp("docs")
    chapter = folder / "LibriSpeech" / "test-clean" / "61" / "70968"
    chapter.mkdir(parents=True)
    lines = []
    for number, text in enumerate(["HE BEGAN A CONFUSED COMPLAINT", "GIVE NOT SO EARNEST A MIND"]):
        clip = f"61-70968-{number:04}"
        soundfile.write(chapter / f"{clip}.flac", speech_like(1, number), 16_000)
        lines.append(f"{clip} {text}\n")
    (chapter / "61-70968.trans.txt").write_text("".join(lines))
    (folder / "recogniser.py").write_text(
        "def transcribe(clips, rate, language):\n    return ['he began'] * len(clips)\n"
    )
    patch = pytest.MonkeyPatch()
    patch.chdir(folder)
    patch.syspath_prepend(str(folder))
    patch.setattr(datasets.config, "HF_DATASETS_CACHE", folder / "cache")
    assert main(["build", "en_clean", "en_noise_sev3", "--corpus", "en=LibriSpeech"]) == 0
    assert main(["run", "--model", "python:recogniser:transcribe", "--name", "whisper-tiny.en", "en_*"]) == 0
    with metrics_by_name(tmp_path_factory.mktemp("modules")):
        yield folder
    patch.undo()


PROGRAMS = [page for page in PAGES if fenced(page, "python")]


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda page: page.stem)
def test_python_of_a_page(page, here):
    names = {
        "__name__": page.stem,
        "samples": speech_like(1),
        "model": lambda clips, rate, language: ["a"] * len(clips),
    }
    for number, text in enumerate(fenced(page, "python")):
        if ">>>" not in text:
            exec(compile(text, f"{page.name}, example {number + 1}", "exec"), names)
            continue
        examples = doctest.DocTestParser().get_doctest(text, names, page.name, str(page), 0)
        examples.globs = names
        outcome = doctest.DocTestRunner().run(examples, clear_globs=False)
        assert outcome.failed == 0


CALLS = [(page.stem, line) for page in PAGES for line in command_lines(page) if re.match(r"(\S*/)?srb ", line)]


@pytest.mark.parametrize(("page", "line"), CALLS)
def test_a_command_of_a_page_has_the_arguments_it_is_given(page, line):
    words = shlex.split(line)[1:]
    assert words[0] in commands()
    assert parser_of(words[0]).parse_args(words).command == words[0]


def test_the_pages_have_examples_at_all():
    assert len(CALLS) > 40
    assert len(PROGRAMS) >= 10


def test_every_command_is_shown_on_a_page():
    shown = {line.split("srb ")[1].split()[0] for _, line in CALLS}
    assert sorted(set(commands()) - shown) == []


@pytest.mark.parametrize("page", [page for page in PAGES if fenced(page, "py")], ids=lambda page: page.stem)
def test_python_that_needs_the_readers_own_names_compiles(page):
    for text in fenced(page, "py"):
        compile(text, page.name, "exec")


@pytest.mark.parametrize("page", [page for page in PAGES if fenced(page, "yaml")], ids=lambda page: page.stem)
def test_yaml_of_a_page_can_be_read(page):
    for text in fenced(page, "yaml"):
        assert yaml.safe_load(text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_between_pages_and_to_files_lead_somewhere(page):
    text = FENCED.sub("", page.read_text("utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", text)
    for path, heading in links:
        target = (page.parent / path).resolve() if path else page
        if (ROOT / "docs" / "reference") in target.parents:
            continue  # generated; the strict build of the site checks these
        assert target.exists(), path
        if heading:
            assert heading in anchors(target), f"{path}#{heading}"


def anchors(page: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them: lower case, no punctuation, a hyphen for each space."""
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", page.read_text("utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_scripts_that_a_page_calls_are_there_and_have_the_options(page):
    for script, words in re.findall(r"python3? ([\w/]+\.py)([^`\n]*)", page.read_text("utf-8")):
        source = (ROOT / script).read_text("utf-8")
        assert [flag for flag in FLAG.findall(words) if f'"{flag}"' not in source] == []


def options_of(parser: argparse.ArgumentParser) -> set[str]:
    """The options of a parser and of its subcommands."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    inner = [options_of(child) for action in below for child in action.choices.values()]
    return set().union(*(action.option_strings for action in parser._actions), *inner)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_commands_in_the_text_of_a_page_are_there_and_have_the_options(page):
    text = FENCED.sub("", page.read_text("utf-8"))
    for command, words in re.findall(r"`srb ([a-z][a-z-]*)([^`\n]*)`", text):
        assert command in commands()
        assert set(FLAG.findall(words)) <= options_of(parser_of(command)), words


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_modules_that_a_page_names_are_there(page):
    for name in re.findall(r"`(speech_robust_bench\.\w+(?:\.\w+)+)", page.read_text("utf-8")):
        room, *path = name.split(".")[1:]
        if (ROOT / room).is_dir():
            module = ROOT.joinpath(room, path[0])
            assert module.is_dir() or module.with_suffix(".py").is_file(), name
            if path[1:] and not module.is_dir():
                assert re.search(
                    rf"^(def|class) {path[1]}\b|^{path[1]} = ", module.with_suffix(".py").read_text(), re.M
                ), name
