"""The `srb` command.

Commands are rows of `cli.command`. Only the module of the command that was asked for is imported: it derives its
arguments from a dataclass, calls the Python API and prints.
"""

from __future__ import annotations

import argparse
import errno
import importlib
import signal
import sys
import warnings
from collections.abc import Sequence
from typing import Any

from speech_robust_bench.cli.command import Command, CommandRow, commands, groups
from speech_robust_bench.cli.flags import GroupedParser, HelpParser

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
    from speech_robust_bench.cli.flags import add_arguments, read_arguments

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
