"""Extensions: packages that add something to SRB, found by the entry-point group `speech_robust_bench.extensions`.

An entry point names a module. Each registry looks for its own attribute there, as `COMMANDS` for commands.
"""

from __future__ import annotations

import sys
from functools import cache
from types import ModuleType

GROUP = "speech_robust_bench.extensions"


@cache
def extensions() -> list[ModuleType]:
    """The modules of all installed extensions, by name; one that cannot be imported is named on stderr and left out."""
    from importlib.metadata import entry_points

    loaded = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            loaded.append(entry.load())
        except Exception as error:
            print(f"srb: extension '{entry.name}' cannot be imported and is left out: {error}", file=sys.stderr)
    return loaded
