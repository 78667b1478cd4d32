"""Arguments that several commands share, under one name and with one help text."""

from __future__ import annotations

from typing import Any

from speech_robust_bench.core.options import argument, at_least, option

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
    return option([], help, metavar="LANG[-NAME]=PATH", repeat=True, advanced=advanced)


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
