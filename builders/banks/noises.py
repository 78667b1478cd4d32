"""The built-in noises: a score of everyday sounds, synthesised, so that every noise scenario works with no files.

They stand in for the recordings of the data sets, they do not imitate them sample by sample. Each is drawn from its own
fixed seed, is distinct in spectrum and in time structure, and loops without a seam (noise is shaped in the frequency
domain, events wrap around), because a clip longer than the recording repeats it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import scipy.fft

from speech_robust_bench.builders.recording import frozen
from speech_robust_bench.core.audio import RATE, Samples

LENGTH = 10 * RATE
Rng = np.random.Generator
_time_s = np.arange(LENGTH) / RATE


def seeded(name: str) -> Rng:
    """The fixed stream of one built-in recording: a pure function of its name."""
    key = int.from_bytes(hashlib.blake2b(name.encode(), digest_size=16).digest(), "little")
    return np.random.Generator(np.random.Philox(key=key))


def as_recorded(signal: np.ndarray, peak: float = 0.7) -> Samples:
    """Scale to a peak and round to 16 bits, as a file would hold it.

    The rounding also hides the last-bit differences between processors' sine and exponential.
    """
    signal = signal - signal.mean()
    return frozen(np.rint(signal * (peak * 32767 / np.abs(signal).max())) / 32768)


def coloured(rng: Rng, gain: Callable[[np.ndarray], np.ndarray], length: int = LENGTH) -> np.ndarray:
    """Gaussian noise of unit variance whose spectrum follows `gain(hz)`."""
    hz = scipy.fft.rfftfreq(length, 1 / RATE)
    spectrum = rng.standard_normal(2 * len(hz)).view(complex)
    spectrum *= gain(np.maximum(hz, hz[1]))
    spectrum[0] = 0
    signal = scipy.fft.irfft(spectrum, length)
    return signal / signal.std()


def band(low_hz: float, high_hz: float, slope: int = 4) -> Callable[[np.ndarray], np.ndarray]:
    """A smooth band-pass gain: flat between the corners, falling by `slope` (even) powers of the frequency outside."""

    def gain(hz: np.ndarray) -> np.ndarray:
        below, above = np.square(low_hz / hz), np.square(hz / high_hz)
        return 1 / ((1 + _power(below, slope // 2)) * (1 + _power(above, slope // 2)))

    return gain


def _power(base: np.ndarray, exponent: int) -> np.ndarray:
    """A whole power by products: numpy's own `**` costs more than the noise it shapes."""
    out = base.copy()
    for _ in range(exponent - 1):
        out *= base
    return out


def swell(rng: Rng, rate_hz: float, depth: float) -> np.ndarray:
    """A slow random gain around 1 that moves at up to `rate_hz`; `depth` is its spread in nepers."""
    bins = round(rate_hz * LENGTH / RATE)
    spectrum = np.zeros(LENGTH // 2 + 1, dtype=complex)
    spectrum[1 : bins + 1] = rng.standard_normal(bins) + 1j * rng.standard_normal(bins)
    slow = scipy.fft.irfft(spectrum, LENGTH)
    return np.exp(depth * slow / slow.std())


def scatter(onsets: np.ndarray, gains: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Copies of one event at onsets (samples), each at its gain, wrapped around the end."""
    out = np.zeros(LENGTH + len(event))
    for onset, gain in zip((onsets % LENGTH).tolist(), gains.tolist(), strict=True):
        out[onset : onset + len(event)] += gain * event
    out[: len(event)] += out[LENGTH:]
    return out[:LENGTH]


def poisson(rng: Rng, rate_hz: float) -> np.ndarray:
    """Onsets of independent events at a mean rate."""
    return rng.integers(LENGTH, size=round(rate_hz * LENGTH / RATE))


def decay(seconds: float, length_s: float) -> np.ndarray:
    """An exponential that loses 60 dB in `seconds`."""
    return np.exp(-6.908 / seconds * np.arange(round(length_s * RATE)) / RATE)


def tone(hz: np.ndarray | float, harmonics: dict[int, float]) -> np.ndarray:
    """Harmonics of a steady or moving fundamental; the phase is bent so that it closes on itself after LENGTH."""
    cycles = np.cumsum(np.broadcast_to(hz, LENGTH)) / RATE
    cycles += (round(cycles[-1]) - cycles[-1]) * (np.arange(1, LENGTH + 1) / LENGTH)
    return sum(gain * np.sin(2 * np.pi * n * cycles) for n, gain in harmonics.items())  # type: ignore[return-value]


def ping(hz: list[float], seconds: float) -> np.ndarray:
    """A struck object: decaying partials."""
    time_s = np.arange(round(seconds * RATE)) / RATE
    partials = [np.sin(2 * np.pi * f * time_s) / (1 + i) for i, f in enumerate(hz)]
    return sum(partials) * decay(seconds, seconds)[: len(time_s)]


def pink(rng: Rng) -> np.ndarray:
    return coloured(rng, lambda hz: hz**-0.5 * (hz > 20))


def rumble(rng: Rng) -> np.ndarray:
    return coloured(rng, lambda hz: hz**-1.0 * (hz > 25)) * swell(rng, 1.0, 0.25)


def hum(rng: Rng) -> np.ndarray:
    buzz = tone(50.0, {1: 0.4, 2: 1.0, 3: 0.3, 4: 0.5, 6: 0.25, 8: 0.12, 12: 0.08, 18: 0.05})
    return buzz + 0.03 * coloured(rng, band(300, 6000))


def fan(rng: Rng) -> np.ndarray:
    blades = tone(92.0, {1: 0.5, 2: 0.25, 3: 0.12})
    air = coloured(rng, lambda hz: (1 + hz / 250) ** -1.2) * (1 + 0.15 * np.sin(2 * np.pi * 15.3 * _time_s))
    return air + 0.5 * blades


def vacuum(rng: Rng) -> np.ndarray:
    motor = tone(310 * (1 + 0.004 * coloured(rng, band(0.3, 2))), {1: 1.0, 2: 0.7, 3: 0.4, 5: 0.3, 7: 0.2})
    return 0.5 * motor + coloured(rng, band(400, 5000, 2))


def rain(rng: Rng) -> np.ndarray:
    drop = decay(0.006, 0.01) * np.sin(2 * np.pi * 2900 * np.arange(160) / RATE)
    onsets = poisson(rng, 160)
    drops = scatter(onsets, rng.exponential(1.0, len(onsets)), drop)
    return coloured(rng, band(900, 7500, 2)) + 1.5 * drops / drops.std()


def traffic(rng: Rng) -> np.ndarray:
    road = coloured(rng, band(60, 500, 2))
    passing = np.zeros(LENGTH)
    for onset in np.sort(rng.random(4)) * LENGTH / RATE:
        distance = (_time_s - onset + 5) % 10 - 5  # seconds from the closest point, wrapped
        passing += rng.uniform(0.6, 1.4) / (1 + (distance / 0.7) ** 2)
    return road * (0.4 + passing) + 0.35 * passing * coloured(rng, band(500, 2500, 2))


def engine(rng: Rng) -> np.ndarray:
    rpm = 33 * (1 + 0.12 * coloured(rng, band(0.1, 0.5)) + 0.01 * coloured(rng, band(2, 10)))
    firing = tone(rpm, {1: 0.5, 2: 1.0, 3: 0.5, 4: 0.8, 6: 0.4, 8: 0.3, 10: 0.15, 14: 0.1})
    return firing + 0.25 * coloured(rng, band(100, 1500, 2))


def keyboard(rng: Rng) -> np.ndarray:
    gaps = rng.gamma(3.0, 0.06, 70) + (rng.random(70) < 0.12) * rng.uniform(0.4, 1.0, 70)
    onsets = (np.cumsum(gaps) * RATE).astype(int)
    press = decay(0.02, 0.04) * coloured(rng, band(1200, 6000, 2), 640)
    release = (onsets + rng.integers(900, 1600, len(onsets)), rng.uniform(0.15, 0.4, len(onsets)))
    clicks = scatter(onsets, rng.uniform(0.5, 1.0, len(onsets)), press) + scatter(*release, press[::2])
    return clicks + 0.01 * coloured(rng, band(80, 3000, 2))


def siren(rng: Rng) -> np.ndarray:
    sweep_hz = 950 + 400 * np.sin(2 * np.pi * 0.4 * _time_s)
    return tone(sweep_hz, {1: 1.0, 2: 0.45, 3: 0.25, 4: 0.1}) * swell(rng, 0.5, 0.2) + 0.05 * pink(rng)


def alarm(rng: Rng) -> np.ndarray:
    beat = (_time_s % 1.0 < 0.6) & (_time_s % 0.2 < 0.1)  # three short beeps a second
    return tone(2050.0, {1: 1.0, 2: 0.1, 3: 0.3}) * beat + 0.02 * pink(rng)


def dial_tone(rng: Rng) -> np.ndarray:
    """The precise tone plan's ringing and busy tones (440 + 480 Hz, 480 + 620 Hz), over line noise."""
    ringing = (tone(440.0, {1: 1.0}) + tone(480.0, {1: 1.0})) * (_time_s < 2.0)
    busy = (tone(480.0, {1: 1.0}) + tone(620.0, {1: 1.0})) * ((_time_s > 5.0) & (_time_s % 1.0 < 0.5))
    return ringing + busy + 0.08 * coloured(rng, band(300, 3400, 6))


def fire(rng: Rng) -> np.ndarray:
    onsets = poisson(rng, 45)
    snap = decay(0.004, 0.008) * coloured(rng, band(1000, 7000, 2), 128)
    snaps = scatter(onsets, rng.pareto(1.8, len(onsets)).clip(0, 3), snap)
    return snaps / snaps.std() + 0.5 * coloured(rng, band(60, 400, 2)) * swell(rng, 2.0, 0.3)


def wind(rng: Rng) -> np.ndarray:
    gust = swell(rng, 0.6, 0.6)
    howl = coloured(rng, band(350, 450, 12)) * gust**2
    return coloured(rng, band(30, 300, 2)) * gust + 0.4 * howl


def waves(rng: Rng) -> np.ndarray:
    surf = 0.15 + np.maximum(np.sin(2 * np.pi * 0.2 * _time_s), 0) ** 2
    return coloured(rng, lambda hz: (1 + hz / 400) ** -1.0) * surf + 0.3 * coloured(rng, band(2000, 6000)) * surf**3


def clock(rng: Rng) -> np.ndarray:
    ticks = np.arange(20) * RATE // 2
    tick, tock = ping([3200, 4700, 6100], 0.03), ping([2500, 3900, 5600], 0.04)
    return scatter(ticks[::2], np.ones(10), tick) + scatter(ticks[1::2], np.ones(10), tock) + 0.01 * pink(rng)


def birds(rng: Rng) -> np.ndarray:
    song = np.zeros(LENGTH)
    for onset in poisson(rng, 5):
        length = int(rng.integers(900, 2600))
        start_hz, end_hz = rng.uniform(2200, 5500, 2)
        trill = 1 + 0.06 * np.sin(2 * np.pi * rng.uniform(20, 45) * np.arange(length) / RATE)
        cycles = np.cumsum(np.linspace(start_hz, end_hz, length) * trill) / RATE
        chirp = np.sin(2 * np.pi * cycles) * np.sin(np.pi * np.arange(length) / length) ** 2
        song[np.arange(onset, onset + length) % LENGTH] += rng.uniform(0.2, 1.0) * chirp
    return song + 0.03 * coloured(rng, band(200, 4000, 2))


def static(rng: Rng) -> np.ndarray:
    onsets = poisson(rng, 300)
    pops = scatter(onsets, rng.standard_normal(len(onsets)), decay(0.001, 0.002))
    return coloured(rng, band(200, 7500)) + pops / pops.std() * swell(rng, 3.0, 0.6)


def cafe(rng: Rng) -> np.ndarray:
    """Cutlery and crockery over a room's murmur."""
    table = np.zeros(LENGTH)
    for hz in ([2300.0, 3780, 5210], [1480.0, 3150, 4890, 6650], [3420.0, 5900, 7300]):
        onsets = poisson(rng, 1.6)
        table += scatter(onsets, rng.uniform(0.2, 1.0, len(onsets)), ping(hz, 0.25))
    return 0.8 * murmur(rng) + table / table.std()


def murmur(rng: Rng) -> np.ndarray:
    """Many far voices: bands of speech's formants, each rising and falling at the rate of syllables."""
    formants = ((150, 700), (500, 1200), (1000, 2000), (1800, 3400))
    voices = [0.6**i * coloured(rng, band(*f)) * swell(rng, 6.0, 0.5) for i, f in enumerate(formants)]
    return sum(voices)  # type: ignore[return-value]


def footsteps(rng: Rng) -> np.ndarray:
    onsets = (np.arange(18) * LENGTH / 18 + rng.normal(0, 300, 18)).astype(int)
    heel = decay(0.07, 0.1) * coloured(rng, band(60, 900, 2), 1600)
    sole = decay(0.05, 0.08) * coloured(rng, band(900, 4000, 2), 1280)
    steps = scatter(onsets, rng.uniform(0.7, 1.0, 18), heel) + 0.3 * scatter(onsets + 1100, np.ones(18), sole)
    return steps + 0.02 * pink(rng)


def train(rng: Rng) -> np.ndarray:
    joints = (np.arange(10)[:, None] * LENGTH / 10 + np.array([0, 2200])).astype(int).ravel()
    clack = decay(0.12, 0.2) * coloured(rng, band(150, 2200, 2), 3200)
    return coloured(rng, band(40, 700, 2)) + 1.5 * scatter(joints, rng.uniform(0.6, 1.0, 20), clack)


NOISES: dict[str, Callable[[Rng], np.ndarray]] = {
    function.__name__: function
    for function in (
        pink, rumble, hum, fan, vacuum, rain, traffic, engine, keyboard, siren, alarm, dial_tone, fire, wind, waves,
        clock, birds, static, cafe, murmur, footsteps, train,
    )
}  # fmt: skip


@lru_cache(maxsize=len(NOISES))
def noise(name: str) -> Samples:
    """One built-in noise, synthesised at its first use."""
    return as_recorded(NOISES[name](seeded(f"noise/{name}")))
