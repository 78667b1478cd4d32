"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "wer_ci.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
    },
)
