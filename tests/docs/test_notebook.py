"""The notebook: it runs from an empty folder, and is stored with the outputs of such a run."""

import re
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[2] / "docs" / "tutorials" / "tour.ipynb"


def html_of(notebook) -> list[str]:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    return [output.get("data", {}).get("text/html", "") for output in outputs]


def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any("srcdoc=" in html for html in html_of(notebook))
    assert any("<audio" in html for html in html_of(notebook))


def test_the_notebook_is_stored_with_its_outputs():
    """As it was run: every cell in order, without an error, and small enough for a repository."""
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [output for cell in code for output in cell.outputs if output.output_type == "error"] == []
    assert any("<audio" in html for html in html_of(notebook))
    assert not re.search(r"/root/|/home/|/tmp/", NOTEBOOK.read_text("utf-8"))
    assert NOTEBOOK.stat().st_size < 3_000_000
