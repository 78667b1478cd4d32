"""A parser whose help fits a screen: commands in groups, and advanced options only in `--help-all`."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

Groups = Mapping[str, Mapping[str, str]]  # title of a group -> name of a command -> its one-line summary


class HelpParser(argparse.ArgumentParser):
    """An `ArgumentParser` with advanced options; its subcommands are parsers of the same class."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.show_all = False
        self.advanced: argparse._ArgumentGroup | None = None

    def advanced_options(self) -> argparse._ArgumentGroup:
        """The group of the options that only `--help-all` shows."""
        if self.advanced is None:
            self.add_argument("--help-all", action=_HelpAll, nargs=0, help="show the advanced options too and exit")
            self.advanced = self.add_argument_group("advanced options")
        return self.advanced

    def format_help(self) -> str:
        with self._visible():
            return super().format_help()

    def format_usage(self) -> str:
        with self._visible():
            return super().format_usage()

    @contextmanager
    def _visible(self) -> Iterator[None]:
        """Suppress the advanced options unless all are to be shown."""
        hidden = self.advanced._group_actions if self.advanced and not self.show_all else []
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
