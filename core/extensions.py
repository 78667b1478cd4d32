"""Extensions: what plugs into the benchmark, ours in `extensions/` and anybody's by an entry point.

An extension is a module. Ours are the folders of `extensions/`; others are named by entry points of the group
`speech_robust_bench.extensions`. Each registry looks for its own attribute there, a dict from names to where the thing
is, so that importing an extension costs nothing: `ADAPTERS = {"mine": "my_package.recogniser"}`.
"""

from __future__ import annotations

import glob
import sys
from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from types import ModuleType
from typing import Any

Registry = dict[str, Any]  # what extensions registered, by name
GROUP = "speech_robust_bench.extensions"


@cache
def extensions() -> list[ModuleType]:
    """The modules of all extensions, ours first; one that cannot be imported is named on stderr and left out."""
    loaded = []
    for name, load in _sources():
        try:
            loaded.append(load())
        except Exception as error:
            print(f"srb: extension '{name}' cannot be imported and is left out: {error}", file=sys.stderr)
    return loaded


def registered(attribute: str) -> Registry:
    """What all extensions have in a dict of that name; the first to take a name keeps it."""
    found: Registry = {}
    for extension in extensions():
        found |= {name: value for name, value in getattr(extension, attribute, {}).items() if name not in found}
    return found


def registered_objects(attribute: str) -> Registry:
    """The same, with each `package.module:name` loaded."""
    return {name: load_object(reference) for name, reference in registered(attribute).items()}


class LazyModule(ModuleType):
    """Stands for a module that is imported when it is used: for packages that take long, or that few commands need."""

    def __getattr__(self, name: str) -> Any:
        return getattr(import_module(self.__name__), name)


def load_object(reference: str, usual: str = "") -> Any:
    """The object that `package.module:name` names; `usual` is its name where the reference is a module alone."""
    module, _, name = reference.partition(":")
    return getattr(import_module(module), name or usual)


def _sources() -> Iterator[tuple[str, Callable[[], ModuleType]]]:
    """The name of each extension, and how to load it."""
    from importlib.util import find_spec
    from pkgutil import iter_modules

    ours = find_spec(GROUP)  # this room may have been deleted
    for module in iter_modules(ours.submodule_search_locations if ours else ()):
        yield module.name, lambda name=module.name: import_module(f"{GROUP}.{name}")  # type: ignore[misc]
    if _anybody_extends():
        from importlib.metadata import entry_points

        for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
            yield entry.name, entry.load


def _anybody_extends() -> bool:
    """Whether an installed package names the group; importlib.metadata takes longer than all else of `srb --help`."""
    files = (file for folder in sys.path for file in glob.iglob(f"{folder or '.'}/*.*-info/entry_points.txt"))
    for file in files:
        with open(file, encoding="utf-8", errors="replace") as text:
            if f"[{GROUP}]" in text.read():
                return True
    return False
