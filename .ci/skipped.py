"""The tests that a pytest run skipped, from its JUnit report, as arguments for another run, one a line.

    python skipped.py REPORT.xml

A file that was skipped as a whole is in the report as a test without a class, named like the module.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree


def skipped(report: Path) -> list[str]:
    """Node ids as pytest takes them, sorted: `tests/core/test_files.py::test_name[parameter]`, or a file."""
    cases = ElementTree.parse(report).iter("testcase")
    return sorted({node_id(case) for case in cases if case.find("skipped") is not None})


def node_id(case: ElementTree.Element) -> str:
    module, name = case.get("classname"), case.get("name", "")
    return f"{file(module)}::{name}" if module else file(name)


def file(module: str) -> str:
    return module.replace(".", "/") + ".py"


if __name__ == "__main__":
    print("\n".join(skipped(Path(sys.argv[1]))))
