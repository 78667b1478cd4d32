"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "nwerd.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
        "clean_predictions": ["the cat sat down"],
    },
    options={"difficulty": 50.0},
)
