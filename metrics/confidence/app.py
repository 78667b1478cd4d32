"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "confidence.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
        "confidences": ["0.9 0.9 0.9 0.3"],
    },
)
