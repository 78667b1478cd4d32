"""`srb demo`: the whole way on what is installed: run two recognisers, score, table, report. Works offline.

It gives the very commands that a user would, shows them, and can be killed and repeated at any point as they can.
"""

from __future__ import annotations

import argparse
import shlex
from pathlib import Path

CLIPS = 8  # the first of the demo corpus: six voices, as many women as men
SCENARIOS = (
    *("noise", "crosstalk", "gaussian", "rir", "echo", "lowpass", "gain", "tempo_up", "pitch_up", "tremolo"),
    *("opus", "packet_loss"),
)
SEVERITIES = (2, 4)
WITHOUT_SPEECH = ("silence", "noise_only")
# PocketSphinx with a bounded search: a demonstration need not wait for its last half point of accuracy.
MODELS = {"moonshine": "moonshine", "pocketsphinx": "pocketsphinx?fwdflat=no&maxhmmpf=3000&maxwpf=5"}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", default="srb-demo", metavar="DIR", help="where everything goes (default: srb-demo)")


def run(args: argparse.Namespace) -> int:
    from speech_robust_bench.cli.main import main

    for command in commands(Path(args.out)):
        print(f"$ srb {shlex.join(command)}", flush=True)
        if code := main(command):
            return code
    report = (Path(args.out) / "report.html").resolve()
    print(
        f"Open {report.as_uri()} in a browser. Mostly synthetic voices, few clips: this shows the way, not a ranking."
    )
    return 0


def commands(out: Path) -> list[list[str]]:
    """The commands of the demo, one after the other."""
    runs, report = str(out / "runs"), str(out / "report.html")
    corpus = ["--corpus", "en-demo"]
    configs = [f"en-demo_{name}" for name in ("clean", *WITHOUT_SPEECH)]
    configs += [f"en-demo_{name}_sev{severity}" for name in SCENARIOS for severity in SEVERITIES]
    folders = [str(out / "runs" / name) for name in MODELS]
    return [
        *(
            ["run", "--model", model, "--name", name, *corpus, "--limit", str(CLIPS), "--out", runs, *configs]
            for name, model in MODELS.items()
        ),
        ["score", *folders],
        ["table", *folders],
        ["report", *folders, *corpus, "--embed-audio", "6", "--out", report],
    ]
