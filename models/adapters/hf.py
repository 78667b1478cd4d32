"""Any speech recogniser of transformers, from the Hub or a folder: `hf:openai/whisper-tiny.en`.

Straight on the model and its processor, so that nothing happens that is not written here. The class is the one that
transformers itself maps the config to: CTC, RNN-T, TDT, encoder-decoder, or a language model that takes audio
(`models.hf`). Whisper and CTC have a way of their own with long clips; the others take clips of up to `chunk_s`, and
longer ones are cut at pauses.

Live, transformers' own streaming is used: `generate` over a generator of mel chunks (Nemotron ASR, Voxtral Realtime).
`generate` takes what it needs from the generator and gives tokens to a streamer, so it runs in a thread of its own: it
waits in the generator until enough audio has come, and `accept` waits until it does. One of the two works at a time,
so the time of `accept` is what the model took. How the audio is cut into chunks of whole frames is laid down in
transformers' documentation of the processors: the first chunk is centred, each further one begins half a window early.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.hf.base import (
    DEFAULT_TOKENS_PER_S,
    INSTALL,
    Ctc,
    Inputs,
    TransformersRecogniser,
    Whisper,
    loading,
    quiet_transformers,
    revision_of,
)
from speech_robust_bench.models.hf.generate import (
    AudioLanguageModel,
    Seq2Seq,
    Transducer,
    parameters,
    prompt_for,
    prompt_with_terms,
    request_for,
    takes_prompt,
)
from speech_robust_bench.models.interface import Clip, Event, Recogniser, need
from speech_robust_bench.models.prompts import fingerprint, read_terms

LONGEST_TOKENS = 400  # of a segment: so the cost of an event does not grow with the length of the stream


class LiveTransducer(Transducer):
    """A transducer whose `generate` can be fed while it runs."""

    def stream(self, rate: int, language: str | None) -> TransducerSession:
        return TransducerSession(self, rate, self._spoken(language))


class LiveVoxtral(AudioLanguageModel):
    """Voxtral Realtime: writes a token for every 80 ms of audio, a fixed time behind it."""

    def stream(self, rate: int, language: str | None) -> VoxtralSession:
        return VoxtralSession(self, rate, self._spoken(language))


def live_kind(kind: type[TransformersRecogniser], model: Any, processor: Any) -> type[TransformersRecogniser]:
    """The kind of recogniser that can be fed while it generates, if this version of transformers can do that."""
    if not hasattr(processor, "num_samples_per_audio_chunk"):
        return kind
    if kind is Transducer and hasattr(model, "_validate_stream_chunk"):
        return LiveTransducer
    return LiveVoxtral if model.config.model_type == "voxtral_realtime" else kind


@dataclass
class GenerateSession:
    """One stream. Its thread ends with the stream, or with the program."""

    told: ClassVar[tuple[str, ...]] = ()  # of what the processor gives, besides the spectrogram
    recogniser: TransformersRecogniser
    rate: int
    language: str | None = None
    audio: np.ndarray = field(default_factory=lambda: np.empty(0, np.float32))
    dropped: int = 0  # samples before those that are kept
    tokens: list[int] = field(default_factory=list)  # of the segment
    _ended: bool = False
    _hungry: bool = False  # the model waits for audio
    _over: bool = False  # the model has finished
    _shown: str = ""
    _error: BaseException | None = None
    _thread: threading.Thread | None = None
    _turn: threading.Condition = field(default_factory=threading.Condition)

    def __post_init__(self) -> None:
        self.model, self.processor = self.recogniser.model, self.recogniser.processor

    def accept(self, chunk: Clip) -> list[Event]:
        self._feed(resample(chunk, self.rate, self.recogniser.rate))
        events = self._whole_segments()
        text = self._text(self.tokens).rstrip("\ufffd").rstrip()  # of a character that is not all there
        if text != self._shown:
            self._shown = text
            events.append(Event(text))
        return events

    def finish(self) -> list[Event]:
        self._ended = True
        self._feed(np.zeros(self._tail, np.float32))
        return [*self._whole_segments(), Event(self._text(self.tokens), final=True)]

    def close(self) -> None:
        """Let go of a stream that has failed: the model finds that it has ended."""
        with self._turn:
            self._ended, self._hungry = True, False
            self._turn.notify_all()

    def _feed(self, samples: np.ndarray) -> None:
        """Hand over samples, and wait until the model has made of them what it can."""
        with self._turn:
            self.audio = np.concatenate((self.audio, samples))
            self._hungry = False
            if self._thread is None:
                self._thread = threading.Thread(target=self._generate, name="generate", daemon=True)
                self._thread.start()
            self._turn.notify_all()
            self._turn.wait_for(lambda: self._hungry or self._over)
            if self._error is not None:
                raise self._error

    def _whole_segments(self) -> list[Event]:
        """Words are never taken back: those of a segment that has grown long are final, up to the last one."""
        if len(self.tokens) < LONGEST_TOKENS:
            return []
        for cut in range(len(self.tokens) - 1, 0, -1):
            before = self._text(self.tokens[:cut])
            if before and self._text(self.tokens[: cut + 1]).startswith(f"{before} "):
                self.tokens, self._shown = self.tokens[cut:], ""
                return [Event(before, final=True)]
        return []

    def _text(self, tokens: list[int]) -> str:
        return str(self.processor.decode(tokens, skip_special_tokens=True)).strip()

    @property
    def _tail(self) -> int:
        """Samples of silence that the model needs after the audio."""
        return 0

    # --- in the thread of the model --------------------------------------------------------------------------------

    def put(self, tokens: Any) -> None:
        """Tokens, as `generate` gives them to its streamer."""
        self.tokens += [int(token) for token in tokens.flatten()]

    def end(self) -> None:
        """`generate` has nothing more to say."""

    def _generate(self) -> None:
        import torch

        try:
            with torch.inference_mode():
                self.model.generate(**self._arguments(), streamer=self)
        except BaseException as error:  # it belongs to the clip, in the thread that waits
            self._error = error
        finally:
            with self._turn:
                self._over = True
                self._turn.notify_all()

    def _arguments(self) -> Settings:
        """What `generate` is given: what the processor says of the first chunk, and a generator of the mel chunks."""
        size = self.processor.num_samples_first_audio_chunk
        self._wait_for(size)
        first = self._inputs(0, size)
        told = {name: first[name] for name in self.told if name in first}
        return {**told, "input_features": self._chunks(first["input_features"])}

    def _chunks(self, first: Any) -> Iterator[Any]:
        """The mel chunks, each as soon as its audio is there."""
        raise NotImplementedError

    def _inputs(self, start: int, size: int) -> Inputs:
        """What the processor makes of a chunk; one that goes beyond the audio is filled up with silence."""
        samples = self.audio[start - self.dropped : start - self.dropped + size]
        told = {"language": self.language} if self.language and "language" in parameters(self.processor) else {}
        inputs = self.processor(
            np.pad(samples, (0, size - len(samples))),
            sampling_rate=self.recogniser.rate,
            is_streaming=True,
            is_first_audio_chunk=start == 0,
            return_tensors="pt",
            **told,
        )
        return self.recogniser._placed(inputs)

    def _start_of(self, frames: int) -> int:
        """Where the chunk after a number of frames of the spectrogram begins."""
        extractor = self.processor.feature_extractor
        return frames * extractor.hop_length - extractor.win_length // 2

    @property
    def _length(self) -> int:
        return self.dropped + len(self.audio)

    def _wait_for(self, end: int) -> bool:
        """Wait until the audio up to a sample is there; false if the stream ends before."""
        with self._turn:
            while self._length < end and not self._ended:
                self._hungry = True
                self._turn.notify_all()
                self._turn.wait_for(lambda: not self._hungry)
        return self._length >= end

    def _drop(self, start: int) -> None:
        """Forget what no chunk needs any more: a stream may be long."""
        with self._turn:
            self.audio, self.dropped = self.audio[max(0, start - self.dropped) :], max(start, self.dropped)


class TransducerSession(GenerateSession):
    """Nemotron ASR: chunks of fixed length, of which the last one is filled up with silence."""

    told = ("num_lookahead_tokens", "prompt_ids")

    def put(self, tokens: Any) -> None:
        blank = self.processor.blank_token_id
        self.tokens += [int(token) for token in tokens.flatten() if int(token) != blank]

    def _chunks(self, first: Any) -> Iterator[Any]:
        frames, hop = self.processor.num_mel_frames_first_audio_chunk, self.processor.feature_extractor.hop_length
        yield first[:, :frames]
        step, size = self.processor.num_mel_frames_per_audio_chunk, self.processor.num_samples_per_audio_chunk
        while True:
            start = self._start_of(frames)
            self._drop(start)
            if not self._wait_for(start + size) and self._length <= frames * hop:
                return
            yield self._inputs(start, size)["input_features"][:, :step]
            frames += step


class VoxtralSession(GenerateSession):
    """Voxtral Realtime: the prompt goes with the first chunk, and whole chunks of 80 ms follow."""

    told = ("input_ids", "num_delay_tokens")
    _prompt_given: bool = False

    @property
    def _tail(self) -> int:
        processor = self.processor
        shortest = processor.num_samples_first_audio_chunk - self._length
        return max(processor.num_right_pad_tokens * processor.raw_audio_length_per_tok, shortest)

    def put(self, tokens: Any) -> None:
        if self._prompt_given:
            super().put(tokens)
        self._prompt_given = True  # the first that comes is the prompt

    def _chunks(self, first: Any) -> Iterator[Any]:
        yield first
        frames, size = self.processor.num_mel_frames_first_audio_chunk, self.processor.num_samples_per_audio_chunk
        while self._wait_for(self._start_of(frames) + size):
            yield self._inputs(self._start_of(frames), size)["input_features"]
            frames += self.processor.audio_length_per_tok
            self._drop(self._start_of(frames))


# transformers' auto classes in the order in which they are tried, and what runs their models
KINDS: tuple[tuple[str, type[TransformersRecogniser]], ...] = (
    ("AutoModelForCTC", Ctc),
    ("AutoModelForRNNT", Transducer),
    ("AutoModelForTDT", Transducer),
    ("AutoModelForSpeechSeq2Seq", Seq2Seq),
    ("AutoModelForMultimodalLM", AudioLanguageModel),
    ("AutoModelForSeq2SeqLM", AudioLanguageModel),  # Audio Flamingo 3 is listed there
    ("AutoModelForCausalLM", AudioLanguageModel),  # only for models that bring their own code
)
TOKENS_PER_S = {"moonshine": 6.5, "moonshine_streaming": 6.5}  # as Moonshine's authors have it
# How long a clip a model takes whole, where that is more or less than 30 s
LONGEST_S = {
    "kyutai_speech_to_text": 3600.0,  # a stream
    "voxtral_realtime": 3600.0,
    "voxtral": 1800.0,
    "vibevoice_asr": 3600.0,
    "moss_transcribe_diarize": 3600.0,
    "glmasr": 600.0,
    "qwen3_asr": 1200.0,
}
DEFAULT_LONGEST_S = 30.0
# The settings that count for a kind of model; all of them for the others
USED: dict[type, tuple[str, ...]] = {
    Whisper: ("beams",),
    Ctc: ("chunk_s",),
    Transducer: ("chunk_s",),
    LiveTransducer: ("chunk_s",),
    Seq2Seq: ("chunk_s", "tokens_per_s", "beams"),
}
# The kinds that can follow an option
ABLE: dict[str, tuple[type, ...]] = {
    "word_times": (Whisper,),
    "nbest": (Whisper, Seq2Seq, AudioLanguageModel),
    "terms": (Whisper, AudioLanguageModel),
}
_COMMIT = re.compile(r"[0-9a-f]{40}")


def load(
    target: str,
    *,
    device: str = "",
    dtype: str = "float32",
    batch_size: int = 8,
    language: str = "",
    revision: str = "",
    chunk_s: float = 0.0,
    beams: int = 1,
    tokens_per_s: float = 0.0,
    threads: int = 0,
    prompt: str = "",
    confidence: bool = False,
    word_times: bool = False,
    nbest: int = 0,
    terms: str = "",
    trust_remote_code: bool = False,
) -> Recogniser:
    """`hf:<id or folder>`. `language` overrides the data's, `auto` leaves it open; no `device` is a GPU, if any.

    `prompt` is the instruction for models that take one, `confidence` adds how sure a CTC model is of each word,
    `word_times` when Whisper heard it. `nbest` stores that many transcripts of each clip, of as many `beams`. `terms`
    is a file of terms for the prompt. `trust_remote_code` runs code that the model brings along; of the Hub it needs
    the `revision` as a commit, so that it is the code that was looked at.
    """
    torch = need("torch", "hf", INSTALL)
    transformers = quiet_transformers("hf")
    if not target:
        raise UserError("'hf' needs a model: hf:openai/whisper-tiny.en, or hf:<folder>")
    if not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise UserError(f"hf: no dtype '{dtype}'; use float32, float16 or bfloat16")
    if trust_remote_code and not Path(target).is_dir() and not _COMMIT.fullmatch(revision):
        raise UserError(f"hf:{target}: trust_remote_code needs the commit whose code you trust: &revision=<40 digits>")
    if target.startswith(("/", ".", "~")) and not Path(target).is_dir():
        raise UserError(f"hf:{target}: no such folder")
    if threads:
        torch.set_num_threads(threads)
    where: Settings = {"revision": revision} if revision else {}
    where["trust_remote_code"] = trust_remote_code  # left out, transformers asks on stdin
    with loading(f"hf:{target}"):
        config = transformers.AutoConfig.from_pretrained(target, **where)
        kind, auto = kind_of(transformers, config, target)
        processor = transformers.AutoProcessor.from_pretrained(target, **where)
        model = auto.from_pretrained(target, torch_dtype=getattr(torch, dtype), **where)
    model = getattr(model, "thinker", model)  # of the Omni models: the part that reads and writes; the other one speaks
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model_type = config.model_type
    if kind is Seq2Seq and not config.is_encoder_decoder:
        kind = AudioLanguageModel  # transformers lists some of them in both places
    request = request_for(processor, model_type, converses=kind is AudioLanguageModel)
    kind = live_kind(kind, model, processor)
    settings: Settings = {
        "chunk_s": chunk_s or LONGEST_S.get(model_type, DEFAULT_LONGEST_S),
        "tokens_per_s": tokens_per_s or TOKENS_PER_S.get(model_type, DEFAULT_TOKENS_PER_S),
        "beams": beams,
        "prompt": prompt_for(request, model_type, prompt),
    }
    expected = read_terms(terms) if terms else []
    _check(target, kind, {"word_times": word_times, "nbest": nbest, "terms": bool(expected)})
    if nbest > beams:
        raise UserError(f"hf:{target}: nbest={nbest} needs at least as many beams: beams={nbest}")
    if expected and kind is AudioLanguageModel:
        if not takes_prompt(request, processor):
            raise UserError(f"hf:{target}: takes no instruction, so no terms; leave terms out")
        settings["prompt"] = prompt_with_terms(settings["prompt"], expected)
    options = {"device": place, "dtype": dtype, "batch_size": batch_size, "language": language or None}
    options |= {name: settings[name] for name in USED.get(kind, settings)}
    given = {"word_times": word_times, "nbest": nbest, "terms": fingerprint(expected) if expected else ""}
    options |= {name: value for name, value in given.items() if value}
    if trust_remote_code:
        options["trust_remote_code"] = True
    if confidence:
        if kind is not Ctc:
            raise UserError(f"hf:{target}: only CTC models tell their confidences; leave confidence out")
        options["confidence"] = True
    recogniser = kind(
        name=target if not Path(target).is_dir() else Path(target).resolve().name,
        revision=revision_of(target, config),
        options=options,
        batch_size=batch_size,
        model=model.to(place).eval(),
        processor=processor,
        rate=_rate(processor),
        forced_language=language or None,
        request=request,
        confidence=confidence,
        word_times=word_times,
        nbest=nbest,
        terms=tuple(expected),
        **settings,
    )
    if isinstance(recogniser, Whisper):
        recogniser.check_options()
    if isinstance(recogniser, Ctc) and confidence:
        recogniser.check_confidence()
    return recogniser


def _check(target: str, kind: type[TransformersRecogniser], asked: dict[str, Any]) -> None:
    """Refuse an option that a kind of model has no way to follow."""
    for name, value in asked.items():
        if value and kind not in ABLE[name]:
            able = " and ".join(sorted(each.__name__ for each in ABLE[name]))
            raise UserError(f"hf:{target}: {name} is for {able} models, not {kind.__name__}; leave it out")


def kind_of(transformers: Any, config: Any, target: str) -> tuple[type[TransformersRecogniser], Any]:
    """What runs a model, and the auto class of transformers that loads it, from the model's config."""
    if config.model_type == "whisper":
        return Whisper, transformers.AutoModelForSpeechSeq2Seq
    own_code = getattr(config, "auto_map", None) or {}
    named = config.architectures or []
    for name, kind in KINDS:
        auto = getattr(transformers, name, None)
        if auto is None:  # an older transformers
            continue
        mapped = name in own_code or (type(config) in auto._model_mapping and name != "AutoModelForCausalLM")
        # a CTC head and a bare encoder share one config class: the checkpoint says which one it is
        if mapped and (kind is not Ctc or not named or any(name.endswith("ForCTC") for name in named)):
            if kind is AudioLanguageModel and not own_code and not takes_audio(config):
                continue
            return kind, auto
    raise UserError(f"hf:{target}: {', '.join(named) or config.model_type} is not a speech recogniser")


def takes_audio(config: Any) -> bool:
    """Whether a multimodal model has a part for audio; most have one for images alone."""
    parts = [config, getattr(config, "thinker_config", None)]
    return any(getattr(part, "audio_config", None) is not None for part in parts if part is not None)


def _rate(processor: Any) -> int:
    for name in ("feature_extractor", "audio_processor"):
        if rate := getattr(getattr(processor, name, None), "sampling_rate", None):
            return rate
    return getattr(processor, "sampling_rate", None) or 16_000
