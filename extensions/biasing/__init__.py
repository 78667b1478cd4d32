"""Contextual biasing: does a list of terms help a recogniser, and what does it break?"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "biasing",
        "compare and diagnose",
        "test whether a list of terms helps, and what it breaks",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = {
    "BiasingOptions": f"{__name__}.effect",
    "BiasingResult": f"{__name__}.effect",
    "biasing": f"{__name__}.effect",
}
MEASURES = {"biasing": f"{__name__}.effect:BIASING"}
