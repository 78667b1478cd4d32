"""The help of `srb` and of its commands: groups, lengths, and how fast it comes."""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pytest

from speech_robust_bench.cli.command import commands, groups
from speech_robust_bench.cli.main import parser_of

COMMANDS = {name: row.help for name, row in commands().items()}
GROUPS = groups()

CLI = Path(__file__).parents[2] / "cli"
NOT_COMMANDS = {"__init__", "arguments", "command", "flags", "main", "program", "rendering"}


def test_every_command_is_in_one_group():
    grouped = [name for group in GROUPS.values() for name in group]
    assert len(grouped) == len(set(grouped)) == len(COMMANDS)
    ours = {row.where.split(":")[0] for row in commands().values() if row.where.startswith("speech_robust_bench.cli.")}
    modules = {path.stem for path in CLI.glob("*.py")} - NOT_COMMANDS
    assert ours == {f"speech_robust_bench.cli.{module}" for module in modules}


def test_help_lists_the_groups_and_fits_a_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    lines = parser_of(None).format_help().splitlines()
    assert [line[:-1] for line in lines if line.endswith(":") and line[:-1] in GROUPS] == list(GROUPS)
    listed = [line.split(maxsplit=1) for line in lines if line.startswith("  ") and not line.startswith("  -")]
    assert listed == [[name, summary] for group in GROUPS.values() for name, summary in group.items()]
    assert len(lines) <= 50
    assert max(map(len, lines)) <= 80


def seconds(*words: str) -> float:
    """The median time of five starts of Python."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        subprocess.run([sys.executable, *words], capture_output=True, check=True)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def test_help_starts_within_8_times_of_python():
    assert seconds("-m", "speech_robust_bench", "--help") < 8 * seconds("-c", "pass")


def leaves(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parsers below a parser that have no subcommands, by their program name."""
    below = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        return {parser.prog: parser}
    return {name: leaf for action in below for child in action.choices.values() for name, leaf in leaves(child).items()}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_argument_has_a_help_text(command):
    (parser,) = [sub for name, sub in parser_of(command).commands.choices.items() if name == command]
    for name, leaf in leaves(parser).items():
        assert [action.dest for action in leaf._actions if not action.help] == [], name


def shown(parser: argparse.ArgumentParser) -> list[str]:
    """The options that a parser's help lists, the one for help among them."""
    lines = parser.format_help().splitlines()
    return [line.split()[0] for line in lines if line.startswith("  -")]


def attack_parsers() -> dict[str, argparse.ArgumentParser]:
    return leaves(parser_of("attack").commands.choices["attack"])


def test_every_attack_is_a_subcommand():
    from speech_robust_bench.builders.scenarios import attacks

    assert set(attack_parsers()) == {f"srb attack {scenario.name}" for scenario in attacks()}


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_at_most_15_options_and_all_on_demand(command, capsys):
    for name, parser in leaves(parser_of(command).commands.choices[command]).items():
        assert len(shown(parser)) <= 15, name
        if "--help-all" not in parser._option_string_actions:
            continue
        with pytest.raises(SystemExit):
            parser.parse_args(["--help-all"])
        listed = {word for word in capsys.readouterr().out.split() if word.startswith("--")}
        assert {flag for action in parser._actions for flag in action.option_strings if flag != "-h"} <= {
            flag.rstrip(",]") for flag in listed
        }, name
