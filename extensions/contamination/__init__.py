"""Contamination: was this speech in a model's training data (Olivier, Section 5.5: membership inference)?"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "contamination",
        "compare and diagnose",
        "test whether a model was trained on some speech",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = {
    "ContaminationOptions": f"{__name__}.api",
    "contamination": f"{__name__}.api",
}
MEASURES = {"contamination": f"{__name__}.result:CONTAMINATION"}
