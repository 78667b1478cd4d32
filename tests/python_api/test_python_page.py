"""The examples of docs/python.md and of the notebook run, in order, from an empty folder."""

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"


def test_every_example_of_the_page_runs(tmp_path, monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "python.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 10
    names: dict = {}
    for block in blocks:
        exec(compile(block, "docs/python.md", "exec"), names)
    assert round(names["wer"].value, 1) == 16.7  # as the page says: one word of six
    assert (tmp_path / "report.html").is_file()


def test_the_page_names_every_public_name():
    import speech_robust_bench as srb

    page = (DOCS / "python.md").read_text()
    shown = {name for name in srb.__all__ if name[0] != "_" and name not in ("PerturbedClip", "ScenarioTable", "Score")}
    assert [name for name in sorted(shown) if f"srb.{name}" not in page] == []


def test_the_notebook_runs(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    notebook = nbformat.read(DOCS / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in notebook.cells)  # they would go stale
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("srcdoc=" in output.get("data", {}).get("text/html", "") for output in shown)
    assert any("<audio" in output.get("data", {}).get("text/html", "") for output in shown)
