"""Parsers whose help fits a screen, and arguments from the fields of a dataclass.

A field made by `core.options.option` says everything: its name is the flag (`batch_size`: `--batch-size`), its type
says how the text is read, its default is named in the help. A boolean that is on by default becomes `--no-NAME`, and a
field that is a class of options brings all of its own fields along. Advanced options stand only in `--help-all`.
"""

from __future__ import annotations

import argparse
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import KEY, Option, OptionError

ADVANCED = "advanced options"
READ = (int, float, Path)  # types that argparse makes of a text; every other value stays one
Groups = Mapping[str, Mapping[str, str]]  # title of a group -> name of a command -> its one-line summary


class HelpParser(argparse.ArgumentParser):
    """An `ArgumentParser` with advanced options; its subcommands are parsers of the same class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.show_all = False
        self.advanced: dict[str, argparse._ArgumentGroup] = {}
        self.advanced_choices: list[
            argparse.Action
        ] = []  # advanced options that exclude others, among which they stand

    def advanced_options(self, title: str = ADVANCED) -> argparse._ArgumentGroup:
        """The group of that title; only `--help-all` shows its options."""
        if not self.advanced:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show the advanced options too and exit")
        if title not in self.advanced:
            self.advanced[title] = self.add_argument_group(title)
        return self.advanced[title]

    def format_help(self) -> str:
        with self._visible():
            return super().format_help()

    def format_usage(self) -> str:
        with self._visible():
            return super().format_usage()

    @contextmanager
    def _visible(self) -> Iterator[None]:
        """Suppress the advanced options unless all are to be shown."""
        groups = () if self.show_all else self.advanced.values()
        choices = () if self.show_all else self.advanced_choices
        hidden = [*choices, *(action for group in groups for action in group._group_actions)]
        texts = [action.help for action in hidden]
        for action in hidden:
            action.help = argparse.SUPPRESS
        try:
            yield
        finally:
            for action, text in zip(hidden, texts, strict=True):
                action.help = text


class _HelpAll(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: Any) -> None:
        assert isinstance(parser, HelpParser)
        parser.show_all = True
        parser.print_help()
        parser.exit()


class GroupedParser(HelpParser):
    """The parser of a program whose commands are listed in groups."""

    def __init__(self, *args: Any, groups: Groups, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.groups = groups
        self.commands = self.add_subparsers(dest="command", metavar="COMMAND", parser_class=HelpParser)

    def format_help(self) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(self.usage, self._actions, self._mutually_exclusive_groups)
        formatter.add_text(self.description)
        summaries = {action.dest: action for action in self.commands._choices_actions}
        for title, names in self.groups.items():
            formatter.start_section(title)
            formatter.add_arguments([summaries[name] for name in names])
            formatter.end_section()
        formatter.start_section("options")
        formatter.add_arguments(self._optionals._group_actions)
        formatter.end_section()
        formatter.add_text(self.epilog)
        return formatter.format_help()


@dataclass(frozen=True)
class Argument:
    """One field as an argument of the command line."""

    name: str
    about: Option
    kind: Any  # the type of a value
    many: bool  # it is a list
    default: Any  # MISSING where a value is required

    @property
    def flag(self) -> str:
        """How it is written on the command line; a positional argument by its name in the help."""
        if self.about.positional:
            return self.about.metavar or self.name.upper()
        word = self.name.replace("_", "-")
        return f"--no-{word}" if self.kind is bool and self.default is True else f"--{word}"

    @property
    def help(self) -> str:
        """The help text with the default, unless the text names it."""
        text = self.about.help
        if "default" not in text and self.default not in (MISSING, None, "", (), [], {}) and self.kind is not bool:
            values = self.default if self.many else [self.default]
            text += f" (default: {' '.join(f'{v:g}' if isinstance(v, float) else str(v) for v in values)})"
        return text.replace("%", "%%")

    def add_to(self, parser: Any) -> None:
        """Add the argument to a parser or to a group of its arguments."""
        how: dict[str, Any] = {"help": self.help, "default": None if self.default is MISSING else self.default}
        if self.kind is bool:
            parser.add_argument(
                self.flag, dest=self.name, help=how["help"], action="store_false" if self.default else "store_true"
            )
            return
        how |= {"metavar": self.about.metavar} if self.about.metavar else {}
        how |= {"choices": list(self.about.choices)} if self.about.choices else {}
        how |= {"type": self.kind} if self.kind in READ else {}
        if self.about.repeat:
            how["action"] = "append"
            how["default"] = None  # argparse would add to the default; `read` puts it in
        elif self.many:
            optional = self.default is not MISSING and (self.about.positional or self.about.bare is not None)
            how["nargs"] = "*" if optional else "+"
        elif self.about.positional and self.default is not MISSING:
            how["nargs"] = "?"
        elif self.about.bare is not None:
            how |= {"nargs": "?", "const": self.about.bare}
        if self.about.positional:
            how.setdefault("metavar", self.flag)
            parser.add_argument(self.name, **how)
        else:
            parser.add_argument(self.flag, dest=self.name, required=self.default is MISSING, **how)

    def read(self, given: argparse.Namespace) -> Any:
        """The value that was given, or the default."""
        value = getattr(given, self.name)
        if value is None or value is self.default:
            return self.default
        if self.about.parse is None:
            return value
        try:
            return self.about.parse(value)
        except UserError as wrong:
            raise UserError(f"{self.flag} {wrong}") from None


def add_arguments(parser: HelpParser, kind: type) -> None:
    """Add every field of a dataclass, and of those inside it, to a parser."""
    exclusive: dict[str, Any] = {}
    for field, hint in _hints(kind):
        about: Option = field.metadata[KEY]
        if is_dataclass(hint):
            _add_group(parser, hint, about)  # type: ignore[arg-type]
            continue
        place: Any = parser.advanced_options() if about.advanced else parser
        if about.one_of:
            place = exclusive.setdefault(about.one_of, None) or parser.add_mutually_exclusive_group()
            exclusive[about.one_of] = place
        _argument(field, hint).add_to(place)
        if about.one_of and about.advanced:
            parser.advanced_options()  # so that there is --help-all
            parser.advanced_choices.append(place._group_actions[-1])


def _add_group(parser: HelpParser, kind: type, about: Option) -> None:
    """Add the fields of a class of options; where the group is advanced, so are all of them."""
    title = about.title or ADVANCED
    place: Any = parser.add_argument_group(title) if about.title and not about.advanced else parser
    for argument in arguments(kind):
        if about.advanced:
            argument.add_to(parser.advanced_options(title))
        else:
            argument.add_to(parser.advanced_options() if argument.about.advanced else place)


def read_arguments(kind: type, given: argparse.Namespace) -> Any:
    """An object of the dataclass with the values that were given; a bad value is an error that names its flag."""
    values = {}
    for field, hint in _hints(kind):
        inner = is_dataclass(hint)
        values[field.name] = read_arguments(hint, given) if inner else _argument(field, hint).read(given)  # type: ignore[arg-type]
    try:
        return kind(**values)
    except OptionError as wrong:
        flag = next(argument.flag for argument in arguments(kind) if argument.name == wrong.name)
        raise UserError(f"{flag} {wrong.problem}") from None


def arguments(kind: type) -> list[Argument]:
    """The arguments of a dataclass, in the order of its fields, with those of the dataclasses inside it."""
    listed: list[Argument] = []
    for field, hint in _hints(kind):
        listed += arguments(hint) if is_dataclass(hint) else [_argument(field, hint)]  # type: ignore[arg-type]
    return listed


def _hints(kind: type) -> Iterator[tuple[Field, Any]]:
    hints = typing.get_type_hints(kind)
    for field in fields(kind):
        if KEY in field.metadata:
            yield field, hints[field.name]


def _argument(field: Field, hint: Any) -> Argument:
    default = field.default
    if field.default_factory is not MISSING:
        default = field.default_factory()
    kind, many = _kind(hint)
    return Argument(field.name, field.metadata[KEY], kind, many, default)


def _kind(hint: Any) -> tuple[Any, bool]:
    """The type of one value, and whether there are several; `None` is what an option has that was not given."""
    origin, inner = typing.get_origin(hint), [each for each in typing.get_args(hint) if each is not type(None)]
    if origin in (types.UnionType, typing.Union):
        return _kind(inner[0])
    if origin is Literal:
        return str, False
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _kind(inner[0])[0], True
    return hint, isinstance(origin, type)  # a mapping is parsed from several words
