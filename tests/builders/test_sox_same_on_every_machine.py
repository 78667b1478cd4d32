"""The effects give the same bytes on a plain processor as on this one, and in every process."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from sox_program import EFFECTS, RATE, speech_like

from srb.builders.audio import to_pcm16

PROGRAM = "import sys; sys.path.insert(0, sys.argv[1]); import {module}; {module}.main(sys.argv[2])".format(
    module=Path(__file__).stem
)


def digests(clip: np.ndarray) -> dict[str, str]:
    """A hash of the 16-bit samples of every effect at every severity."""
    return {
        f"{name} {value}": hashlib.sha256(to_pcm16(np.clip(function(clip, RATE, value), -1, 1)).tobytes()).hexdigest()
        for name, (function, _, severities, _) in EFFECTS.items()
        for value in severities
    }


def main(path: str) -> None:
    print(json.dumps(digests(np.load(path))))


def in_another_process(clip: np.ndarray, folder: Path, **environment: str) -> dict[str, str]:
    np.save(folder / "clip.npy", clip)
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(Path(__file__).parent), str(folder / "clip.npy")]
    done = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, timeout=120)
    return json.loads(done.stdout)


def test_a_processor_without_wide_vectors_gives_the_same_bytes(tmp_path):
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    clip = speech_like()
    plain = in_another_process(
        clip,
        tmp_path,
        NUMBA_CPU_NAME="generic",
        NUMBA_CPU_FEATURES="",
        NUMBA_CACHE_DIR=str(tmp_path),
        NPY_DISABLE_CPU_FEATURES=" ".join(name for name in __cpu_dispatch__ if __cpu_features__[name]),
    )
    assert plain == digests(clip)


def test_repeats_give_the_same_bytes():
    clip = speech_like(seed=1)
    assert digests(clip) == digests(clip)
