"""Fairness testing (AequeVox): does a scenario hurt one group of speakers more than another?"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "fairness", "compare and diagnose", "test whether a scenario hurts some speakers more", f"{__name__}.command"
    ),
]
API = {
    "FairnessOptions": f"{__name__}.assessment",
    "fairness": f"{__name__}.assessment",
}
