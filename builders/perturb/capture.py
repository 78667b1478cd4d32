"""What a recording device does: gain, automatic level control and trimmed edges."""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import Samples


def gain(samples: Samples, rate: int, factor: float, rng: np.random.Generator) -> Samples:
    """Amplify. The clamp is left to storing, which clips every scenario alike and counts the clipped samples."""
    return samples * np.float32(factor)


def attenuate(samples: Samples, rate: int, loss_db: float, rng: np.random.Generator) -> Samples:
    """Turn down by `loss_db`; storing in 16 bits then loses the quietest detail, as a distant microphone does."""
    return samples * np.float32(10 ** (-loss_db / 20))


FRAME_MS = 10
TARGET = 0.1  # RMS: -20 dBFS
FALL, RISE = 0.4, 0.02  # share of the way to the wanted gain in a frame: time constants of about 20 and 500 ms


def agc(samples: Samples, rate: int, gain_db: float, rng: np.random.Generator) -> Samples:
    """The clip with its level controlled, turned up by `gain_db` at most."""
    from speech_robust_bench.builders.perturb.signal_kernels import control_level

    out = np.empty(len(samples), dtype=np.float32)
    most = 10 ** (gain_db / 20)
    control_level(out, np.ascontiguousarray(samples), round(FRAME_MS * rate / 1000), TARGET, most, FALL, RISE)
    return out


BELOW_PEAK_DB = 30  # a frame this far below the loudest is not speech


def trim_start(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes before speech begins, and without its first `cut_ms`."""
    first, _ = speech_bounds(samples, rate)
    return samples[first + round(cut_ms * rate / 1000) :].copy()


def trim_end(samples: Samples, rate: int, cut_ms: float, rng: np.random.Generator) -> Samples:
    """Without all that comes after speech ends, and without its last `cut_ms`."""
    _, last = speech_bounds(samples, rate)
    return samples[: max(last - round(cut_ms * rate / 1000), 0)].copy()


def speech_bounds(samples: Samples, rate: int) -> tuple[int, int]:
    """Where the first frame begins and the last one ends that are within 30 dB of the loudest; all of a silent clip."""
    from speech_robust_bench.builders.perturb.environment import energy

    size = round(FRAME_MS * rate / 1000)
    energies = np.array([energy(samples[start : start + size]) for start in range(0, len(samples), size)])
    loud = np.flatnonzero(energies > energies.max(initial=0) * 10 ** (-BELOW_PEAK_DB / 10))
    if not len(loud):
        return 0, len(samples)
    return int(loud[0]) * size, min((int(loud[-1]) + 1) * size, len(samples))
