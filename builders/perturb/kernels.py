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
_filters = types.Array(types.float32, 2, "C", readonly=True)

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


@njit(_clip_out(_clip_in, _filters, _table, types.int64, types.int64), cache=True)
def polyphase(padded, taps, starts, step, length):
    """out[b * phases + p] = sum_k taps[p, k] * padded[b * step + starts[p] + k]."""
    phases, width = taps.shape
    # One row for each residue of the input index, so that the innermost loop runs over contiguous memory.
    rows = np.zeros((step, (len(padded) + step - 1) // step), dtype=np.float32)
    for i in range(len(padded)):
        rows[i % step, i // step] = padded[i]
    out = np.empty(length, dtype=np.float32)
    sums = np.empty((length + phases - 1) // phases, dtype=np.float32)
    for p in range(phases):
        blocks = (length - p + phases - 1) // phases
        sums[:] = 0
        for k in range(width):
            tap = taps[p, k]
            at = starts[p] + k
            row = rows[at % step, at // step :]
            for b in range(blocks):
                sums[b] += tap * row[b]
        for b in range(blocks):
            out[b * phases + p] = sums[b]
    return out


@njit(types.complex64[:, ::1](types.complex64[:, ::1], _table, _clip_in, types.float64[:, ::1]), cache=True)
def vocode(spectrum, frames, fractions, phases):
    """Interpolate magnitudes between frames and carry the phase on by the phase step between the same frames.

    Only the phase modulo 2 pi reaches the output, so phases are kept as unit phasors (in double precision, or they
    drift over a long clip) and no angle is ever computed. `phases` is carried from block to block; zeros at first.
    """
    count, bins = spectrum.shape
    magnitude = np.zeros((count + 2, bins), dtype=np.float32)  # two silent frames follow the last one
    phasor_re = np.ones((count + 2, bins), dtype=np.float32)
    phasor_im = np.zeros((count + 2, bins), dtype=np.float32)
    for t in range(count):
        for f in range(bins):
            re, im = spectrum[t, f].real, spectrum[t, f].imag
            size = np.sqrt(re * re + im * im)
            magnitude[t, f] = size
            if size > 0:
                phasor_re[t, f] = re / size
                phasor_im[t, f] = im / size
    phase_re, phase_im = phases[0], phases[1]
    if phase_re[0] == 0 and phase_im[0] == 0:
        phase_re[:] = phasor_re[0]
        phase_im[:] = phasor_im[0]
    out = np.empty((len(frames), bins), dtype=np.complex64)
    for t in range(len(frames)):
        a = frames[t]
        b = a + 1
        fraction = fractions[t]
        for f in range(bins):
            size = fraction * magnitude[b, f] + (np.float32(1) - fraction) * magnitude[a, f]
            re, im = phase_re[f], phase_im[f]
            out[t, f] = complex(np.float32(re) * size, np.float32(im) * size)
            step_re = phasor_re[b, f] * phasor_re[a, f] + phasor_im[b, f] * phasor_im[a, f]
            step_im = phasor_im[b, f] * phasor_re[a, f] - phasor_re[b, f] * phasor_im[a, f]
            new_re = re * step_re - im * step_im
            new_im = re * step_im + im * step_re
            # One Newton step keeps the phasor on the unit circle.
            scale = 1.5 - 0.5 * (new_re * new_re + new_im * new_im)
            phase_re[f] = new_re * scale
            phase_im[f] = new_im * scale
    return out


@njit(types.float64(_clip_in), cache=True)
def sum_of_squares(samples):
    """Energy, in eight fixed lanes: fast, and the same bits on every CPU."""
    lanes = np.zeros(8, dtype=np.float64)
    whole = len(samples) // 8 * 8
    for i in range(0, whole, 8):
        for lane in range(8):
            value = np.float64(samples[i + lane])
            lanes[lane] += value * value
    for i in range(whole, len(samples)):
        lanes[0] += np.float64(samples[i]) ** 2
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]))
