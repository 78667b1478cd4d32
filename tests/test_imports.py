"""Imports flow one way: each room imports from those before it, and no two modules import each other, lazily or not."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# From the ground up: a room may import from those before it.
ROOMS = (
    "core",
    "builders",
    "scoring",
    "metrics",
    "models",
    "attacks",
    "report",
    "push",
    "speech_robust_bench",
    "cli",
)
# Programs: pages that run in a Space, and `python -m speech_robust_bench`.
DEPLOYED = {*ROOT.glob("metrics/*/app.py"), ROOT / "speech_robust_bench" / "__main__.py"}


@cache
def modules() -> dict[str, Path]:
    """Every module of ours by the name that it is imported by."""
    found = {}
    for room in ROOMS:
        for path in (ROOT / room).rglob("*.py"):
            if path not in DEPLOYED and path.name != "__main__.py":  # which starts the command
                parts = path.relative_to(ROOT).with_suffix("").parts
                package = parts if room == "speech_robust_bench" else ("speech_robust_bench", *parts)
                found[".".join(package).removesuffix(".__init__")] = path
    return found


@cache
def imports(module: str) -> frozenset[str]:
    """The modules of ours that a module imports, inside functions too; those for type checkers alone do not count."""
    tree = ast.parse(modules()[module].read_text(encoding="utf-8"))
    typing_only = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for statement in node.body
        for inner in ast.walk(statement)
    }
    found = set()
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            inside = {f"{node.module}.{alias.name}" for alias in node.names}
            named = inside & modules().keys()
            found |= named
            if len(named) < len(inside):
                found.add(node.module)
    return frozenset(found & modules().keys()) - {module}


def room(module: str) -> int:
    first = module.removeprefix("speech_robust_bench.").split(".")[0]
    return ROOMS.index(first if first in ROOMS else "speech_robust_bench")


@pytest.mark.parametrize("name", ROOMS)
def test_a_room_imports_only_from_the_rooms_before_it(name):
    upward = {
        f"{module} -> {other}"
        for module in modules()
        for other in imports(module)
        if ROOMS[room(module)] == name and room(other) > room(module)
    }
    assert not upward


def test_no_modules_import_each_other_in_a_circle():
    """A depth-first walk that meets a module which it has not left yet has found a circle."""
    done: set[str] = set()

    def walk(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path[path.index(module) :], module))
        if module not in done:
            for other in sorted(imports(module)):
                walk(other, (*path, module))
            done.add(module)

    for module in modules():
        walk(module, ())


def test_the_walk_sees_imports_inside_functions():
    """The check itself: `srb.run` imports the runner inside a function."""
    assert "speech_robust_bench.models.runner" in imports("speech_robust_bench.evaluation")


# What the command line may import beside the API: options, errors and what prints; `extensions` has the commands of
# others, and `engines` ends the workers at Ctrl-C.
PRINTING = {"engines", "errors", "extensions", "options", "progress"}


def test_the_command_line_imports_only_api_and_rendering():
    """Commands parse, call the API and print; nothing in them knows the rooms behind it."""
    front = {path.stem for path in (ROOT / "speech_robust_bench").glob("*.py")}
    wrong = set()
    for module in modules():
        if room(module) != ROOMS.index("cli"):
            continue
        for other in imports(module) - {"speech_robust_bench"}:
            place, *rest = other.removeprefix("speech_robust_bench.").split(".")
            if not (place in front or place == "cli" or (place == "core" and rest and rest[0] in PRINTING)):
                wrong.add(f"{module} -> {other}")
    assert not wrong


POSIX_ALONE = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}


def test_every_module_can_be_imported_on_windows():
    for name, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:  # what is imported when the module is
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module} if isinstance(node, ast.ImportFrom) else set()
            assert not names & POSIX_ALONE, f"{name} imports {names & POSIX_ALONE}, which Windows does not have"
