"""Pitch shift as torchaudio defines it (`functional.pitch_shift`): stretch with a phase vocoder, then resample back.

Hann window of 512 samples, hop of 128, centred frames with reflected edges.

The dearest perturbation: 2.8 (up) and 2.3 (down) times FLAC encoding of the same clip (benchmarks/perturb.py). A third
to a half of that are the Fourier transforms of the frames, which cannot be others without other samples. A build
analyses a clip once for all severities, which leaves about 1.6 and 0.9.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

import numpy as np

from speech_robust_bench.builders.perturb.resample import sinc_resample
from speech_robust_bench.core.audio import Samples

N_FFT = 512
HOP = N_FFT // 4
BLOCK = 256  # frames: few enough to stay in the cache of any CPU
LONGEST_ANALYSED = 60 * 16_000  # samples; the analysis of each takes 24 bytes
Block = tuple[np.ndarray, np.ndarray, np.ndarray]  # magnitudes, first frame's phasors, phase steps


def pitch(
    samples: Samples, rate: int, semitones: float, rng: np.random.Generator, analysis: Sequence[Block] | None = None
) -> Samples:
    """Shift the pitch by `semitones` (negative: down) and keep the length; `analysis` is `analyse(samples)`."""
    pace = 2.0 ** (-semitones / 12)
    stretched = _stretch(_blocks(samples) if analysis is None else analysis, len(samples), pace)
    shifted = sinc_resample(stretched, int(rate / pace), rate)[: len(samples)]
    return np.pad(shifted, (0, len(samples) - len(shifted)))


def analyse(samples: Samples) -> list[Block] | None:
    """What all pitch shifts of a clip begin with; None for a long clip, whose blocks are computed one at a time."""
    return list(_blocks(samples)) if len(samples) <= LONGEST_ANALYSED else None


def _stretch(blocks: Iterable[Block], length: int, pace: float) -> Samples:
    """Phase vocoder: `pace` times as fast at the same pitch, from the blocks of a clip of `length` samples."""
    from scipy import fft

    from speech_robust_bench.builders.perturb.signal_kernels import overlap_frames, vocode

    at = np.arange(0, length // HOP + 1, pace)
    whole = np.floor(at).astype(np.int64)
    fractions = (at - whole).astype(np.float32)
    hops = np.zeros((len(at) + 3, HOP), dtype=np.float32)
    phase = None
    for number, (size, first, step) in enumerate(blocks):
        start = number * BLOCK
        block = slice(*np.searchsorted(whole, (start, start + BLOCK)))
        phase = first.copy() if phase is None else phase
        stretched = np.empty((len(at[block]), size.shape[1]), dtype=np.complex64)
        vocode(stretched.view(np.float32), size, step[0], step[1], whole[block] - start, fractions[block], phase)
        overlap_frames(hops[block.start :], fft.irfft(stretched, axis=1), _window())
    return _normalised(hops)[N_FFT // 2 :][: round(length / pace)]


def _blocks(samples: Samples) -> Iterator[Block]:
    """What the vocoder needs of each block of frames."""
    from scipy import fft

    # A clip too short to reflect at its edges is surrounded with silence instead.
    padded = np.pad(samples, N_FFT // 2, mode="reflect" if len(samples) > N_FFT // 2 else "constant")
    frames = np.lib.stride_tricks.sliding_window_view(padded, N_FFT)[::HOP]
    for start in range(0, len(frames), BLOCK):
        size, unit, step = _polar(fft.rfft(frames[start : start + BLOCK + 1] * _window(), axis=1))
        yield size, np.ascontiguousarray(unit[:, 0]), step


def _polar(spectrum: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Magnitudes, unit phasors, and the phase step from each frame to the next, with two silent frames at the end.

    Only the phase modulo 2 pi reaches the output, so it is kept as a phasor (real and imaginary part) and no angle is
    ever computed.
    """
    from speech_robust_bench.builders.perturb.signal_kernels import phasors

    shape = len(spectrum) + 2, spectrum.shape[1]
    size, unit = np.zeros(shape, dtype=np.float32), np.zeros((2, *shape), dtype=np.float32)
    unit[0, -2:] = 1
    step = np.empty((2, shape[0] - 1, shape[1]), dtype=np.float32)
    phasors(spectrum.view(np.float32), size, unit[0], unit[1], step[0], step[1])
    return size, unit, step


def _normalised(hops: np.ndarray) -> Samples:
    """Overlapped frames divided by the sum of the squared windows that lie over them: four, but fewer at the ends."""
    squared = (_window() ** 2).reshape(4, HOP)
    count = len(hops) - 3
    hops[3:count] /= squared.sum(axis=0)
    for hop in {0, 1, 2, *range(max(3, count), count + 3)}:
        over = sum(squared[quarter] for quarter in range(4) if 0 <= hop - quarter < count)
        np.divide(hops[hop], over, out=hops[hop], where=over > 1e-11)
    return hops.ravel()


@lru_cache(maxsize=1)
def _window() -> np.ndarray:
    return (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(N_FFT) / N_FFT)).astype(np.float32)
