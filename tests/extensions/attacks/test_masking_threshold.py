"""The masking threshold: values worked out by hand from the formulas of ISO 11172-3 as Qin et al. (2019) use them."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from speech_robust_bench.attacks.clips import (
    BARK,
    HZ,
    QUIET_DB,
    above_threshold,
    bark,
    batch_of,
    excess,
    in_quiet_db,
    threshold,
)

RATE = 16_000


def fade(size: int) -> np.ndarray:
    """In and out over 100 ms: what begins at once has all frequencies."""
    ends = np.hanning(2 * RATE // 10)
    return np.concatenate([ends[: len(ends) // 2], np.ones(size - len(ends)), ends[len(ends) // 2 :]])


def tone(hz: float, amplitude: float = 0.3, seconds: float = 0.5) -> np.ndarray:
    wave = np.sin(2 * np.pi * hz * np.arange(int(RATE * seconds)) / RATE)
    return (amplitude * wave * fade(len(wave))).astype(np.float32)


def test_barks_and_the_threshold_in_quiet() -> None:
    # Zwicker's table: 1 kHz is 8.5 Bark, 4 kHz 17.3; in quiet one hears best at 3 to 4 kHz
    assert bark(np.array([1000.0, 4000.0])) == pytest.approx([8.5, 17.3], abs=0.15)
    assert in_quiet_db(np.array([1000.0]))[0] == pytest.approx(3.64 - 6.5 * np.exp(-0.6 * 2.3**2) + 0.001 - 12)
    assert 3000 <= HZ[np.argmin(QUIET_DB)] <= 4000


def test_a_tone_masks_what_is_near_it_and_more_above_than_below() -> None:
    bin_1000 = 128  # of 2048 at 16 kHz
    found = 10 * np.log10(threshold(tone(1000)).power[6])
    level = 96 + 10 * np.log10(1 + 2 * 0.25)  # the peak and its two neighbours under a Hann window
    assert found[bin_1000] == pytest.approx(level - 6.025 - 0.275 * BARK[bin_1000], abs=0.1)
    above, below = bin_1000 + 40, bin_1000 - 40
    slope = -27 + 0.37 * (level - 40)
    assert found[above] == pytest.approx(found[bin_1000] + slope * (BARK[above] - BARK[bin_1000]), abs=0.1)
    assert found[below] == pytest.approx(found[bin_1000] - 27 * (BARK[bin_1000] - BARK[below]), abs=0.1)


def test_the_share_that_is_heard() -> None:
    clip, rng = tone(1000), np.random.default_rng(0)
    noise = rng.standard_normal(len(clip)).astype(np.float32)
    shares = [above_threshold(clip, clip + level * noise) for level in (0.0, 1e-5, 1e-3, 1e-1)]
    assert shares[0] == 0
    assert shares == sorted(shares)
    assert shares[-1] > 0.5
    near, far = above_threshold(clip, clip + tone(1050, 1e-3)), above_threshold(clip, clip + tone(7000, 1e-3))
    assert near < far / 3  # one and the same power, masked and not
    assert above_threshold(clip[:100], clip[:100]) == 0  # shorter than a frame


def test_the_excess_is_the_power_above_the_threshold() -> None:
    clips = [tone(1000), tone(2000, seconds=0.3)]
    waves = torch.zeros(2, len(clips[0]), dtype=torch.float64)
    limits, scales = batch_of([threshold(clip) for clip in clips], waves)
    assert excess(waves, limits, scales).tolist() == [0, 0]
    rng = np.random.default_rng(0)
    change = torch.from_numpy(1e-3 * rng.standard_normal(waves.shape)).requires_grad_()
    value = excess(change, limits, scales)
    (slope,) = torch.autograd.grad(value.sum(), change)
    step = 1e-9
    up = excess(change + step * slope / slope.norm(), limits, scales).sum()
    assert float((up - value.sum()).detach()) / step == pytest.approx(float(slope.norm()), rel=1e-3)
    alone = excess(change[1:, : len(clips[1])], *batch_of([threshold(clips[1])], change[1:, : len(clips[1])]))
    assert float(alone.detach()) == pytest.approx(
        float(value[1].detach()), rel=0.2
    )  # the frames at its end see what lies behind it
