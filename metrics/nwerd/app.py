"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "nwerd.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
        "clean_predictions": ["the cat sat down"],
    },
    options={"difficulty": 50.0},
)
