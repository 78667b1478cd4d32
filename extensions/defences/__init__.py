"""Defences: randomised smoothing, its certificate, and gradients through it."""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "certify", "attack", "certify a smoothed recogniser against perturbations", f"{__name__}.smooth", resumes=True
    ),
]
API = dict.fromkeys(("CertificateSummary", "CertifyOptions", "certify"), f"{__name__}.smooth")
ADAPTERS = {"smooth": f"{__name__}.smooth"}
VIEWS = {"Smooth": f"{__name__}.views:defended_view"}
