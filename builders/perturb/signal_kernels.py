"""The inner loops, compiled by Numba, each at its first call.

Every sum is added in one fixed order and nothing is compiled with `fastmath`, so a kernel gives the same bits on every
processor, however wide its vectors are.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.audio import CLIP_IN, CLIP_OUT, compiled

_table = "Array(int64, 1, 'C', readonly=True)"
_filters = "Array(float32, 2, 'C', readonly=True)"
_rows = "float32[:, ::1]"


# A decaying tail is cut off here, 400 dB down: below 1e-38 a processor computes a hundred times slower.
_NOTHING = 1e-20


@compiled(f"void({CLIP_OUT}, {CLIP_IN}, {_table}, {_table}, float32)", error_model="numpy")
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


@compiled(f"void({CLIP_OUT}, {CLIP_IN}, float64, float64, float64, float64, float64)", error_model="numpy")
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


@compiled(f"void(int64[::1], {CLIP_OUT}, {CLIP_IN}, int64, int64)", error_model="numpy")
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


@compiled(f"void({CLIP_OUT}, {_filters}, {_filters}, {_table})")
def polyphase(out, rows, taps, starts):
    """out[b * phases + p] = sum_k taps[p, k] * padded[b * step + starts[p] + k]; rows[r, c] is padded[c * step + r].

    The rows make the innermost loop run over contiguous memory, and across outputs, never within a sum.
    """
    (phases, width), step = taps.shape, rows.shape[0]
    sums = np.empty((len(out) + phases - 1) // phases, dtype=np.float32)
    for p in range(phases):
        blocks = np.uint64((len(out) - p + phases - 1) // phases)
        for k in range(width):
            tap, at = taps[p, k], starts[p] + k
            row, column = np.uint64(at % step), np.uint64(at // step)
            for b in range(blocks):
                sums[b] = (sums[b] if k > 0 else np.float32(0)) + tap * rows[row, column + b]
        for b in range(blocks):
            out[b * np.uint64(phases) + np.uint64(p)] = sums[b]


@compiled(f"{CLIP_OUT}({CLIP_IN}, {_filters}, {_table}, int64, int64)")
def many_phases(padded, taps, starts, step, length):
    """The same sums as `polyphase`, output by output: faster where there are more phases than outputs to each."""
    phases, width = taps.shape
    flat, count = taps.reshape(-1), np.uint64(width)  # unsigned, so that no index is checked for counting from the end
    out = np.empty(length, dtype=np.float32)
    p, base = 0, 0
    for i in range(length):
        at, tap = np.uint64(base + starts[p]), np.uint64(p * width)
        total = np.float32(0)
        for k in range(count):
            total += flat[tap + k] * padded[at + k]
        out[i] = total
        p += 1
        if p == phases:
            p, base = 0, base + step
    return out


@compiled(f"void({_filters}, {_rows}, {_rows}, {_rows}, {_rows}, {_rows})")
def phasors(spectrum, size, re, im, step_re, step_im):
    """Magnitude and unit phasor (1 where it is zero) of each value of a spectrum, and the step to the next frame's.

    Complex rows are real and imaginary parts in turn; `size`, `re` and `im` have silent frames at the end.
    """
    one, zero = np.float32(1), np.float32(0)
    frames, bins = spectrum.shape[0], spectrum.shape[1] // 2
    for t in range(frames):
        for f in range(bins):
            a, b = spectrum[t, 2 * f], spectrum[t, 2 * f + 1]
            size[t, f] = np.sqrt(a * a + b * b)
        for f in range(bins):
            inverse = one / size[t, f] if size[t, f] > zero else zero
            re[t, f] = spectrum[t, 2 * f] * inverse if size[t, f] > zero else one
            im[t, f] = spectrum[t, 2 * f + 1] * inverse
    for t in range(step_re.shape[0]):
        for f in range(bins):
            step_re[t, f] = re[t + 1, f] * re[t, f] + im[t + 1, f] * im[t, f]
        for f in range(bins):
            step_im[t, f] = im[t + 1, f] * re[t, f] - re[t + 1, f] * im[t, f]


@compiled(f"void({_rows}, {_filters}, {_filters}, {_filters}, {_table}, {CLIP_IN}, {_rows})")
def vocode(out, size, step_re, step_im, frames, fractions, phase):
    """Frames (real and imaginary parts in turn) with magnitudes between two frames and a phase that steps along.

    `phase` holds one unit phasor per frequency, as real and imaginary parts, and is carried on from block to block.
    """
    bins, one = size.shape[1], np.float32(1)
    for t in range(len(frames)):
        a, fraction = frames[t], fractions[t]
        for f in range(bins):
            between = fraction * size[a + 1, f] + (one - fraction) * size[a, f]
            out[t, 2 * f] = phase[0, f] * between
            out[t, 2 * f + 1] = phase[1, f] * between
        for f in range(bins):
            re = phase[0, f] * step_re[a, f] - phase[1, f] * step_im[a, f]
            im = phase[0, f] * step_im[a, f] + phase[1, f] * step_re[a, f]
            scale = np.float32(1.5) - np.float32(0.5) * (re * re + im * im)  # one Newton step back to the unit circle
            phase[0, f] = re * scale
            phase[1, f] = im * scale


@compiled(f"void({_rows}, {_filters}, {CLIP_IN})")
def overlap_frames(hops, frames, window):
    """Add windowed frames to the hops that they cover, each frame one hop later than the one before."""
    hop = hops.shape[1]
    for t in range(frames.shape[0]):
        for part in range(frames.shape[1] // hop):
            stretch = slice(part * hop, (part + 1) * hop)
            target, frame, weight = hops[t + part], frames[t, stretch], window[stretch]
            for i in range(hop):
                target[i] += frame[i] * weight[i]


@compiled(f"void({CLIP_OUT}, {CLIP_IN}, {CLIP_IN}, int64, int64)")
def add_talker(out, clip, weights, up, offset):
    """Add the clip, read round and round from an offset, `up` samples for every `len(weights)`, on straight lines."""
    count, down = np.uint64(len(clip)), len(weights)
    left, rest = np.uint64(offset), 0
    for i in range(len(out)):
        right = left + np.uint64(1)
        if right == count:
            right = np.uint64(0)
        out[i] += clip[left] + weights[rest] * (clip[right] - clip[left])
        rest += up
        while rest >= down:
            rest -= down
            left += np.uint64(1)
            if left == count:
                left = np.uint64(0)


@compiled(f"float64({CLIP_IN})")
def sum_of_squares(samples):
    """Energy, in four fixed lanes: faster than one, and the same bits on every CPU."""
    lanes, rows = np.zeros(4), len(samples) // 4
    table = samples[: 4 * rows].reshape(rows, 4)
    for i in range(rows):
        for lane in range(4):
            value = float(table[i, lane])
            lanes[lane] += value * value
    for i in range(4 * rows, len(samples)):
        lanes[0] += float(samples[i]) ** 2
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


@compiled(f"void({CLIP_OUT}, {CLIP_IN})")
def multiply_spectra(spectrum, other):
    """Complex product in place, real and imaginary parts in turn. NumPy's own differs in the last bit between CPUs."""
    for i in range(len(spectrum) // 2):
        re, im = spectrum[2 * i], spectrum[2 * i + 1]
        spectrum[2 * i] = re * other[2 * i] - im * other[2 * i + 1]
        spectrum[2 * i + 1] = re * other[2 * i + 1] + im * other[2 * i]


@compiled(f"void({CLIP_OUT}, {CLIP_IN}, int64, float64, float64, float64, float64)", error_model="numpy")
def control_level(out, samples, size, target, most, fall, rise):
    """Gain control by frames: towards the gain that makes the RMS the target, at most `most`, on straight lines."""
    gain = 1.0
    for begin in range(0, len(samples), size):
        end = min(begin + size, len(samples))
        energy = 0.0
        for index in range(begin, end):
            energy += float(samples[index]) * float(samples[index])
        level = np.sqrt(energy / (end - begin))
        wanted = min(most, target / level) if level > 0 else most
        change = (wanted - gain) * (fall if wanted < gain else rise)
        for index in range(begin, end):
            out[index] = samples[index] * (gain + change * ((index - begin + 1) / size))
        gain += change
