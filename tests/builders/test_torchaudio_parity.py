"""Noise, speed, resampling, gain and pitch against vectors made by torchaudio 2.11."""

from pathlib import Path

import numpy as np
import pytest
from support.speech import RATE, error_db

from speech_robust_bench.builders.perturb.environment import gain, mix
from speech_robust_bench.builders.perturb.time_and_pitch import pitch, resample, speed

VECTORS = dict(np.load(Path(__file__).parent / "data" / "torchaudio_2_11.npz"))
FUNCTIONS = {
    "add_noise": lambda x, value: mix(x, VECTORS["noise"], value),
    "speed": lambda x, value: speed(x, RATE, value, None),
    "resample": lambda x, value: resample(x, RATE, value, None),
    "gain": lambda x, value: np.clip(gain(x, RATE, value, None), -1, 1),
    "pitch": lambda x, value: pitch(x, RATE, value, None),
}
# Torchaudio itself accumulates phases in single precision, which limits how near pitch can come.
LIMIT_DB = {"pitch": -60}


@pytest.mark.parametrize("case", [name for name in VECTORS if name not in ("x", "noise")])
def test_matches_torchaudio(case):
    function, value = case.rsplit("_", 1)
    ours = FUNCTIONS[function](VECTORS["x"], float(value))
    assert error_db(ours, VECTORS[case]) < LIMIT_DB.get(function, -120)


def test_the_torchaudio_that_is_installed_agrees():
    torch = pytest.importorskip("torch")
    torchaudio = pytest.importorskip("torchaudio", exc_type=Exception)  # beside another torch it fails in many ways
    clip = torch.from_numpy(VECTORS["x"])
    there = torchaudio.functional.resample(clip, RATE, RATE // 2)
    resampled = torchaudio.functional.resample(there, RATE // 2, RATE).numpy()
    quieter = torchaudio.functional.gain(clip, -6.0).numpy()
    assert error_db(resample(VECTORS["x"], RATE, 0.5, None), resampled[: len(clip)]) < -120
    assert error_db(gain(VECTORS["x"], RATE, -6.0, None), quieter) < -120
