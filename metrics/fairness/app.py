"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "fairness.py",
    columns={
        "references": ["good morning", "the cat sat down"],
        "predictions": ["good mourning", "the cat sat town"],
        "groups": ["india", "scotland"],
    },
)
