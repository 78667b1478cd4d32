"""Figures of the code itself: how many modules, how long, how typed, and how many options a command shows.

    python benchmarks/house.py

Counted with `ast`, tests and benchmarks left out: modules with code and their lines; functions over 50 lines; imports
inside functions per 1,000 lines; annotations that say `dict[str, Any]` or `Json`, and those that say it by another name
(`Settings`); modules that exactly one other imports; and the options that each command's help lists.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import numpy as np

ROOT = Path(__file__).parents[1]
PACKAGE = "speech_robust_bench"
ROOMS = ("core", "builders", "scoring", "metrics", "models", "attacks", "extensions", "report", "push", "cli", PACKAGE)
LONG_FUNCTION = 50  # lines


def modules() -> dict[str, Path]:
    """Every module of the product by its import name, without empty `__init__` files and the pages of Spaces."""
    found = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            name = ".".join(parts if room == PACKAGE else (PACKAGE, *parts)).removesuffix(".__init__")
            if path.name != "app.py" and len(path.read_text("utf-8").splitlines()) > 1:
                found[name] = path
    return found


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def inner_imports(tree: ast.Module) -> int:
    """Imports inside functions, each counted once however deep it is nested."""
    inside = {
        id(node)
        for function in functions(tree)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(inside)


def untyped(tree: ast.Module, words: Iterable[str] = ("dict[str, Any]", "Json")) -> int:
    """Annotations that mention one of some words, `dict[str, Any]` or `Json`."""
    notes: list[ast.expr] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
            notes += [note for note in (*(argument.annotation for argument in arguments), node.returns) if note]
        elif isinstance(node, ast.AnnAssign):
            notes.append(node.annotation)
    pattern = re.compile("|".join(rf"(?<!\w){re.escape(word)}(?!\w)" for word in words))
    return sum(bool(pattern.search(ast.unparse(note))) for note in notes)


def other_names(trees: Iterable[ast.Module]) -> set[str]:
    """The names that modules give to `dict[str, Any]`, such as `Settings`."""
    assigned = (node for tree in trees for node in tree.body if isinstance(node, ast.Assign))
    same = (node.targets[0] for node in assigned if ast.unparse(node.value) == "dict[str, Any]")
    return {target.id for target in same if isinstance(target, ast.Name)} - {"Json"}


def imported(tree: ast.Module, known: dict[str, Path]) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return names & known.keys()


def options_per_command() -> Counter[str]:
    """How many options the help of each command lists, subcommands by themselves; `--help-all` lists the rest."""
    from speech_robust_bench.cli.command import commands
    from speech_robust_bench.cli.main import parser_of

    counts: Counter[str] = Counter()

    def count(name: str, parser: argparse.ArgumentParser) -> None:
        groups = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
        counts[name] = sum(line.startswith("  -") for line in parser.format_help().splitlines())
        for group in groups:
            for inner, subparser in group.choices.items():
                count(f"{name} {inner}", subparser)

    for command in commands():
        parsers = next(a for a in parser_of(command)._actions if isinstance(a, argparse._SubParsersAction))
        count(command, parsers.choices[command])
    return counts


OURS = tuple(f"{ROOT}/{room}/" for room in ROOMS)
CONFIGS = ("en-demo_clean", "en-demo_noise_sev3")


def slow_recogniser(clips: Sequence[np.ndarray], rate: int, language: str) -> list[str]:
    """No faster than a submission may be."""
    time.sleep(0.05 * len(clips))
    return ["it was"] * len(clips)


def _imports(frame: FrameType | None) -> bool:
    """Whether a frame runs because one of our modules is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(OURS):
            return True
        frame = frame.f_back
    return False


def passed_files() -> dict[str, set[str]]:
    """The files that a clip passes in each step; importing a module does not count."""
    import speech_robust_bench as srb

    passed: dict[str, set[str]] = {}
    step = "build"

    def note(frame: FrameType, event: str, argument: object) -> None:
        name = frame.f_code.co_filename
        if event != "call" or not name.startswith(OURS):
            return
        file = name.removeprefix(f"{ROOT}/")
        if file not in passed.setdefault(step, set()) and not _imports(frame):
            passed[step].add(file)

    with TemporaryDirectory() as folder:
        data, run, sent, verified = (Path(folder, name) for name in ("srb", "run", "sent", "verified"))
        sys.setprofile(note)
        try:
            srb.build(CONFIGS, limit=1, out=data, build_options=srb.BuildOptions(workers=1), progress=False)
            step = "run"
            srb.run(slow_recogniser, CONFIGS, data=data, out=run, progress=False)
            step = "score"
            srb.score_run(run)
            step = "submit"
            options = srb.SubmitOptions(owner="me", name="it-was")
            srb.submit(run, data=data, out=sent, dry_run=True, submit_options=options)
            step = "verify"
            srb.verify(sent, data=data, verify_options=srb.VerifyOptions(out=str(verified)))
            step = "board"
            srb.export_leaderboard(verified, Path(folder, "site"))
        finally:
            sys.setprofile(None)
    return passed


def main() -> int:
    known = modules()
    trees = {name: ast.parse(path.read_text("utf-8")) for name, path in known.items()}
    lines = {name: len(path.read_text("utf-8").splitlines()) for name, path in known.items()}
    importers = Counter(other for name, tree in trees.items() for other in imported(tree, known) - {name})
    every = [function for tree in trees.values() for function in functions(tree)]
    long = sum((function.end_lineno or 0) - function.lineno >= LONG_FUNCTION for function in every)
    total = sum(lines.values())
    inner = sum(map(inner_imports, trees.values()))
    print(f"modules                          {len(known)}")
    print(f"lines                            {total:,}")
    print(f"lines per module                 {total / len(known):.0f} (longest {max(lines.values())})")
    print(f"functions over {LONG_FUNCTION} lines          {100 * long / len(every):.1f} % of {len(every):,}")
    print(f"imports inside functions         {1000 * inner / total:.1f} per 1,000 lines")
    aliases = other_names(trees.values())
    named = sum(untyped(tree, aliases) for tree in trees.values())
    print(f"untyped annotations              {sum(map(untyped, trees.values()))}, and {named} by another name")
    print(f"modules that one other imports   {sum(number == 1 for number in importers.values())}")
    most = options_per_command().most_common(5)
    print("options, most of any command     " + ", ".join(f"{name} {number}" for name, number in most))
    passed = passed_files()
    steps = ", ".join(f"{step} {len(files)}" for step, files in passed.items())
    print(f"files a clip passes              {len(set().union(*passed.values()))} ({steps})")
    return 0


if __name__ == "__main__":
    sys.exit(main())
