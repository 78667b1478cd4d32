"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "tasr.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
        "targets": ["open the door now"],
    },
)
