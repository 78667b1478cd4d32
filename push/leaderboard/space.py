"""The leaderboard as a Space: its files, the modules of this package that it needs, and the verified results.

A Space has no place to install this package from, so the modules go with it, under the names that they have here.
"""

from __future__ import annotations

import ast
import importlib.util
import shutil
from pathlib import Path

from srb.builders.errors import UserError
from srb.push.leaderboard import board

START = "srb.push.leaderboard.app"
README = """---
title: Speech Robust Bench
emoji: 👂
colorFrom: blue
colorTo: red
sdk: gradio
app_file: app.py
pinned: false
---

The leaderboard of Speech Robust Bench. Built from verified results alone.
"""
APP = '''"""The leaderboard, from the verified results beside this file."""

from pathlib import Path

from srb.push.leaderboard.app import launch

launch(Path(__file__).parent / "verified", server_name="0.0.0.0")
'''
REQUIREMENTS = "gradio>=6\nnumpy>=1.26\nrapidfuzz>=3.6\n"


def modules(start: str = START) -> dict[str, Path]:
    """A module of this package and all those that it imports, in their turn: name -> file."""
    found: dict[str, Path] = {}
    waiting = [start]
    while waiting:
        name = waiting.pop()
        spec = importlib.util.find_spec(name) if name not in found else None
        if spec is None or not spec.origin:
            continue
        found[name] = Path(spec.origin)
        waiting += [name.rpartition(".")[0]] if name.count(".") > 1 else []  # its package, with what that imports
        for node in ast.walk(ast.parse(found[name].read_text("utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("srb."):
                waiting += [
                    str(node.module),
                    *(
                        f"{node.module}.{alias.name}"
                        for alias in node.names
                        if _is_module(f"{node.module}.{alias.name}")
                    ),
                ]
    return found


def _is_module(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


def export(results: str | Path, out: str | Path) -> Path:
    """Write the Space into a new folder."""
    out = Path(out)
    if out.exists():
        raise UserError(f"{out}: is there already; name a new folder")
    board.load(results)  # what cannot be shown is not exported
    for name, path in modules().items():
        is_package = path.name == "__init__.py"
        place = (
            out.joinpath(*name.split(".")) / "__init__.py"
            if is_package
            else out.joinpath(*name.split(".")).with_suffix(".py")
        )
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
    here, there = Path(__file__).parent, out / "srb" / "push" / "leaderboard"
    for file in (*here.glob("*.css"), *here.glob("*.js"), *here.glob("data/*.csv")):
        place = there / file.relative_to(here)
        place.parent.mkdir(exist_ok=True)
        shutil.copyfile(file, place)
    shutil.copytree(
        results, out / "verified", ignore=lambda _, names: [n for n in names if not n.endswith((".json", ".npz"))]
    )
    for file_name, text in {"README.md": README, "app.py": APP, "requirements.txt": REQUIREMENTS}.items():
        (out / file_name).write_text(text, encoding="utf-8")
    return out
