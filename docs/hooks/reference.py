"""Generates the reference part of the site from the code, so that it cannot say anything else than the code does.

Commands come from their parsers, the Python API from docstrings (by mkdocstrings), scenarios, corpora and recognisers
from their registries, file formats from the record types, and metrics from their cards. `pages()` returns every page
by its path; `docs/hooks/site.py` adds them to the site.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import io
import re
import textwrap
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout
from pathlib import Path
from types import ModuleType
from typing import Any

import msgspec

import speech_robust_bench as srb
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.cli.command import groups
from speech_robust_bench.cli.main import arguments, main, parser_of
from speech_robust_bench.core import records, result_records
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.options import Options
from speech_robust_bench.scoring.measures import measures

ROOT = Path(__file__).parents[2]


def pages() -> dict[str, str]:
    """Every generated page: its path below `docs/` and its text, in the order of the navigation."""
    return {
        "reference/commands.md": _command_index(),
        **{f"reference/commands/{name}.md": text for name, text in _commands()},
        "reference/python.md": _python_index(),
        **_python_pages(),
        "reference/scenarios.md": _scenarios(),
        "reference/difficulty.md": _difficulty(),
        "reference/suites.md": _suites(),
        "reference/corpora.md": _corpora(),
        "reference/recognisers.md": _recognisers(),
        "reference/files.md": _files(),
        "reference/metrics.md": _metric_index(),
        **{f"reference/metrics/{path.parent.name}.md": _metric_card(path) for path in _cards()},
    }


def _escaped(text: str) -> str:
    """A cell's text with its bars escaped, except in code, where a bar is one."""
    return "".join(part if part.startswith("`") else part.replace("|", "\\|") for part in re.split(r"(`[^`]*`)", text))


def table(heads: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    """A Markdown table; bars and line breaks in a cell do not end it."""

    def line(cells: Iterable[Any]) -> str:
        texts = (" ".join(str("" if cell is None else cell).split()) for cell in cells)
        return "| " + " | ".join(_escaped(text) for text in texts) + " |"

    heads = list(heads)
    return "\n".join([line(heads), "|" + "---|" * len(heads), *map(line, rows)]) + "\n"


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."


# --- commands --------------------------------------------------------------------------------------------------------


def _command_index() -> str:
    parts = ["# Commands\n", "`srb COMMAND --help` prints the same text as these pages.\n"]
    for title, names in groups().items():
        rows = [(f"[`srb {name}`](commands/{name}.md)", _sentence(help)) for name, help in names.items()]
        parts += [f"## {title.capitalize()}\n", table(("command", "purpose"), rows)]
    return "\n".join(parts)


def _commands() -> Iterator[tuple[str, str]]:
    for names in groups().values():
        for name in names:
            yield name, _command(f"srb {name}", _parser(name), 1)


def _parser(command: str) -> Any:
    return _below(parser_of(command))[command]


def _below(parser: argparse.ArgumentParser) -> dict[str, Any]:
    found = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    return dict(found[0].choices) if found else {}


def _wrapped(usage: str) -> str:
    """The usage in lines that fit the page, broken between options."""
    whole = re.sub(r"\[[^\[\]]*\]", lambda match: match[0].replace(" ", "\xa0"), usage)
    lines = textwrap.fill(whole, 80, subsequent_indent="    ", break_long_words=False, break_on_hyphens=False)
    return lines.replace("\xa0", " ")


def _command(name: str, parser: Any, level: int) -> str:
    parts = [f"{'#' * level} `{name}`\n", f"{parser.description or ''}\n"]
    below = _below(parser)
    if not below:
        parser.show_all = True
        usage = _wrapped(" ".join(parser.format_usage().removeprefix("usage: ").split()))
        parts.append(f"```text\n{usage}\n```\n")
    for group in parser._action_groups:
        rows = [_option(action) for action in group._group_actions if _listed(action)]
        if rows:
            title = {"positional arguments": "Arguments", "options": "Options"}.get(group.title, group.title)
            parts += [f"**{title[0].upper()}{title[1:]}**\n", table(("", "", "default"), rows)]
    if parser.epilog and not below:
        parts.append(f"```text\n{parser.epilog.strip()}\n```\n")
    parts += [_command(f"{name} {each}", child, level + 1) for each, child in below.items()]
    return "\n".join(parts)


def _listed(action: argparse.Action) -> bool:
    return action.dest not in ("help", "help_all") and not isinstance(action, argparse._SubParsersAction)


def _option(action: argparse.Action) -> tuple[str, str, str]:
    """An option's flag with its value, its help, and its default, which the help has in brackets."""
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    takes = action.nargs != 0 and action.option_strings
    flag = f"{', '.join(action.option_strings) or action.metavar}{f' {value or action.dest.upper()}' if takes else ''}"
    text = (action.help or "").replace("%%", "%")
    match = re.fullmatch(r"(.*) \(default: ([^()]*)\)", text)
    help, default = match.groups() if match else (text, "required" if action.required and takes else "")
    return f"`{flag}`", help, default


# --- the Python API --------------------------------------------------------------------------------------------------


def _python_names() -> dict[str, dict[str, Any]]:
    """The public names by kind, each with its object."""
    kinds: dict[str, dict[str, Any]] = {"functions": {}, "classes": {}, "options": {}}
    for name in dir(srb):
        value = getattr(srb, name)
        if name.startswith("_"):
            continue
        if isinstance(value, ModuleType):
            continue
        is_options = isinstance(value, type) and issubclass(value, Options)
        kinds["options" if is_options else "classes" if isinstance(value, type) else "functions"][name] = value
    return kinds


def _summary(value: Any) -> str:
    return (inspect.getdoc(value) or "").split("\n\n")[0].replace("\n", " ")


def _python_index() -> str:
    parts = [
        "# Python API\n",
        "`import speech_robust_bench as srb` imports nothing heavy: each name is loaded when it is first used. Invalid "
        "arguments raise `ValueError` with one line that names the problem and the solution.\n",
    ]
    for kind, names in _python_names().items():
        rows = [(f"[`srb.{n}`](python/{kind}.md#{_anchor(kind, n, v)})", _summary(v)) for n, v in names.items()]
        parts += [f"## {kind.capitalize()}\n", table(("name", "purpose"), rows)]
    parts += [
        "## Metrics\n",
        "`srb.metrics` has each [metric](metrics.md) as a plain function: `srb.metrics.nwerd(...)`.\n",
    ]
    return "\n".join(parts)


def _anchor(kind: str, name: str, value: Any) -> str:
    return f"srb.{name}" if kind == "options" else f"{value.__module__}.{value.__qualname__}"


def _python_pages() -> dict[str, str]:
    texts = {}
    for kind, names in _python_names().items():
        each = _options if kind == "options" else _documented
        texts[f"reference/python/{kind}.md"] = f"# {kind.capitalize()}\n\n" + "\n".join(
            each(name, value) for name, value in names.items()
        )
    return texts


def _documented(name: str, value: Any) -> str:
    """A name for mkdocstrings, which reads signature and docstring."""
    where = f"{value.__module__}.{value.__qualname__}"
    return f"::: {where}\n    options:\n      heading: srb.{name}\n      toc_label: srb.{name}\n"


def _options(name: str, kind: type) -> str:
    """A class of options: each field, its flag on the command line, its help and its default."""
    rows = []
    for argument in arguments(kind):
        default = argument.default if argument.default not in ((), [], {}) else None
        text = argument.help.replace("%%", "%")
        rows.append((f"`{argument.name}`", f"`{argument.flag}`", re.sub(r" \(default: [^()]*\)$", "", text), default))
    heading = f"## `srb.{name}` {{: #srb.{name} }}\n"
    return "\n".join([heading, f"{_summary(kind)}\n", table(("field", "flag", "", "default"), rows)])


# --- scenarios, difficulties, suites ---------------------------------------------------------------------------------


def _scenarios() -> str:
    rows = list(SCENARIOS.values())
    configs = sum(len(row.levels) for row in rows)
    parts = [
        "# Scenarios\n",
        f"{len(rows)} scenarios, {configs} configs with their severities, as `srb ls` lists them. "
        "[Concepts](../concepts/scenarios.md) explains how they are applied.\n",
    ]
    for category in CATEGORIES.values():
        chosen = [row for row in rows if row.category == category.name]
        cells = [
            (
                f"`{row.name}`",
                row.help,
                row.parameter,
                ", ".join(str(value) for value in row.severities if value is not None),
                row.source,
            )
            for row in chosen
        ]
        if cells:
            parts += [f"## `{category.name}`: {category.label}\n"]
            parts += [table(("scenario", "effect", "parameter", "severities, mildest first", "source"), cells)]
    return "\n".join(parts)


def _difficulty() -> str:
    listing = io.StringIO()
    with redirect_stdout(listing):
        main(["difficulty"])
    explained = io.StringIO()
    with redirect_stdout(explained):
        main(["difficulty", "--explain"])
    return (
        "# Difficulty tables\n\nNWERD and NWER divide by these numbers. "
        "[Concepts](../concepts/difficulty.md) explains where they come from.\n\n"
        f"## `srb difficulty`\n\n```text\n{_right_stripped(listing)}```\n\n"
        f"## `srb difficulty --explain`\n\n```text\n{_right_stripped(explained)}```\n"
    )


def _right_stripped(text: io.StringIO) -> str:
    return "".join(f"{line.rstrip()}\n" for line in text.getvalue().splitlines())


def _suites() -> str:
    listing = io.StringIO()
    with redirect_stdout(listing):
        main(["ls", "--suite"])
    return (
        "# Suites\n\nA suite is a fixed, versioned part of the benchmark. "
        "[Use fewer clips](../how-to/use-fewer-clips.md) says which one to take.\n\n"
        f"```text\n{_right_stripped(listing)}```\n"
    )


# --- corpora and recognisers -----------------------------------------------------------------------------------------


def _corpora() -> str:
    from speech_robust_bench.builders.corpora import CORPORA
    from speech_robust_bench.core.names import default_corpus

    rows = []
    for name, entry in sorted(CORPORA.items()):
        language = entry.languages[0] if entry.languages else "en"
        flag = language if name == default_corpus(language) else f"{language}-{name}"
        terms = entry.info.licence + ("" if entry.info.derivatives_allowed else " (build, never publish)")
        source = "" if name == "demo" else "=FOLDER"
        rows.append((f"`{flag}{source}`", entry.info.title, ", ".join(entry.languages), terms, entry.info.get))
    return (
        "# Corpora\n\nValues of `--corpus`. Any other name is your own corpus: "
        "[use my recordings](../how-to/use-my-recordings.md).\n\n"
        + table(("`--corpus`", "corpus", "languages", "licence", "source"), rows)
    )


def _recognisers() -> str:
    from speech_robust_bench.core.extensions import load_object
    from speech_robust_bench.models.interface import adapters

    parts = [
        "# Recognisers\n",
        "`--model` takes `adapter:target?option=value&option=value`. Quote it in a shell, where `?` and `&` have a "
        "meaning. Options that an adapter does not have are refused.\n",
    ]
    for name, place in adapters().items():
        module, load = importlib.import_module(place.partition(":")[0]), load_object(place, "load")
        rows = [
            (f"`{each.name}`", str(each.annotation), repr(each.default))
            for each in inspect.signature(load).parameters.values()
            if each.kind is each.KEYWORD_ONLY
        ]
        install = getattr(module, "INSTALL", "")
        parts += [f"## `{name}`\n", f"{inspect.getdoc(load)}\n"]
        parts += [f"It needs `{install}`.\n"] if install.startswith("pip ") else []
        parts += [table(("option", "type", "default"), rows)] if rows else []
    return "\n".join(parts)


# --- file formats ----------------------------------------------------------------------------------------------------

_FIELD = re.compile(r"^    (\w+): (.+?)(?:  # (.*))?$")


def _files() -> str:
    """Every record type: its fields with their types, and the comment beside a field as its meaning."""
    parts = [
        "# File formats\n",
        "The JSON files that the commands write and read are records of these types. A field without a default is "
        "always there. Values of another type, NaN and broken Unicode are refused when a file is read. "
        "[Files](../concepts/files.md) explains which command writes which file.\n",
    ]
    for kind in _records():
        if fields := list(_fields(kind)):
            parts += [f"## {kind.__name__}\n", f"{_summary(kind)}\n", table(("field", "type", "meaning"), fields)]
    return "\n".join(parts)


def _records() -> list[type]:
    """The record types of `core/`, and those in which measures keep their values."""
    modules = (records, result_records)
    ours = [kind for module in modules for kind in vars(module).values() if _is_record(kind, module.__name__)]
    return list(dict.fromkeys([*ours, *(each.record for each in measures().values() if _is_record(each.record))]))


def _is_record(kind: Any, module: str | None = None) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct | tuple) and module in (None, kind.__module__)


def _fields(record: type) -> Iterator[tuple[str, str, str]]:
    own = set(getattr(record, "__struct_fields__", getattr(record, "_fields", ())))
    for line in inspect.getsource(record).splitlines():
        match = _FIELD.match(line)
        if match and match[1] in own:
            yield f"`{match[1]}`", f"`{_plain_type(match[2].partition(' = ')[0])}`", match[3] or ""


def _plain_type(hint: str) -> str:
    """A type as JSON has it, without the bounds."""
    plain = re.sub(r"Annotated\[([\w\[\], ]+?), (?:Meta|_matching)\(.*?\)\]", r"\1", hint)
    plain = plain.replace(" | UnsetType", "")
    return re.sub(r"\b(Whole|NotNegative|Settings)\b", lambda name: _ALIASES[name[0]], plain)


_ALIASES = {"Whole": "int", "NotNegative": "float", "Settings": "dict[str, Any]"}


# --- metrics ---------------------------------------------------------------------------------------------------------


def _cards() -> list[Path]:
    return sorted((ROOT / "metrics").glob("*/README.md"))


def _metric_card(path: Path) -> str:
    """The card of a metric's Space without its front matter."""
    return re.sub(r"\A---\n.*?\n---\n+", "", path.read_text("utf-8"), flags=re.DOTALL)


def _metric_index() -> str:
    rows = []
    for path in _cards():
        front = path.read_text("utf-8").split("---\n")[1]
        description = " ".join(front.split("description: >-")[1].split()) if "description: >-" in front else ""
        rows.append((f"[`{path.parent.name}`](metrics/{path.parent.name}.md)", description))
    return (
        "# Metrics\n\nModules for `evaluate.load`. Run `srb metrics install` once, and they load by name, offline too. "
        "[Score transcripts](../how-to/score-transcripts.md) shows how.\n\n" + table(("metric", "measures"), rows)
    )
