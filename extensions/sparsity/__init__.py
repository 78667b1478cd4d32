"""Adversarial sparsity: how many directions of the ball are adversarial (Olivier, chapter 4)?"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "sparsity",
        "attack",
        "measure how many directions around a clip are adversarial",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = {
    "SparsityOptions": f"{__name__}.api",
    "sparsity": f"{__name__}.api",
}
MEASURES = {"sparsity": f"{__name__}.result:SPARSITY"}
