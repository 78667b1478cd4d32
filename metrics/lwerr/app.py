"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "lwerr.py",
    columns={
        "references": ["good morning", "the cat sat down"],
        "predictions": ["good mourning", "the cat sat town"],
        "groups": ["female", "male"],
    },
)
