"""What the documents say about scenarios is what the table says."""

from pathlib import Path

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.cli.command import commands
from speech_robust_bench.scenario_table import as_markdown

ROOT = Path(__file__).parents[2]


def test_the_scenario_page_holds_the_table():
    page = (ROOT / "docs" / "scenarios.md").read_text()
    assert page.rstrip().endswith(as_markdown(SCENARIOS.values())), "run: srb ls --markdown, and put it into the page"


def test_the_readme_names_every_command():
    readme = (ROOT / "README.md").read_text()
    assert [name for name in commands() if f"srb {name}" not in readme] == []
