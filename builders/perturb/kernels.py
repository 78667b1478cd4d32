"""The inner loops, compiled by Numba. Import this module inside the function that needs it: it brings Numba along.

Every sum is added in one fixed order and nothing is compiled with `fastmath`, so a kernel gives the same bits on every
processor, however wide its vectors are. The signatures are written out so that a read-only array needs no second
compilation.
"""

from __future__ import annotations

import numpy as np
from numba import njit, types

_clip_in = types.Array(types.float32, 1, "C", readonly=True)
_clip_out = types.float32[::1]
_table = types.Array(types.int64, 1, "C", readonly=True)

# A decaying tail is cut off here, 400 dB down: below 1e-38 a processor computes a hundred times slower.
_NOTHING = 1e-20


@njit(types.void(_clip_out, _clip_in, _table, _table, types.float32), cache=True)
def add_delayed(out, samples, starts, delays, gain):
    """Add `gain` times the clip, delayed by a periodic run of delays, to `out`."""
    length, total, period = len(samples), len(out), starts[-1]
    for base in range(0, total, period):
        for run in range(len(delays)):
            delay = delays[run]
            begin = max(base + starts[run], delay)
            end = min(base + starts[run + 1], min(total, length + delay))
            if begin < end:  # slices, so that the loop below has nothing to check and becomes vector code
                target, source = out[begin:end], samples[begin - delay : end - delay]
                for index in range(len(target)):
                    target[index] += gain * source[index]


@njit(
    types.void(_clip_out, _clip_in, types.float64, types.float64, types.float64, types.float64, types.float64),
    cache=True,
)
def biquad(out, samples, b0, b1, b2, a1, a2):
    """Second-order recursive filter, in double precision; what is stored does not feed back."""
    x1 = x2 = y1 = y2 = 0.0
    for begin in range(0, len(samples), 512):
        for index in range(begin, min(begin + 512, len(samples))):
            x0 = float(samples[index])
            y0 = (b0 * x0 + b1 * x1 + b2 * x2 - a2 * y2) - a1 * y1
            x2, x1, y2, y1 = x1, x0, y1, y0
            out[index] = y0
        if abs(y1) < _NOTHING and abs(y2) < _NOTHING:
            y1 = y2 = 0.0


@njit(types.void(_clip_out, _clip_in, _table, _table, types.float32, types.float32), cache=True)
def feed_back(out, samples, starts, delays, gain, decay):
    """`gain` times the clip plus `decay` times the output itself, delayed by a periodic run of delays of 1 or more."""
    total, period, quiet = len(out), starts[-1], np.float32(_NOTHING)
    for base in range(0, total, period):
        for run in range(len(delays)):
            delay = delays[run]
            end = min(base + starts[run + 1], total)
            middle = min(max(base + starts[run], delay), end)
            for index in range(base + starts[run], middle):  # nothing to feed back yet
                out[index] = gain * samples[index]
            if middle < end:
                target, source, past = out[middle:end], samples[middle:end], out[middle - delay : end - delay]
                for index in range(len(target)):
                    value = gain * source[index] + decay * past[index]
                    target[index] = value if abs(value) > quiet else np.float32(0)


@njit(types.void(_clip_out, _clip_in, types.float64, types.int64, types.int64, types.int64), cache=True)
def overlap_add(out, padded, factor, segment, search, overlap):
    """Fill `out` with segments of `padded` taken `factor` times as fast, each where it fits the one before it best."""
    stride = segment - overlap
    misfit = np.empty(max(search, 1), np.float32)
    fade = np.arange(overlap).astype(np.float32) * (np.float32(1) / np.float32(overlap))
    tail = padded[:0]
    for number in range(len(out) // stride):
        place = int(factor * (number * stride) + 0.5)
        target = out[number * stride : (number + 1) * stride]
        if number == 0:
            place += search // 2
            target[:] = padded[place : place + stride]
        else:
            # One lane per candidate, each adding up its own squares in order: the same sums however wide the vectors.
            misfit[:] = np.float32(0)
            for index in range(overlap):
                window = padded[place + index : place + index + len(misfit)]
                wanted = tail[index]
                for candidate in range(len(misfit)):
                    difference = window[candidate] - wanted
                    misfit[candidate] += difference * difference
            best = 0
            for candidate in range(1, search):
                if misfit[candidate] < misfit[best]:
                    best = candidate
            place += best
            source = padded[place : place + stride]
            for index in range(overlap):
                target[index] = tail[index] * (np.float32(1) - fade[index]) + source[index] * fade[index]
            target[overlap:] = source[overlap:]
        tail = padded[place + stride : place + segment]
