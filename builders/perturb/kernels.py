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


@njit(types.void(_clip_out, _clip_in, _table, _table, types.float32), cache=True, error_model="numpy")
def add_delayed(out, source, starts, delays, gain):
    """Add `gain` times the source, delayed by a periodic run of delays, to `out`. The source may be `out` itself."""
    quiet, zero = np.float32(_NOTHING), np.float32(0)
    begin = run = shift = 0
    while begin < len(out):
        end = min(shift + starts[run + 1], len(out))
        delay = delays[run]
        first, last = max(begin, delay), min(end, len(source) + delay)
        if first < last:  # slices, so that the loop below has nothing to check and becomes vector code
            target, past = out[first:last], source[first - delay : last - delay]
            for index in range(len(target)):
                value = target[index] + gain * past[index]
                target[index] = value if abs(value) > quiet else zero
        begin, run = end, run + 1
        if run == len(delays):
            run, shift = 0, end


@njit(
    types.void(_clip_out, _clip_in, types.float64, types.float64, types.float64, types.float64, types.float64),
    cache=True,
    error_model="numpy",
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


@njit(types.void(types.int64[::1], _clip_out, _clip_in, types.int64, types.int64), cache=True, error_model="numpy")
def settle(places, misfit, padded, stride, overlap):
    """Move each place on to where `padded` best continues, over `overlap` samples, what lies `stride` after the last.

    `misfit` is room for one value per place to try.
    """
    for number in range(1, len(places)):
        tail = places[number - 1] + stride
        for candidate in range(len(misfit)):
            misfit[candidate] = 0
        # One lane per candidate, each adding up its own squares in order: the same sums however wide the vectors are.
        for index in range(overlap):
            begin = places[number] + index
            window = padded[begin : begin + len(misfit)]
            wanted = padded[tail + index]
            for candidate in range(len(misfit)):
                difference = window[candidate] - wanted
                misfit[candidate] += difference * difference
        best = 0
        for candidate in range(len(misfit)):
            if misfit[candidate] < misfit[best]:
                best = candidate
        places[number] += best
