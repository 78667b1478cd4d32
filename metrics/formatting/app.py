"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "formatting.py",
    columns={
        "references": ["Well, Mary owes Tom $20."],
        "predictions": ["Well Mary owes tom twenty dollars."],
    },
)
