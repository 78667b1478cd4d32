"""SUPERB-SG's generative tasks: what a frozen encoder is worth for speech enhancement and separation."""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "superb",
        "compare and diagnose",
        "train and test enhancement and separation heads",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = dict.fromkeys(("MaskOptions", "score_mask_head", "train_mask_head"), f"{__name__}.api")
FRONT_ENDS = {"superb": f"{__name__}.front_end:superb"}
