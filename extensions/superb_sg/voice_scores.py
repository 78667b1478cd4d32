"""What converted speech is worth: mel-cepstral distortion from the target's own recording, and the share of clips that
a speaker encoder takes for the target. Both as s3prl's `vc_evaluate.py` computes them.

MCD: WORLD's spectral envelopes (Morise et al., 2016) every 5 ms, 40 mel cepstra (all-pass constant 0.466), frames that
are less than 20 dB below the mean power, aligned by dynamic time warping. s3prl's is approximate (fastdtw), ours exact.
Speakers: Resemblyzer's encoder; a clip is accepted where the cosine with the target's recording is above
s3prl's threshold for VCC 2020, that of the equal error rate of its speakers.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples, compiled
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.extensions.superb_sg.mel import MEL_RATE

pyworld, resemblyzer = LazyModule("pyworld"), LazyModule("resemblyzer")
CEPSTRA, ALL_PASS, FRAME_MS, FFT = 39, 0.466, 5, 1024
FLOOR_DB = -20.0
# The pitch of VCC 2020's targets in Hz (s3prl's f0.yaml); of anybody else, all that these cover.
PITCH_HZ = {"TEF1": (127, 405), "TEF2": (108, 361), "TEM1": (71, 227), "TEM2": (57, 182)}
ANY_PITCH_HZ = (57, 405)
ACCEPTED_ABOVE = 0.7405614256857954  # s3prl's thresholds.yaml, task 1
HOW_TO_INSTALL = {
    "pyworld": "pip install pyworld 'setuptools<81'",
    "resemblyzer": "pip install resemblyzer",
}


def missing(package: str) -> str:
    """How to get an optional package; empty where it is there."""
    try:
        __import__(package)
    except ImportError as error:
        return f"{package} cannot be imported ({error}): {HOW_TO_INSTALL[package]}"
    return ""


def mcd_db(converted: Samples, recorded: Samples, target: str = "") -> float | None:
    """Mel-cepstral distortion in dB between two clips at 24 kHz; None where one of them is silent."""
    if not converted.any() or not recorded.any():
        return None
    pitch = PITCH_HZ.get(target, ANY_PITCH_HZ)
    one, other = (loud_cepstra(samples, pitch) for samples in (converted, recorded))
    places = warping(np.sqrt(((one[:, None] - other) ** 2).sum(-1)))
    squares = ((one[places[:, 0]] - other[places[:, 1]]) ** 2).sum(1)
    return float(np.mean(10 / np.log(10) * np.sqrt(2 * squares)))


def loud_cepstra(samples: Samples, pitch_hz: tuple[int, int]) -> np.ndarray:
    """The mel cepstra (frame, 40) of the frames that are not silent."""
    from scipy.signal import firwin, lfilter

    wave = np.asarray(samples, dtype=float) * np.iinfo(np.int16).max
    wave = lfilter(firwin(255, 70 / (MEL_RATE // 2), pass_zero=False), 1, wave)
    f0, times = pyworld.harvest(wave, MEL_RATE, f0_floor=pitch_hz[0], f0_ceil=pitch_hz[1], frame_period=FRAME_MS)
    envelope = pyworld.cheaptrick(wave, f0, times, MEL_RATE, fft_size=FFT)
    power = (envelope[:, 0] + envelope[:, -1] + 2 * envelope[:, 1:-1].sum(1)) / FFT
    loud = 10 * np.log10(power / power.mean()) > FLOOR_DB
    return mel_cepstra(envelope[loud])


def mel_cepstra(power: np.ndarray) -> np.ndarray:
    """Mel cepstra of power spectra (frame, bin): the cepstrum on a warped frequency axis (SPTK's freqt)."""
    cepstra = np.fft.irfft(np.log(power))[:, : power.shape[1]]
    cepstra[:, 0] /= 2
    return cepstra @ _warped(power.shape[1])


@cache
def _warped(size: int) -> np.ndarray:
    """What each cepstral coefficient contributes to each of those on the warped axis: (size, 40)."""
    warped = np.zeros((CEPSTRA + 1, size))
    for coefficient in np.eye(size)[::-1]:
        before, warped = warped, np.empty_like(warped)
        warped[0] = coefficient + ALL_PASS * before[0]
        warped[1] = (1 - ALL_PASS**2) * before[0] + ALL_PASS * before[1]
        for order in range(2, CEPSTRA + 1):
            warped[order] = before[order - 1] + ALL_PASS * (before[order] - warped[order - 1])
    return warped.T


def warping(distances: np.ndarray) -> np.ndarray:
    """The cheapest path (step, 2) from corner to corner: dynamic time warping."""
    totals = _accumulated(np.ascontiguousarray(distances, dtype=np.float64))
    row, column = distances.shape
    path = []
    while row > 0 and column > 0:
        path.append((row - 1, column - 1))
        before = ((row - 1, column - 1), (row - 1, column), (row, column - 1))
        row, column = min(before, key=lambda place: totals[place])
    return np.array(path[::-1])


@compiled("float64[:,::1](float64[:,::1])")
def _accumulated(distances: np.ndarray) -> np.ndarray:
    rows, columns = distances.shape
    totals = np.full((rows + 1, columns + 1), np.inf)
    totals[0, 0] = 0.0
    for row in range(rows):
        for column in range(columns):
            least = min(totals[row, column], totals[row, column + 1], totals[row + 1, column])
            totals[row + 1, column + 1] = distances[row, column] + least
    return totals


class SpeakerEncoder:
    """Resemblyzer's encoder (Wan et al., 2018)."""

    def __init__(self) -> None:
        self.encoder: Any = resemblyzer.VoiceEncoder("cpu", verbose=False)

    def accepts(self, clip: Samples, target: Samples) -> bool:
        """Whether two clips at 16 kHz are by one speaker."""
        one, other = (self.embedding(samples) for samples in (clip, target))
        return bool(one @ other > ACCEPTED_ABOVE * np.linalg.norm(one) * np.linalg.norm(other))

    def embedding(self, samples: Samples) -> np.ndarray:
        nobody = np.zeros(256, np.float32)
        if not samples.any():
            return nobody
        voiced = resemblyzer.preprocess_wav(np.asarray(samples, np.float32), source_sr=RATE)
        return self.encoder.embed_utterance(voiced) if len(voiced) else nobody
