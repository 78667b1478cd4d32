"""The page of this metric's Space."""

from speech_robust_bench.scoring.widget import launch

launch(
    "terms.py",
    columns={
        "references": ["from New York to Rome"],
        "predictions": ["from new york to roam"],
        "terms": ["Rome"],
    },
)
