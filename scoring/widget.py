"""The page of a metric's Space: a table of transcripts to fill in, and the scores of them.

Stands in for `evaluate.utils.launch_gradio_widget`, which needs a gradio older than 4 and knows no columns beside
predictions and references.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def build(
    metric: Any, columns: Mapping[str, Sequence[str]], options: Mapping[str, float] | None = None, card: str = ""
):
    """A gradio interface: text columns with an example in each, and numbers with their defaults."""
    import gradio as gr

    names, options = list(columns), options or {}

    def compute(rows: list[list[str]], *numbers: float) -> dict[str, Any]:
        filled = [row for row in rows if any(str(cell).strip() for cell in row)]
        texts = {name: [str(row[i]) for row in filled] for i, name in enumerate(names)}
        try:
            return metric.compute(**texts, **dict(zip(options, numbers, strict=True)))
        except ValueError as mistake:
            raise gr.Error(str(mistake)) from None

    table = gr.Dataframe(
        headers=names, datatype="str", type="array", value=[list(row) for row in zip(*columns.values(), strict=True)]
    )
    return gr.Interface(
        fn=compute,
        inputs=[table, *(gr.Number(value=value, label=name) for name, value in options.items())],
        outputs=gr.JSON(label=metric.name),
        title=metric.name,
        article=re.sub(r"\A---\n.*?\n---\n", "", card, flags=re.DOTALL),
    )


def launch(script: str, columns: Mapping[str, Sequence[str]], options: Mapping[str, float] | None = None) -> None:
    """Load the metric from its file in this folder and serve its page."""
    import evaluate

    build(evaluate.load(script), columns, options, Path("README.md").read_text("utf-8")).launch()
