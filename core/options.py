"""Options as dataclass fields: one source for an option's name, default, help text, flag and check.

A class of options is a dataclass that inherits from `Options`; each field is made by `option`. The Python API takes
such objects, and the command line derives its flags from the same fields (`cli.main`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass
from numbers import Integral
from typing import Any

from speech_robust_bench.core.errors import UserError

KEY = "option"
Settings = dict[str, Any]  # what a program was told, under its own names, as JSON holds it
Check = Callable[[Any], str | None]  # what is wrong with a value, to be read after its name


@dataclass(frozen=True)
class Option:
    """What a field says about itself beside its name, type and default."""

    help: str
    metavar: str | None = None
    choices: Sequence[Any] | None = None
    check: Check | None = None
    parse: Callable[[Any], Any] | None = None  # makes the value of what the command line was given
    positional: bool = False
    bare: Any = None  # the value of a flag that is given without one
    repeat: bool = False  # a list: one value each time that the flag is given
    advanced: bool = False  # only `--help-all` shows it, or the whole class of options
    one_of: str | None = None  # options with the same word here exclude each other
    title: str | None = None  # a field that is a class of options: the title of its group in the help


class OptionError(UserError):
    """An invalid value of an option: the option by its field name, and the problem."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name} {problem}")
        self.name, self.problem = name, problem


def option(default: Any = MISSING, help: str = "", **about: Any) -> Any:
    """A field with a help text; `about` are fields of `Option`. A list or dict as default is copied for each object."""
    metadata = {KEY: Option(help, **about)}
    if isinstance(default, list | dict):
        return dataclasses.field(default_factory=default.copy, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def argument(help: str, default: Any = MISSING, **about: Any) -> Any:
    """A positional argument of a command; one that is a list may be empty if it has a default."""
    return option(default, help, positional=True, **about)


def option_group(kind: type, title: str | None = None, **about: Any) -> Any:
    """A field that is itself a class of options, made with its defaults."""
    return dataclasses.field(default_factory=kind, metadata={KEY: Option("", title=title, **about)})


def with_fields(kind: type, added: Mapping[str, tuple[Any, Any]]) -> type:
    """The dataclass with further fields, of what extensions register: name -> type, field."""
    named = [(name, hint, field) for name, (hint, field) in added.items()]
    return dataclasses.make_dataclass(kind.__name__, named, bases=(kind,), frozen=True, kw_only=True)


class Options:
    """A class of options checks its values when an object is made."""

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            about, value = field.metadata.get(KEY), getattr(self, field.name)
            if about is None or value is None or value == field.default:
                continue
            if about.choices is not None and value not in about.choices:
                raise OptionError(field.name, f"must be one of {', '.join(map(str, about.choices))}, not {value!r}")
            if about.check is not None and (problem := about.check(value)):
                raise OptionError(field.name, problem)


def at_least(least: int) -> Check:
    """A whole number that is `least` or more."""

    def check(value: Any) -> str | None:
        whole = isinstance(value, Integral) and not isinstance(value, bool)
        return None if whole and value >= least else f"must be {least} or more, not {value!r}"

    return check


def above(least: float, most: float | None = None) -> Check:
    """A number above `least` and, if given, below `most`."""

    def check(value: Any) -> str | None:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if number and least < value and (most is None or value < most):
            return None
        return f"must be a number above {least:g}{'' if most is None else f' and below {most:g}'}, not {value!r}"

    return check


def named_paths(pairs: Sequence[str]) -> dict[str, str | None]:
    """NAME=PATH pairs of the command line as a dictionary; a name alone has no path.

    >>> named_paths(["en=LibriSpeech", "en-demo"])
    {'en': 'LibriSpeech', 'en-demo': None}
    """
    paths: dict[str, str | None] = {}
    for pair in pairs:
        name, given, path = pair.partition("=")
        if name in paths:
            raise UserError(f"{pair}: {name} is given twice; name one of them otherwise")
        paths[name] = path if given else None
    return paths


def shares(pairs: Sequence[str]) -> dict[str, float]:
    """GROUP=SHARE pairs of the command line as a dictionary."""
    parsed = {}
    for pair in pairs:
        group, _, share = pair.rpartition("=")
        try:
            parsed[group] = float(share)
        except ValueError:
            group = ""
        if not group or parsed[group] < 0:
            raise UserError(f"'{pair}' is not GROUP=SHARE, as in female=0.5 male=0.5")
    return parsed


RESAMPLE = ("auto", "speakers", "clips")


def resample_option(advanced: bool = False) -> Any:
    """What intervals and tests are over: a field that several classes of options have."""
    about = "intervals over speakers or clips (default: speakers where they are known)"
    return option("auto", about, choices=RESAMPLE, advanced=advanced)


def normaliser_option(advanced: bool = False) -> Any:
    """Which rules make the words of two transcripts comparable: a field that several classes of options have."""
    return option(
        "srb-paper-1",
        "text normaliser: srb-paper-1 (default; as in the paper and on the leaderboard), srb-numbers-1 (recommended "
        "for new results: '20' equals 'twenty'), srb-paper-2, open-asr-2026-08, open-asr-1, whisper-en, whisper-basic "
        "or none",
        metavar="NAME",
        advanced=advanced,
    )
