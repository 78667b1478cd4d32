"""Fewer clips: anchors that predict the score of all, and how stable a ranking is."""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "stability",
        "compare and diagnose",
        "show how many configs and clips a ranking needs",
        f"{__name__}.command:STABILITY",
    ),
    CommandRow(
        "anchors",
        "compare and diagnose",
        "choose a few clips that predict the score on all clips",
        f"{__name__}.command:ANCHORS",
    ),
]
API = {
    "AnchorOptions": f"{__name__}.anchors_api",
    "AnchorPrediction": f"{__name__}.anchors_api",
    "choose_anchors": f"{__name__}.anchors_api",
    "predict_from_anchors": f"{__name__}.anchors_api",
    "Stability": f"{__name__}.stability",
    "StabilityOptions": f"{__name__}.stability",
    "stability": f"{__name__}.stability",
}
