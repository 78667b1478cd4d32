"""A short tour of an installed wheel, in an empty folder: the program, the API, `load_dataset` and `evaluate.load`.

python wheel_tour.py path/to/srb
"""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

CONFIGS = ["en-demo_clean", "en-demo_noise_sev3"]


def program(srb: str) -> None:
    """What `srb demo` does, on a few clips: run, score, table, report."""
    model = "moonshine" if importlib.util.find_spec("moonshine_voice") else "pocketsphinx"
    for command in (
        ["--version"],
        ["build", *CONFIGS, "--limit", "4", "--out", "srb"],
        ["run", "--model", model, "--data", "srb", "--out", "runs"],
        ["score", f"runs/{model}"],
        ["table", f"runs/{model}"],
        ["report", f"runs/{model}", "--data", "srb", "--out", "report.html"],
        ["metrics", "install"],
    ):
        print("== srb", *command, flush=True)
        subprocess.run([srb, *command], check=True)
    assert Path("report.html").stat().st_size > 10_000


def interface() -> None:
    """Every name of the API, one clip, rows as they are read, and metrics."""
    import numpy as np

    import speech_robust_bench as srb

    assert Path.cwd() not in Path(srb.__file__).parents, "the package comes from the working directory"
    for name in srb.__all__:
        getattr(srb, name)
    noisy = srb.perturb(np.sin(np.arange(16_000) / 20).astype(np.float32), 16_000, "noise", severity=3)
    assert noisy.samples.shape == (16_000,)
    assert next(iter(srb.load("en-demo_echo_sev1", limit=1)))["text"]


def ecosystem() -> None:
    """`load_dataset` on what was built, and a metric by its bare name."""
    import datasets
    import evaluate

    rows = datasets.load_dataset("srb", CONFIGS[1], split="test").cast_column("audio", datasets.Audio(decode=False))
    assert len(rows) == 4
    assert evaluate.load("wer_ci").compute(references=["a b"], predictions=["a c"])["wer"] == 50.0


if __name__ == "__main__":
    program(sys.argv[1])
    interface()
    ecosystem()
    print("the tour is complete")
