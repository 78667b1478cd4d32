"""The page of this metric's Space."""

from srb.metrics.widget import launch

launch(
    "tasr.py",
    columns={
        "references": ["the cat sat down"],
        "predictions": ["the cat sat town"],
        "targets": ["open the door now"],
    },
)
