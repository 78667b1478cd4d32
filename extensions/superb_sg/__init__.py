"""SUPERB-SG's generative tasks: what a frozen encoder is worth for enhancement, separation, translation and voice
conversion.
"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "superb",
        "compare and diagnose",
        "train and test heads for the other tasks of SUPERB-SG",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = dict.fromkeys(("SuperbData", "SuperbOptions", "score_superb_head", "train_superb_head"), f"{__name__}.api")
FRONT_ENDS = {"superb": f"{__name__}.front_end:superb"}
