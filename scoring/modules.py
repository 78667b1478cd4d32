"""The metric folders as `evaluate` modules: where they are, how to install them by name, how to make a Space of one.

In the repository and where the package is installed, a metric's file imports the arithmetic from `scoring`. A
Space must stand alone, so `space_files` puts a copy of each module that the metric needs beside it and turns the
imports into `from .scoring import align`, the one form for which evaluate's loader fetches the file. What
`evaluate.load("werd")` finds when there is no network is its cache of modules, which `install` fills: for a name
without a slash it looks in `metrics/evaluate-metric--werd/<64 hex digits>/werd.py` and takes the youngest.
"""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
from importlib.resources import files
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing_folder
from speech_robust_bench.scoring import scenario_facts
from speech_robust_bench.scoring.tables import shipped

FOLDER = Path(str(files("speech_robust_bench.metrics")))
METRICS = tuple(sorted(path.parent.name for path in FOLDER.glob("*/*.py") if path.stem == path.parent.name))

_IMPORT = re.compile(r"^from speech_robust_bench(?:\.\w+)?\.(\w+) import (.*?)(?:  # From: .*)?$", re.MULTILINE)
_MODULE = re.compile(r"^from (speech_robust_bench(?:\.\w+){1,2}) import ", re.MULTILINE)


def space_files(metric: str) -> dict[str, bytes]:
    """The files of a Space that stands alone: path -> content."""
    source = _folder(metric)
    needed = _needed(source / f"{metric}.py")
    files = {path.name: path.read_bytes() for path in source.iterdir() if path.suffix in (".md", ".txt")}
    script = _local((source / f"{metric}.py").read_text("utf-8"))
    # The loader fetches what the script itself imports, not what those files import in their turn. (And it takes a
    # comment at the end of such a line for an address.)
    direct = set(re.findall(r"^from \.(\w+) import", script, re.MULTILINE))
    extra = "".join(f"from .{m} import __name__ as _{m}\n" for m in needed if m not in direct)
    files[f"{metric}.py"] = (script.rstrip("\n") + "\n\n\n" + extra if extra else script).encode()
    files["app.py"] = _IMPORT.sub(r"from \1 import \2", (source / "app.py").read_text("utf-8")).encode()
    for module, path in {**needed, "widget": Path(__file__).with_name("widget.py")}.items():
        files[f"{module}.py"] = (_FROZEN[module]() if module in _FROZEN else _local(path.read_text("utf-8"))).encode()
    return dict(sorted(files.items()))


def export_space(metric: str, folder: str | Path) -> Path:
    """Write the files of a metric's Space into a folder of its own; returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in space_files(metric).items():
        (folder / name).write_bytes(content)
    return folder


def install(metric: str) -> Path:
    """Make `evaluate.load("<metric>")` work from any directory, without a network; returns where it was put."""
    from evaluate.loading import init_dynamic_modules

    files = {
        name: content for name, content in space_files(metric).items() if name.endswith(".py") and name != "app.py"
    }
    content_hash = hashlib.sha256(b"".join(name.encode() + text for name, text in files.items())).hexdigest()
    modules = Path(init_dynamic_modules()) / "metrics"
    home = modules / f"evaluate-metric--{metric}"
    home.mkdir(parents=True, exist_ok=True)
    (modules / "__init__.py").touch()
    (home / "__init__.py").touch()
    place = home / content_hash
    wanted = {**files, "__init__.py": b""}
    if not all((place / name).is_file() and (place / name).read_bytes() == text for name, text in wanted.items()):
        with replacing_folder(place) as part:
            for name, text in wanted.items():
                (part / name).write_bytes(text)
    for other in home.iterdir():  # an older version must not be the youngest by accident
        if other.is_dir() and other != place and not other.name.startswith("."):  # one that is being installed
            shutil.rmtree(other)
    return place


def _folder(metric: str) -> Path:
    if metric not in METRICS:
        raise UserError(f"there is no metric '{metric}'; there are {', '.join(METRICS)}")
    return FOLDER / metric


def _needed(script: Path) -> dict[str, Path]:
    """The modules of this package that a file imports, and those that they import: name -> file."""
    modules: dict[str, Path] = {}
    waiting = [script]
    while waiting:
        for name in _MODULE.findall(waiting.pop().read_text("utf-8")):
            spec = importlib.util.find_spec(name)
            short = name.rpartition(".")[2]
            if short not in modules and spec and spec.origin:
                modules[short] = Path(spec.origin)
                if short not in _FROZEN:
                    waiting.append(modules[short])
    return dict(sorted(modules.items()))


def _local(text: str) -> str:
    return _IMPORT.sub(r"from .\1 import \2", text)


def _tables_module() -> str:
    """The module `tables` with the text of the tables in it."""
    return (
        '"""The difficulty tables that ship with the package."""\n\n'
        f"_TABLES = {shipped()!r}\n\n\n"
        'def shipped():\n    """Name and version of each table -> its text, as CSV."""\n    return _TABLES\n'
    )


def _scenario_facts_module() -> str:
    """The module `scenario_facts` with its values written out: a Space has no scenario table."""
    values = (f"{name} = {getattr(scenario_facts, name)!r}\n" for name in ("ATTACKS", "RECORDINGS", "VALUES"))
    return '"""What the metrics need to know of the scenario table."""\n\n' + "".join(values)


# Modules that a Space gets as constants, because what they are computed from stays behind.
_FROZEN = {"tables": _tables_module, "scenario_facts": _scenario_facts_module}
