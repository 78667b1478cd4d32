"""What a command of `srb` is, and which ones there are: ours, and those of extensions.

A command is a row with its name, group and help, which is all that `srb --help` needs, and where it is:
`package.module:NAME`, imported when the command is called. There lies a `Command`, or a tuple with one for each
subcommand. A module alone has it as `COMMAND` or `COMMANDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from speech_robust_bench.core.extensions import extensions, load_object


class Command(NamedTuple):
    """A command, or a subcommand with its name and help: the dataclass of its arguments, and what it does with them."""

    arguments: type
    run: Callable[[Any], int | None]  # returns the exit code, None for 0
    epilog: str = ""
    name: str = ""
    help: str = ""
    added: Callable[[], Mapping[str, tuple[Any, Any]]] | None = None  # fields of what extensions register: type, field

    @property
    def all_arguments(self) -> type:
        """The dataclass with the fields that extensions add."""
        if self.added is None:
            return self.arguments
        from speech_robust_bench.core.options import with_fields  # not for the list of commands

        return with_fields(self.arguments, self.added())


class CommandRow(NamedTuple):
    """A row of the list of commands; an extension has some in `COMMANDS`."""

    name: str
    group: str
    help: str
    where: str
    resumes: bool = False  # it goes on where it was interrupted; the others are done in seconds

    def load(self) -> Command | Sequence[Command]:
        """The command itself, or its subcommands."""
        if ":" in self.where:
            return load_object(self.where)
        module = import_module(self.where)
        return module.COMMANDS if hasattr(module, "COMMANDS") else module.COMMAND


# group -> module of `cli/`, and command -> its line in `srb --help`, in the order of the workflow
GROUPS: dict[str, tuple[str, dict[str, str]]] = {
    "start here": (
        "start",
        {
            "demo": "run, score and report on the built-in clips, offline",
            "ls": "list the scenarios by category, or the suites",
        },
    ),
    "data": (
        "data",
        {
            "build": "build scenarios as dataset configs",
            "check": "verify the hashes of built configs",
            "perturb": "apply one scenario, or all of them, to an audio file",
            "quality": "add DNSMOS and PESQ columns, or measure front ends",
            "difficulty": "compute or show how hard each scenario is",
        },
    ),
    "run and score": (
        "run_and_score",
        {
            "run": "run a recogniser over configs and store its transcripts",
            "score": "score a run: WER, WERD and NWERD with intervals",
            "table": "print the scores of runs, like the paper's Table 1",
            "report": "write an HTML page about any number of runs",
            "metrics": "install the metrics for evaluate.load, or export one",
        },
    ),
    "compare and diagnose": (
        "compare_and_diagnose",
        {
            "compare": "test whether one recogniser is more robust than another",
            "diagnose": "show which words, clips and speakers a model fails on",
        },
    ),
    "attack": ("attack", {"attack": "make the adversarial configs of one model"}),
    "publish": (
        "publish",
        {
            "push": "publish data, metrics or results on the Hugging Face Hub",
            "submit": "send a run to the leaderboard by pull request",
            "verify": "recompute the scores of a submission",
            "leaderboard": "serve the verified results as a page in the browser",
        },
    ),
}
RESUMING = {"demo", "build", "quality", "run", "attack", "push"}


@cache
def commands() -> dict[str, CommandRow]:
    """Every command by its name: ours, then those of extensions, which cannot replace one that is there."""
    ours = [
        CommandRow(name, group, help, f"speech_robust_bench.cli.{module}:{name.upper()}", name in RESUMING)
        for group, (module, names) in GROUPS.items()
        for name, help in names.items()
    ]
    added = [row for extension in extensions() for row in getattr(extension, "COMMANDS", ())]
    rows: dict[str, CommandRow] = {}
    for row in (*ours, *added):
        rows.setdefault(row.name, row)
    return rows


def groups() -> dict[str, dict[str, str]]:
    """The commands as the help lists them: group, name, help."""
    listed: dict[str, dict[str, str]] = {group: {} for group in GROUPS}
    for row in commands().values():
        listed.setdefault(row.group, {})[row.name] = row.help
    return listed
