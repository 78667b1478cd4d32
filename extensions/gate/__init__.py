"""A gate for CI: is a new model less robust than the one in use?"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "gate",
        "compare and diagnose",
        "fail if a model is less robust than a baseline (for CI)",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = {
    "GateOptions": f"{__name__}.run",
    "GateResult": f"{__name__}.run",
    "gate": f"{__name__}.run",
}
