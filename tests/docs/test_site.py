"""The site: its reference says what the code says, it builds strictly with every link checked, and it stays short."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.command import commands
from speech_robust_bench.cli.main import arguments
from speech_robust_bench.core.options import Options

ROOT = Path(__file__).parents[2]
MOST_WORDS = 18_000  # of everything that people wrote and read, without the generated reference
MOST_LINES_OF_A_GUIDE = 80


@pytest.fixture(scope="module")
def reference():
    """The generated pages by their path."""
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "hooks" / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.pages()


def test_every_command_has_a_page_with_its_options(reference):
    assert {f"reference/commands/{name}.md" for name in commands()} <= set(reference)
    assert "`--noise-dir FOLDER`" in reference["reference/commands/run.md"]
    assert "## `srb push data`" in reference["reference/commands/push.md"]
    pgd = reference["reference/commands/attack.md"].split("## `srb attack pgd`")[1].split("\n## ")[0]
    assert "`--no-random-start`" in pgd  # an advanced option
    usage = reference["reference/commands/run.md"].split("```text\n")[1].split("```")[0]
    assert max(map(len, usage.splitlines())) <= 80


def test_every_public_name_is_in_the_reference(reference):
    index = reference["reference/python.md"]
    assert [name for name in dir(srb) if not name.startswith("_") and f"`srb.{name}`" not in index] == []
    options = reference["reference/python/options.md"]
    kinds = [
        value
        for value in (getattr(srb, name) for name in dir(srb) if not name.startswith("_"))
        if isinstance(value, type) and issubclass(value, Options)
    ]
    assert [field.name for kind in kinds for field in arguments(kind) if f"`{field.name}`" not in options] == []


def test_the_scenario_page_has_every_scenario_and_counts_as_srb_ls_does(reference):
    page = reference["reference/scenarios.md"]
    assert [row.name for row in srb.scenarios() if f"| `{row.name}` |" not in page] == []
    counted = re.search(r"(\d+) scenarios, (\d+) configs with their severities", page)
    listed = subprocess.run(
        [sys.executable, "-m", "speech_robust_bench", "ls"], capture_output=True, text=True, check=True
    ).stdout.splitlines()[-1]
    assert listed == f"{counted[1]} scenarios, {counted[2]} with their severities"
    for page in (ROOT / "README.md", ROOT / "docs" / "concepts" / "scenarios.md"):
        assert counted[0] in page.read_text("utf-8")


def test_every_field_of_a_prediction_is_in_the_reference(reference):
    page = reference["reference/files.md"].split("## Prediction\n")[1].split("\n## ")[0]
    from speech_robust_bench.core.records import Prediction

    assert [field for field in Prediction.__struct_fields__ if f"| `{field}` |" not in page] == []


def test_every_metric_card_is_a_page(reference):
    cards = {path.parent.name for path in (ROOT / "metrics").glob("*/README.md")}
    assert {f"reference/metrics/{name}.md" for name in cards} <= set(reference)
    assert [name for name in cards if "sdk: gradio" in reference[f"reference/metrics/{name}.md"]] == []


def written() -> dict[str, str]:
    """What people wrote and read: README, contributing, measurements, results, and the site without its reference."""
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "benchmarks/README.md", ROOT / "results/README.md"]
    texts = {str(page.relative_to(ROOT)): page.read_text("utf-8") for page in [*pages, *(ROOT / "docs").rglob("*.md")]}
    cells = json.loads((ROOT / "docs" / "tutorials" / "tour.ipynb").read_text("utf-8"))["cells"]
    sources = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    return texts | {"docs/tutorials/tour.ipynb": "\n\n".join(sources)}


def test_the_documentation_stays_short():
    words = {page: len(re.findall(r"\S*[A-Za-z]\S*", text)) for page, text in written().items()}
    assert sum(words.values()) <= MOST_WORDS, words
    guides = (ROOT / "docs" / "how-to").glob("*.md")
    lines = {page.name: len(page.read_text("utf-8").splitlines()) for page in guides}
    assert {name: count for name, count in lines.items() if count > MOST_LINES_OF_A_GUIDE} == {}


def test_the_site_builds_strictly(tmp_path):
    """Every link and anchor leads somewhere, every page is in the navigation, and search needs no network."""
    for package in ("mkdocs", "material", "mkdocstrings", "pandas"):
        pytest.importorskip(package)
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path / "site"],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert build.returncode == 0, build.stderr
    functions = (tmp_path / "site" / "reference" / "python" / "functions.html").read_text("utf-8")
    assert "Run a recogniser over configs and score it." in functions  # from the docstring
    tour = (tmp_path / "site" / "tutorials" / "tour.html").read_text("utf-8")
    assert "<audio" in tour  # a stored output
    assert "use strict&quot;;&#10;" in tour  # the script of the report, line by line as its hash was made
    assert "| ---" not in tour  # a table in Markdown is a table
    assert (tmp_path / "site" / "search" / "search_index.json").is_file()
    pages = [page.read_text("utf-8") for page in (tmp_path / "site").rglob("*.html")]
    loads = re.compile(r"<(?:script|img|iframe)[^>]* src=\"?(https?:[^\" >]*)|<link[^>]*stylesheet[^>]*(https?:\S*)")
    assert [found for page in pages for found in loads.findall(page)] == []
