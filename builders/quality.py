"""Speech quality of a clip: DNSMOS, which needs no reference, and PESQ against the clean clip.

DNSMOS (Reddy et al., 2021 and 2022): P.808 predicts the overall rating of a listening test, SIG, BAK and OVRL those of
P.835 for the speech, the background and both. The networks are those that the `speechmos` package carries, fed as that
package feeds them: windows of 9.01 s every second, a short clip repeated until it fills one, the mean over the windows.
Its features are computed here without librosa. PESQ is ITU-T P.862.2 (wideband) by the `pesq` package.

Nearly all of DNSMOS' time goes into the first four layers of the SIG/BAK/OVRL network, convolutions over every frame,
and windows share eight seconds of nine with the next one. So the network is cut in three: the spectrogram, those
layers, and the rest. The layers run once over the clip, and only the edges of each window, where they see its zero
padding instead of the clip, are run again; a window then takes the rest of the network alone, with the same result.
"""

from __future__ import annotations

import importlib.util
import math
import multiprocessing
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from speech_robust_bench.builders.corpora.base import Problem, Utterance
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.rows import QUALITY_COLUMNS

COLUMNS = QUALITY_COLUMNS
DNSMOS_COLUMNS = tuple(column for column in COLUMNS if column.startswith("dnsmos"))

_WINDOW_S = 9.01
_WINDOW = int(_WINDOW_S * RATE)
_FFT = 321  # speechmos asks for 320 + 1 points
_FRAME = 160
_FRAMES = 900  # of 20 ms, every 10 ms, in a window
_REACH = 4  # frames that the first four layers see to each side
_MELS = 120
# From the networks' raw scores to the rating scale (speechmos: fitted polynomials, highest power first).
_SCALE = {
    "dnsmos_sig": (-0.08397278, 1.22083953, 0.0052439),
    "dnsmos_bak": (-0.13166888, 1.60915514, -0.39604546),
    "dnsmos_ovrl": (-0.06766283, 1.11546468, 0.04602535),
}
# The reference code of P.862 keeps at most 50 utterances, each with its pause at least 0.4 s long, and overruns its
# memory beyond that. So a longer reference is scored in a process of its own, where it can do no harm.
_PESQ_SAFE_S = 20.0


def dnsmos(samples: Samples) -> dict[str, float]:
    """P.808, SIG, BAK and OVRL of a clip at 16 kHz."""
    audio, starts = _windows(samples)
    scores = {"dnsmos_p808": _p808(audio, starts)}
    for column, values in zip(_SCALE, _raw_scores(audio, starts).T, strict=True):
        scores[column] = float(np.mean(np.polyval(_SCALE[column], values)))
    return scores


def p808(samples: Samples) -> float:
    """The P.808 rating alone, some twenty times faster than all of DNSMOS."""
    return _p808(*_windows(samples))


def filter_p808(utterances: Sequence[Utterance], minimum: float, workers: int = 1) -> Iterator[Utterance | Problem]:
    """The utterances that reach a P.808 rating; those that cannot be decoded come back as problems."""
    _networks()  # a missing package is one line, not one for each clip
    if workers <= 1 or len(utterances) < 100:
        ratings: Iterable[float | str] = map(_rate, utterances)
        yield from _reaching(zip(utterances, ratings, strict=True), minimum)
        return
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        yield from _reaching(zip(utterances, pool.map(_rate, utterances, chunksize=16), strict=True), minimum)


def _rate(utterance: Utterance) -> float | str:
    try:
        return p808(utterance.load())
    except UserError as problem:
        return str(problem)


def _reaching(rated: Iterable[tuple[Utterance, float | str]], minimum: float) -> Iterator[Utterance | Problem]:
    for utterance, rating in rated:
        if isinstance(rating, str):
            yield Problem(utterance.id, rating)
        elif rating >= minimum:
            yield utterance


def pesq(samples: Samples, clean: Samples) -> float | None:
    """Wideband PESQ against the clean clip, which may differ in length; None where the standard gives no score."""
    _require("pesq")
    if max(len(samples), len(clean)) > _PESQ_SAFE_S * RATE:
        return _pesq_apart(samples, clean)
    return _pesq(samples, clean)


def _pesq(samples: Samples, clean: Samples) -> float | None:
    import pesq

    try:
        score = float(pesq.pesq(RATE, clean, samples, "wb"))
    except (pesq.PesqError, ValueError):  # too short, or silent: there is nothing to compare
        return None
    return score if np.isfinite(score) else None


_PESQ_APART = """
import sys, numpy, pesq
data = sys.stdin.buffer.read()
size = int.from_bytes(data[:8], "little")
signals = numpy.frombuffer(data, numpy.float32, offset=8)
print(float(pesq.pesq(16000, signals[:size], signals[size:], "wb")))
"""


def _pesq_apart(samples: Samples, clean: Samples) -> float | None:
    message = b"".join((len(clean).to_bytes(8, "little"), _bytes(clean), _bytes(samples)))
    child = subprocess.run([sys.executable, "-c", _PESQ_APART], input=message, capture_output=True, check=False)
    score = float(child.stdout) if child.returncode == 0 and child.stdout else math.nan
    return score if math.isfinite(score) else None


def _bytes(samples: Samples) -> bytes:
    return np.ascontiguousarray(samples, dtype=np.float32).tobytes()


def _windows(samples: Samples) -> tuple[np.ndarray, list[int]]:
    """What the networks are shown: the clip, repeated until it fills a window, and where its windows start."""
    audio = np.clip(np.asarray(samples, dtype=np.float32), -1, 1)
    if not len(audio):
        raise ValueError("an empty clip has no quality")
    while len(audio) < _WINDOW:
        audio = np.concatenate((audio, audio))
    # As speechmos counts them: the last second may go unheard, and where the end in seconds times the rate comes out
    # just under a whole number, the window is one sample short and left out.
    hops = range(int(len(audio) // RATE - _WINDOW_S) + 1)
    return audio, [hop * RATE for hop in hops if int((hop + _WINDOW_S) * RATE) - hop * RATE == _WINDOW]


def _raw_scores(audio: np.ndarray, starts: Sequence[int]) -> np.ndarray:
    """The SIG/BAK/OVRL network's output for each window: windows x 3."""
    networks = _networks()
    frames = starts[-1] // _FRAME + _FRAMES
    block = _FRAMES * _FRAME
    padded = np.pad(audio, (0, max(0, -(-frames // _FRAMES) * block + _FRAME - len(audio))))
    pieces = [networks.spectrum(padded[at : at + _WINDOW][np.newaxis]) for at in range(0, frames * _FRAME, block)]
    spectrum = np.concatenate(pieces, axis=2)[:, :, :frames]

    # Four layers of 3 x 3 see four frames to each side, and a maximum over two frames follows: all counts are even.
    layers = []
    for at in range(0, frames, _FRAMES):
        before = min(at, _REACH)
        part = networks.layers(spectrum[:, :, at - before : at + _FRAMES + _REACH])
        layers.append(part[:, :, before // 2 : (before + _FRAMES) // 2])
    shared = np.concatenate(layers, axis=2)[:, :, : frames // 2]

    firsts = [start // _FRAME for start in starts]
    heads = networks.layers(np.concatenate([spectrum[:, :, at : at + 2 * _REACH] for at in firsts]))
    tails = networks.layers(np.concatenate([spectrum[:, :, at + _FRAMES - 2 * _REACH : at + _FRAMES] for at in firsts]))
    edge = _REACH // 2
    scores = []
    for at, head, tail in zip(firsts, heads, tails, strict=True):
        window = shared[:, :, at // 2 : (at + _FRAMES) // 2].copy()
        window[0, :, :edge], window[0, :, -edge:] = head[:, :edge], tail[:, -edge:]
        scores.append(networks.rest(window))
    return np.concatenate(scores)


def _p808(audio: np.ndarray, starts: Sequence[int]) -> float:
    network = _networks().p808
    mels = (_log_mel(audio[start : start + _WINDOW - _FRAME]) for start in starts)
    return float(np.mean([network(mel[np.newaxis]).item() for mel in mels]))


def _log_mel(audio: np.ndarray) -> np.ndarray:
    """Mel power in dB under the window's loudest, as the P.808 network expects it: frames x 120, about -1 to 1."""
    import scipy.fft

    window, filters = _mel_bank()
    frames = np.lib.stride_tricks.sliding_window_view(np.pad(audio, _FFT // 2), _FFT)[::_FRAME]
    power = np.abs(scipy.fft.rfft(frames * window, axis=1)) ** 2
    mel = np.maximum(power @ filters, 1e-10)
    level_db = 10 * np.log10(mel / mel.max())
    return ((np.maximum(level_db, -80) + 40) / 40).astype(np.float32)


@lru_cache(maxsize=1)
def _mel_bank() -> tuple[np.ndarray, np.ndarray]:
    """A periodic Hann window, and triangular filters of equal area on Slaney's mel scale (linear below 1 kHz)."""
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(_FFT) / _FFT)
    top = 15 + 27 * np.log(RATE / 2 / 1000) / np.log(6.4)
    mels = np.linspace(0, top, _MELS + 2)
    edges = np.where(mels < 15, mels * 200 / 3, 1000 * np.exp((mels - 15) * np.log(6.4) / 27))
    bins = np.fft.rfftfreq(_FFT, 1 / RATE)[:, np.newaxis]
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    triangles = np.maximum(0, np.minimum((bins - low) / (middle - low), (high - bins) / (high - middle)))
    return window.astype(np.float32), (triangles * 2 / (high - low)).astype(np.float32)


class _Networks(NamedTuple):
    """The parts of the SIG/BAK/OVRL network, and the P.808 network."""

    spectrum: Callable[[np.ndarray], np.ndarray]
    layers: Callable[[np.ndarray], np.ndarray]
    rest: Callable[[np.ndarray], np.ndarray]
    p808: Callable[[np.ndarray], np.ndarray]


@lru_cache(maxsize=1)
def _networks() -> _Networks:
    for needed in ("speechmos", "onnx", "onnxruntime"):
        _require(needed)
    import onnx

    package = importlib.util.find_spec("speechmos")
    assert package is not None
    folder = Path((package.submodule_search_locations or [""])[0], "dnsmos_models")
    model = onnx.load(folder / "sig_bak_ovr.onnx")
    operations = model.graph.node
    expand = next(number for number, node in enumerate(operations) if node.op_type == "Unsqueeze")
    spectrum = next(node for node in operations[expand:] if node.op_type == "Conv").input[0]
    layers = next(node for node in operations if node.op_type == "MaxPool").output[0]
    # The layers run over clips of any length, so the shapes between the parts are free.
    floats = onnx.TensorProto.FLOAT
    model.graph.value_info.extend(
        [
            onnx.helper.make_tensor_value_info(spectrum, floats, ("N", 1, "frames", 161)),
            onnx.helper.make_tensor_value_info(layers, floats, ("N", 32, "half", 80)),
        ]
    )
    extract = onnx.utils.Extractor(model).extract_model
    return _Networks(
        _part(extract([model.graph.input[0].name], [spectrum])),
        _part(extract([spectrum], [layers])),
        _part(extract([layers], [model.graph.output[0].name])),
        _part(onnx.load(folder / "model_v8.onnx")),
    )


def _part(model: Any) -> Callable[[np.ndarray], np.ndarray]:
    """A network as a function, on one thread: clips are scored in parallel, not their layers."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda values: session.run(None, {name: values})[0]


def _require(package: str) -> None:
    if importlib.util.find_spec(package) is None:
        raise UserError(f"speech quality needs the package {package}: {install_hint('quality')}")
