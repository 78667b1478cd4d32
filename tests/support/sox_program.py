"""The real `sox` program as an oracle, and speech to put through it."""

from __future__ import annotations

import shutil
import subprocess
from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.perturb.effects import bass, chorus, echo, highpass, lowpass, phaser, treble, tremolo
from speech_robust_bench.builders.perturb.time_and_pitch import tempo

RATE = 16_000
RECORDINGS = Path("/usr/share/asterisk/sounds")

# Effect: its function, how SoX is asked for it, the values of the four severities, and values in between.
EFFECTS = {
    "echo": (echo, lambda d: ["echo", 0.8, 0.9, d, 0.3], (125, 250, 500, 1000), (0.1, 66.6, 333.3)),
    "phaser": (phaser, lambda d: ["phaser", 0.6, 0.8, 3, d, 2, "-t"], (0.3, 0.5, 0.7, 0.9), (0, 0.456, 0.99)),
    "tempo_up": (tempo, lambda f: ["tempo", f, 30], (1.25, 1.5, 1.75, 2), (1, 1.1, 3.3)),
    "tempo_down": (tempo, lambda f: ["tempo", f, 30], (0.875, 0.75, 0.625, 0.5), (0.27, 0.66, 0.93)),
    "lowpass": (lowpass, lambda f: ["sinc", f"0-{f}"], (4000, 2833, 1666, 500), (200, 987.6, 7999)),
    "highpass": (highpass, lambda f: ["sinc", f], (500, 1333, 2166, 3000), (20, 987.6, 4100)),
    "tremolo": (tremolo, lambda d: ["tremolo", 20, d], (50, 66, 83, 100), (1, 33.33333, 71.5)),
    "treble": (treble, lambda g: ["treble", g], (10, 23, 36, 50), (-12.5, 0.5, 29.9)),
    "bass": (bass, lambda g: ["bass", g], (20, 30, 40, 50), (-12.5, 0.5, 33.3)),
    "chorus": (
        chorus,
        lambda d: ["chorus", 0.7, 0.9, d, 0.4, 0.25, 2, "-t", d + 10, 0.3, 0.4, 2, "-s"],
        (30, 50, 70, 90),
        (20, 41.7, 66.66),
    ),
}

needs_sox = pytest.mark.skipif(shutil.which("sox") is None, reason="the sox program is not installed")


def sox(samples: np.ndarray, rate: int, arguments: list, folder: Path) -> np.ndarray:
    """What `sox` makes of a clip, as 32-bit float in and out: no dither, and no rounding to hide an error."""
    source, target = folder / "in.wav", folder / "out.wav"
    soundfile.write(source, samples, rate, subtype="FLOAT")
    command = ["sox", "-D", "-V1", source, "-b", "32", "-e", "floating-point", target, *map(str, arguments)]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return soundfile.read(target, dtype="float32")[0]


def error_db(ours: np.ndarray, reference: np.ndarray) -> float:
    """The power of the difference against that of the reference, both clipped as storing clips them."""
    assert len(ours) == len(reference)
    reference = np.clip(reference, -1, 1).astype(np.float64)
    error = np.square(np.clip(ours, -1, 1) - reference).sum()
    power = np.square(reference).sum()
    return -np.inf if error == 0 else 10 * np.log10(error / power) if power else np.inf


@lru_cache(maxsize=1)
def speech() -> tuple[np.ndarray, ...]:
    """Recordings of several speakers and languages, 1 to 6 s each; empty where they or ffmpeg are not installed."""
    paths = sorted(RECORDINGS.glob("*_*_*/*.g722"))
    if shutil.which("ffmpeg") is None:
        return ()
    voices = {path.parent.name: path for path in paths if 12_000 < path.stat().st_size < 48_000}  # 8 kB a second
    return tuple(decode(path) for path in list(voices.values())[:4])


def decode(path: Path) -> np.ndarray:
    command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", path, "-ar", str(RATE), "-ac", "1", "-f", "f32le", "-"]
    raw = subprocess.run(command, check=True, capture_output=True, timeout=60).stdout
    return np.frombuffer(raw, dtype=np.float32)


def speech_like(seconds: float = 2.5, rate: int = RATE, seed: int = 0) -> np.ndarray:
    """Gliding voiced syllables, hiss and pauses, for where there are no recordings."""
    rng = np.random.default_rng(seed)
    time = np.arange(int(seconds * rate)) / rate
    pitch = 2 * np.pi * np.cumsum(140 + 40 * np.sin(2 * np.pi * 0.7 * time)) / rate
    voiced = sum(np.sin(k * pitch) / k * np.exp(-(((k * 140 - 600) / 900) ** 2)) for k in range(1, 20))
    hiss = rng.normal(size=len(time)) * (np.sin(2 * np.pi * 2.3 * time) > 0.8)
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * time), 0, None)
    return (0.25 * syllables * voiced + 0.05 * hiss).astype(np.float32)
