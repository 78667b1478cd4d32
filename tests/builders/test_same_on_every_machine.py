"""Every scenario gives the same bytes again, in another process, in another order, and on a plainer processor."""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.speech import speech_like

from speech_robust_bench.builders.apply import apply
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.scenarios import perturbations
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.seeding import clip_rng

PROGRAM = "import sys; sys.path[:0] = sys.argv[1:3]; import {module}; {module}.main()".format(
    module=Path(__file__).stem
)


def digests(backwards: bool = False) -> dict[str, str]:
    """A hash of the 16-bit samples of one clip under every scenario at every severity."""
    clip, banks = speech_like(3), Banks()
    pairs = [(scenario, level) for scenario in perturbations() for level in scenario.levels]
    found = {}
    for scenario, level in reversed(pairs) if backwards else pairs:
        made = apply(scenario, level, clip, clip_rng("test", "clip", scenario.name, level), banks)
        found[f"{scenario.name} {level}"] = hashlib.sha256(to_pcm16(made.samples).tobytes()).hexdigest()
    return found


def main() -> None:
    print(json.dumps(digests(backwards=True)))


def in_another_process(**environment: str) -> dict[str, str]:
    here = Path(__file__).parent
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(here), str(here.parent)]
    done = subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True, timeout=300)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def here() -> dict[str, str]:
    return digests()


def test_again_and_in_another_process_and_order(here):
    assert digests() == here
    assert in_another_process() == here


def test_on_a_processor_without_wide_vectors(here, tmp_path):
    """The compiled loops and NumPy with every vector extension beyond the architecture's baseline switched off."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    plain = in_another_process(
        NUMBA_CPU_NAME="generic",
        NUMBA_CPU_FEATURES="",
        NUMBA_CACHE_DIR=str(tmp_path),
        NPY_DISABLE_CPU_FEATURES=" ".join(name for name in __cpu_dispatch__ if __cpu_features__[name]),
    )
    assert {name for name in here if plain[name] != here[name]} == set()


def test_an_installation_that_nobody_can_write_to_works():
    """Numba refuses to compile where it can keep nothing; then it must compile without keeping."""
    program = (
        "from numba.core import caching; caching.CacheImpl._locator_classes = []\n"
        "import numpy as np; from speech_robust_bench.core.audio import to_pcm16\n"
        "print(*to_pcm16(np.array([0.5, 1.0], np.float32)))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["16384", "32767"]
