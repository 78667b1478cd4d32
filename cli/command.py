"""What a command of `srb` is, which there are (ours, and those of extensions), and the arguments that several share.

A command is a row with its name, group and help, which is all that `srb --help` needs, and where it is:
`package.module:NAME`, imported when the command is called. There lies a `Command`, or a tuple with one for each
subcommand. A module alone has it as `COMMAND` or `COMMANDS`. Shared arguments have one name and one help text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, NamedTuple

from speech_robust_bench.core.extensions import extensions, load_object
from speech_robust_bench.core.options import argument, at_least, named_paths, option, with_fields


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


Corpora = Mapping[str, str | None]  # what `--corpus` names: language and name -> path
BUILT = "built folder, name in the datasets cache, or Hub dataset"


def configs_argument(help: str = "configs or patterns, such as 'en_noise_*' (default: all)") -> Any:
    return argument(help, [], metavar="CONFIG")


def run_argument() -> Any:
    return argument("run folder, such as runs/moonshine", metavar="RUN")


def runs_argument(help: str = "run folders; one without results is scored first") -> Any:
    return argument(help, metavar="RUN")


def model_option(help: str = "recogniser, adapter:target?option=value&...", default: Any = None) -> Any:
    return option(help=help, metavar="M") if default is None else option(default, help, metavar="M")


def corpus_option(
    help: str = "folder of a corpus, as in en=LibriSpeech or en-tedlium=FOLDER; en-demo is built in",
    advanced: bool = False,
) -> Any:
    return option({}, help, metavar="LANG[-NAME]=PATH", repeat=True, parse=named_paths, advanced=advanced)


def limit_option(help: str = "only the first N clips of each config") -> Any:
    return option(None, help, metavar="N", check=at_least(1))


def quiet_option(advanced: bool = False) -> Any:
    return option(False, "show no progress", advanced=advanced)


def json_option(help: str = "print the result as JSON") -> Any:
    return option(False, help)


def allow_changed_option() -> Any:
    return option(False, "accept predictions or results that were edited after the run")


def groups_option(help: str) -> Any:
    return option(None, f"{help}: a column of the clips, such as domain or gender", metavar="COLUMN")


def benchmark_option() -> Any:
    return option("srb", "built folder, benchmark.json or ORG/srb", metavar="WHERE")


def adversarial_option() -> Any:
    help = "audio of the model's own adversarial configs: a folder or ORG/DATASET (default: --data)"
    return option(None, help, metavar="WHERE")
