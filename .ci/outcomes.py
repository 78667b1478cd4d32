"""The tests of a pytest run that were skipped, or that failed, from its JUnit report, as arguments for another run.

    python outcomes.py skipped|failed REPORT.xml

A file that was skipped as a whole is in the report as a test without a class, named like the module.
"""

from __future__ import annotations

import sys
from pathlib import Path
from xml.etree import ElementTree

MARKS = {"skipped": ("skipped",), "failed": ("failure", "error")}


def chosen(outcome: str, report: Path) -> list[str]:
    """Node ids as pytest takes them, sorted: `tests/core/test_files.py::test_name[parameter]`, or a file."""
    cases = ElementTree.parse(report).iter("testcase")
    return sorted({node_id(case) for case in cases if any(case.find(mark) is not None for mark in MARKS[outcome])})


def node_id(case: ElementTree.Element) -> str:
    module, name = case.get("classname"), case.get("name", "")
    return f"{file(module)}::{name}" if module else file(name)


def file(module: str) -> str:
    return module.replace(".", "/") + ".py"


if __name__ == "__main__":
    for node in chosen(sys.argv[1], Path(sys.argv[2])):
        print(node)
