"""Arrays of other programs become float32 channels in [-1, 1]; what is no clip is one line that says why."""

import numpy as np
import pytest

from speech_robust_bench.core.audio import channels_of, check_rate, like, mono_at_benchmark_rate
from speech_robust_bench.core.errors import UserError


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (np.array([-32768, 16384, 32767], np.int16), [-1, 0.5, 32767 / 32768]),
        (np.array([-(2**31), 2**30], np.int32), [-1, 0.5]),
        (np.array([0, 64, 128, 192], np.uint8), [-1, -0.5, 0, 0.5]),
        (np.array([0.25, -1.5]), [0.25, -1.5]),
        ([0.5, -0.5], [0.5, -0.5]),
    ],
    ids=["int16", "int32", "uint8", "float64", "list"],
)
def test_every_kind_of_sample_has_its_full_scale(given, expected):
    channels = channels_of(given)
    assert channels.dtype == np.float32
    np.testing.assert_array_equal(channels, np.array([expected], np.float32))


def test_the_shorter_axis_holds_the_channels():
    frames_first = np.arange(6, dtype=np.float32).reshape(3, 2)
    np.testing.assert_array_equal(channels_of(frames_first), [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(channels_of(frames_first.T), [[0, 2, 4], [1, 3, 5]])
    np.testing.assert_array_equal(channels_of(np.eye(2)), np.eye(2))  # as many of each: channels first
    assert channels_of(frames_first).flags.c_contiguous


def test_one_sample_and_sixteen_channels_are_still_a_clip():
    assert channels_of([0.5]).shape == (1, 1)
    assert channels_of(np.zeros((16, 16))).shape == (16, 16)
    assert channels_of([100.0, -100.0]).shape == (1, 2)


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (np.zeros((2, 3, 4)), r"samples of shape \(2, 3, 4\): one clip has the shape"),
        (np.zeros(0), r"samples of shape \(1, 0\)|holds no samples"),
        (np.zeros((0, 3)), "holds no samples"),
        (np.zeros((17, 18)), "17 channels look like a batch"),
        ([0.0, np.nan], "NaN or infinite"),
        ([0.0, np.inf], "NaN or infinite"),
        ([0.0, -101.0], r"reach 101, and floats lie in \[-1, 1\]"),
        ([1, 2], "of type int64"),
        ([[1.0], [1.0, 2.0]], "not an array of numbers"),
    ],
)
def test_what_is_no_clip_is_said_in_one_line(given, why):
    with pytest.raises(UserError, match=why):
        channels_of(given)


def test_channels_are_averaged_and_brought_to_16_khz():
    stereo = np.stack([np.full(100, 0.5), np.full(100, -0.25)]).astype(np.float32)
    np.testing.assert_array_equal(mono_at_benchmark_rate(stereo, 16_000), np.full(100, 0.125, np.float32))
    assert len(mono_at_benchmark_rate(np.zeros(441), 44_100)) == 160
    alone = np.array([0.1, 0.2], np.float32)
    np.testing.assert_array_equal(mono_at_benchmark_rate(alone, 16_000), alone)


@pytest.mark.parametrize("rate", [1000, 16_000, 16_000.0, np.int64(44_100), 1_000_000])
def test_a_whole_number_of_hz_is_a_rate(rate):
    assert check_rate(rate) == int(rate)
    assert type(check_rate(rate)) is int


@pytest.mark.parametrize("rate", [True, "16000", None, float("nan"), 16_000.5, 999, 1_000_001, 0, -16_000])
def test_anything_else_is_not(rate):
    with pytest.raises(UserError, match="sample rate"):
        check_rate(rate)


def test_the_result_is_of_the_kind_that_was_given():
    samples = np.array([0.5, 0.25], np.float32)
    assert like(samples, [1.0]) is samples
    torch = pytest.importorskip("torch")
    for given in (torch.tensor([1, 2], dtype=torch.int16), torch.tensor([0.5], dtype=torch.float64)):
        assert torch.equal(like(samples, given), torch.tensor([0.5, 0.25]))
    np.testing.assert_array_equal(channels_of(torch.tensor([16384, 0], dtype=torch.int16)), [[0.5, 0]])
    learnt = torch.tensor([0.5, 0.25], dtype=torch.bfloat16, requires_grad=True)
    np.testing.assert_array_equal(channels_of(learnt), [[0.5, 0.25]])
