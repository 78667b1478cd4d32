"""The `srb` command: parsers whose help fits a screen, and arguments from the fields of a dataclass.

Commands are rows of `cli.command`. Only the module of the command that was asked for is imported: it derives its
arguments from a dataclass, calls the Python API and prints.

A field made by `core.options.option` says everything: its name is the flag (`batch_size`: `--batch-size`), its type
says how the text is read, its default is named in the help. A boolean that is on by default becomes `--no-NAME`, and a
field that is a class of options brings all of its own fields along. Advanced options stand only in `--help-all`.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import signal
import sys
import types
import typing
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from speech_robust_bench.cli.command import Command, CommandRow, commands, groups
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


# what a write says that finds no room; it does not name its file
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; a user's mistake is one line on stderr and exit code 2, never a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    signals: list[int] = []
    try:
        if argv is None:  # the program itself, not a call from Python
            _stop_at_signals(signals)
        return _run(words, command)
    except (KeyboardInterrupt, Exception) as error:
        if not signals and not isinstance(error, KeyboardInterrupt):
            raise
        from speech_robust_bench.core.engines import stop_forkserver

        stop_forkserver()
        resumes = command in commands() and commands()[command].resumes
        again = "to go on" if resumes else "to start over"
        print(f"srb {command}: interrupted; run the same command again {again}", file=sys.stderr)
        return 128 + (signals[0] if signals else signal.SIGINT)


def _stop_at_signals(signals: list[int]) -> None:
    """Let Ctrl-C and `kill` end the command alike, with workers stopped and what is done kept; note which it was.

    A package that is interrupted while it is imported may raise something else (numpy: an ImportError).
    """

    def stop(number: int, frame: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        signal.signal(signal.SIGINT, stop)


def _run(argv: list[str], command: str | None) -> int:
    """The exit code of a command. A mistake of the user's, or a file that cannot be used, is one line."""
    from speech_robust_bench.core.errors import Notice, UserError

    try:
        parser = parser_of(command)
        args = parser.parse_args(argv)
        if not hasattr(args, "_call"):
            parser.print_help()
            return 0
        with warnings.catch_warnings():
            warnings.simplefilter("always", Notice)
            warnings.showwarning = _show_warning
            return args._call(args) or 0
    except UserError as mistake:
        from speech_robust_bench.core.errors import for_terminal

        print(f"srb {command}: {for_terminal(str(mistake))}", file=sys.stderr)
        return 2
    except OSError as failed:
        if isinstance(failed, BrokenPipeError):  # `srb ls | head`
            sys.stderr.close()
            return 0
        if failed.strerror is None or (failed.filename is None and failed.errno not in _FULL):
            raise  # not about a file that the user named
        where = f"{failed.filename}: " if failed.filename is not None else ""
        print(f"srb {command}: {where}{failed.strerror.lower()}", file=sys.stderr)
        return 2


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: Any = None,
    line: str | None = None,
) -> None:
    """A warning of ours as a line of its own; others as Python writes them."""
    from speech_robust_bench.core.errors import Notice, for_terminal

    ours = issubclass(category, Notice)
    text = for_terminal(str(message)) if ours else warnings.formatwarning(message, category, filename, lineno).rstrip()
    print(text, file=sys.stderr, flush=True)


def parser_of(command: str | None) -> argparse.ArgumentParser:
    """The parser of the whole command; of its subcommands, only the one that is asked for knows its arguments."""
    parser = GroupedParser(
        prog="srb",
        description="Build scenarios, run a recogniser over them, score its transcripts.",
        groups=groups(),
        add_help=False,
    )
    parser.add_argument("-h", "--help", action="help", help="show this and exit; `srb COMMAND --help`: its options")
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    for row in commands().values():
        sub = parser.commands.add_parser(row.name, help=row.help, description=_sentence(row.help))
        if row.name == command:
            _add_command(sub, row)
    return parser


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _add_command(parser: HelpParser, row: CommandRow) -> None:
    module = importlib.import_module(row.where.partition(":")[0])
    if hasattr(module, "arguments"):
        module.arguments(parser)
        parser.set_defaults(_call=module.run)
        return
    loaded = row.load()
    if isinstance(loaded, Command):
        _add_arguments(parser, loaded)
        return
    below = parser.add_subparsers(dest=row.name, metavar="COMMAND", required=True)
    parser.epilog = f"`srb {row.name} COMMAND --help` shows the options of each."
    for each in loaded:
        _add_arguments(below.add_parser(each.name, help=each.help, description=_sentence(each.help)), each)


def _add_arguments(parser: HelpParser, command: Command) -> None:
    parser.epilog, parser.formatter_class = command.epilog or None, argparse.RawDescriptionHelpFormatter
    arguments = command.all_arguments
    add_arguments(parser, arguments)
    parser.set_defaults(_call=lambda given: command.run(read_arguments(arguments, given)))


class _Version(argparse.Action):
    def __call__(self, parser, *_):
        from speech_robust_bench import __version__

        print("srb", __version__)
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
