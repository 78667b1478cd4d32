"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "formatting.py",
    columns={
        "references": ["Well, Mary owes Tom $20."],
        "predictions": ["Well Mary owes tom twenty dollars."],
    },
)
