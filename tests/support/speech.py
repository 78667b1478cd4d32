"""Speech to perturb, and a way to say how far two signals are apart."""

from __future__ import annotations

import glob
import os
import shutil
import subprocess

import numpy as np

RATE = 16_000


def error_db(ours: np.ndarray, theirs: np.ndarray) -> float:
    """Energy of the difference relative to the right answer, in dB."""
    assert ours.shape == theirs.shape
    difference = np.sum((ours.astype(float) - theirs.astype(float)) ** 2)
    return float(10 * np.log10(difference / np.sum(theirs.astype(float) ** 2) + 1e-30))


def human_recordings(count: int) -> list[np.ndarray]:
    """Prompts of Debian's `asterisk-core-sounds-en-g722`, the longest first; empty where they are not installed."""
    paths = glob.glob("/usr/share/asterisk/sounds/en_US_f_Allison/*.g722")
    if not paths or not shutil.which("ffmpeg"):
        return []
    sizes = sorted(paths, key=lambda path: (-os.path.getsize(path), path))
    return [_decode_g722(path) for path in sizes[:count]]


def _decode_g722(path: str) -> np.ndarray:
    command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", path, "-f", "f32le", "-ar", str(RATE), "-ac", "1", "-"]
    return np.frombuffer(subprocess.run(command, capture_output=True, check=True).stdout, np.float32).copy()


def speech_like(seconds: float, seed: int = 0) -> np.ndarray:
    """A stand-in for speech that needs no files: voiced syllables with moving pitch and formants, pauses, breath."""
    rng = np.random.default_rng(seed)
    t = np.arange(round(seconds * RATE)) / RATE
    pitch_hz = 120 + 30 * np.sin(2 * np.pi * 0.7 * t) + 10 * np.sin(2 * np.pi * 2.3 * t)
    phase = 2 * np.pi * np.cumsum(pitch_hz) / RATE
    voice = sum(
        np.sin(k * phase) * np.exp(-(((k * pitch_hz - f) / 220) ** 2)) for k in range(1, 30) for f in (500, 1500, 2500)
    )
    syllables = np.clip(np.sin(2 * np.pi * 3.1 * t) + 0.4, 0, 1)
    clip = syllables * (voice + 0.05 * rng.standard_normal(len(t)))
    return (0.5 * clip / np.abs(clip).max()).astype(np.float32)
