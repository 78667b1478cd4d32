"""Flags that are derived from dataclass fields, and commands of extensions."""

from __future__ import annotations

import types
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from speech_robust_bench.cli import command
from speech_robust_bench.cli.main import HelpParser, add_arguments, read_arguments
from speech_robust_bench.core.options import OptionError, Options, argument, at_least, option, option_group, shares


@dataclass(frozen=True)
class Inner(Options):
    batch_size: int | None = option(None, "clips at a time", metavar="N", check=at_least(1))
    dropout: bool = option(True, "run without dropout")
    rate: float = option(1e-4, "learning rate")
    hidden: str = option("", "an internal setting", advanced=True)


@dataclass(frozen=True, kw_only=True)
class Outer(Options):
    configs: list[str] = argument("names or patterns", [], metavar="CONFIG")
    out: Path = option(Path("runs"), "where it goes")
    corpus: list[str] = option([], "where a corpus is", repeat=True)
    tau: tuple[float, ...] = option((0.1, 0.2), "thresholds, in %")
    population: dict[str, float] | None = option(None, "shares", metavar="GROUP=SHARE", parse=shares)
    form: Literal["l2", "linf"] = option("l2", "the norm", choices=("l2", "linf"))
    csv: bool = option(False, "as CSV", one_of="form")
    json: bool = option(False, "as JSON", one_of="form")
    inner: Inner = option_group(Inner, "inside")


def parser() -> HelpParser:
    made = HelpParser(prog="x")
    add_arguments(made, Outer)
    return made


def read(*words: str) -> Outer:
    return read_arguments(Outer, parser().parse_args(words))


def test_without_arguments_every_value_is_the_default():
    assert read() == Outer()
    assert read().inner == Inner(None, True, 1e-4, "")


def test_values_have_the_types_of_their_fields():
    words = (
        "en_clean en_echo --out x --corpus en=a --corpus es=b --tau 0.5 --form linf --json --batch-size 3 --no-dropout"
    )
    made = read(*words.split(), "--population", "a=0.25", "b=0.75")
    assert made.configs == ["en_clean", "en_echo"]
    assert made.out == Path("x")
    assert (made.corpus, list(made.tau)) == (["en=a", "es=b"], [0.5])
    assert made.population == {"a": 0.25, "b": 0.75}
    assert (made.form, made.json, made.csv) == ("linf", True, False)
    assert (made.inner.batch_size, made.inner.dropout) == (3, False)


def test_the_help_has_groups_defaults_and_no_advanced_options():
    text = parser().format_help()
    for part in ("[CONFIG ...]", "inside:", "learning rate (default: 0.0001)", "thresholds, in % (default: 0.1 0.2)"):
        assert part in text
    assert "--hidden" not in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--batch-size", "0"], "--batch-size must be 1 or more, not 0"),
        (["--population", "a"], "--population 'a' is not GROUP=SHARE, as in female=0.5 male=0.5"),
    ],
)
def test_a_bad_value_is_named_by_its_flag(words, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        read(*words)


def test_a_bad_value_in_python_is_named_by_its_field():
    with pytest.raises(OptionError, match="batch_size must be 1 or more, not 0"):
        Inner(batch_size=0)
    with pytest.raises(OptionError, match="form must be one of l2, linf, not 'l3'"):
        Outer(form="l3")  # type: ignore[arg-type]


def test_options_of_one_group_exclude_each_other(capsys):
    with pytest.raises(SystemExit):
        read("--csv", "--json")
    assert "not allowed with" in capsys.readouterr().err


def test_an_extension_adds_a_command_but_replaces_none(monkeypatch, capsys):
    """The module of an extension has rows; the command runs like one of ours."""
    from speech_robust_bench.cli import main as program

    @dataclass
    class Arguments:
        name: str = argument("whom to greet")

    module = types.ModuleType("greeting_extension")
    module.COMMAND = command.Command(Arguments, lambda given: print(f"hello {given.name}"))  # type: ignore[attr-defined]
    rows = [
        command.CommandRow("greet", "fun", "greet somebody", "greeting_extension"),
        command.CommandRow("run", "fun", "another run", "greeting_extension"),
    ]
    monkeypatch.setitem(__import__("sys").modules, "greeting_extension", module)
    monkeypatch.setattr(command, "extensions", lambda: [types.SimpleNamespace(COMMANDS=rows)])
    command.commands.cache_clear()
    try:
        assert command.groups()["fun"] == {"greet": "greet somebody"}
        assert command.commands()["run"].where == "speech_robust_bench.cli.run_and_score:RUN"
        assert program.main(["greet", "world"]) == 0
        assert "hello world" in capsys.readouterr().out
    finally:
        command.commands.cache_clear()
