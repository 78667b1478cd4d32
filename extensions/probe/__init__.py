"""The probe: a frozen encoder, a learned mix of its layers, and a small head trained with CTC (SUPERB-SG, Section 3).

It measures what a representation is worth for recognition, in domain and out of it, without fine-tuning the encoder.
"""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "probe",
        "compare and diagnose",
        "train a small head on a frozen encoder; rank encoders",
        f"{__name__}.command",
        resumes=True,
    ),
]
API = {
    "ProbeOptions": f"{__name__}.probe_file",
    "ablate_probes": f"{__name__}.command",
    "train_probe": f"{__name__}.command",
}
ADAPTERS = {"probe": f"{__name__}.probe_file"}
VIEWS = {"Probe": f"{__name__}.head:probe_view"}
MEASURES = {"ood": f"{__name__}.ranking:OOD"}
