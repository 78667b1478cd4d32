"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "nwer.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
    },
    options={"difficulty": 50.0},
)
