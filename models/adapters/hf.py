"""Any transformers speech recogniser, from the Hub or a folder: Whisper, the CTC family, Moonshine, SpeechT5, seq2seq.

Straight on the model and its processor, so that nothing happens that is not written here:

- Whisper hears 30 s at a time. Longer clips go through its own long-form decoding (Radford et al. 2023, 3.8), with
  timestamps; nothing is cut off.
- CTC models (wav2vec 2.0, HuBERT, WavLM, Data2Vec, MMS) take clips whole up to `chunk_s`; longer ones in overlapping
  windows whose middle parts are joined before decoding, so no word is cut.
- The other sequence-to-sequence models take clips up to `chunk_s`; longer ones are cut at a pause. They stop at
  `tokens_per_s` of the clip's own length, because on noise a decoder may never end by itself.

Padding must not change what a clip gives. Whisper always pads to 30 s. For every other model it is tried, once, when
the model is loaded: one whose features move when a longer clip stands beside (group normalisation, convolutions that
do not mask) is only given clips of one length together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from srb.builders.audio import resample
from srb.builders.errors import UserError
from srb.models.chunks import split_at_pauses
from srb.models.interface import Clip, Described, Recogniser, folder_revision, need

INSTALL = 'pip install "speech-robust-bench[models]"'
SHORTEST_S = 0.1  # below, the first convolutions have nothing to give; such clips are padded with silence
WHISPER_S = 30.0
TOKENS_PER_S = {"moonshine": 6.5}  # as its authors have it
DEFAULT_TOKENS_PER_S = 25.0  # letters, for models that spell; people say 10 to 20 in a second
# MMS names its adapters by ISO 639-3
ISO_639_3 = {
    "ar": "ara", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est", "fi": "fin",
    "fr": "fra", "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor",
    "lt": "lit", "lv": "lav", "nl": "nld", "no": "nob", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk",
    "sl": "slv", "sv": "swe", "sw": "swh", "ta": "tam", "te": "tel", "th": "tha", "tr": "tur", "uk": "ukr", "ur": "urd",
    "vi": "vie",
}  # fmt: skip


Window = tuple[int, int, int, int | None]  # from this sample to that, and which of its frames count


@dataclass
class Transformers(Described):
    """What the three kinds of model share."""

    model: Any = None
    processor: Any = None
    rate: int = 16_000
    chunk_s: float = 30.0
    forced_language: str | None = None
    tokens_per_s: float = DEFAULT_TOKENS_PER_S
    beams: int = 1
    pads_safely: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.pads_safely = self._padding_changes_nothing()
        self.options["pads_safely"] = self.pads_safely

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        import torch

        shortest = math.ceil(SHORTEST_S * self.rate)
        ready = [resample(clip, rate, self.rate) for clip in clips]
        ready = [np.pad(clip, (0, max(0, shortest - len(clip)))) for clip in ready]
        with torch.inference_mode():
            return [text.strip() for text in self._texts(ready, self._spoken(language))]

    def _spoken(self, language: str | None) -> str | None:
        """The language to tell the model: the option's, else the data's; with `auto` the model has to find out."""
        return None if self.forced_language == "auto" else self.forced_language or language

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        raise NotImplementedError

    def _inputs(self, clips: list[Clip], **more: Any) -> dict[str, Any]:
        made = self.processor(audio=clips, sampling_rate=self.rate, return_tensors="pt", padding=True, **more)
        return self._placed(made)

    def _placed(self, inputs: Any) -> dict[str, Any]:
        device, dtype = self.model.device, self.model.dtype
        return {
            name: tensor.to(device, dtype) if tensor.is_floating_point() else tensor.to(device)
            for name, tensor in inputs.items()
        }

    def _features(self, clips: list[Clip]) -> list[Any]:
        """What the model makes of each clip before any decision is taken: one tensor (time, width) per clip."""
        raise NotImplementedError

    def _padding_changes_nothing(self) -> bool:
        import torch

        noise = np.random.Generator(np.random.PCG64(0)).normal(0, 0.1, 2 * self.rate).astype(np.float32)
        short, long = noise[: self.rate], noise
        with torch.inference_mode():
            alone = self._features([short])[0].float()
            padded = self._features([short, long])[0].float()[: len(alone)]
        tolerance = 1e-3 if self.model.dtype == torch.float32 else 0.05  # of the spread: rounding, against real change
        return bool((alone - padded).abs().max() <= tolerance * alone.std())

    def _groups(self, clips: list[Clip]) -> Iterator[list[int]]:
        """The indices of clips that may share a batch."""
        order = sorted(range(len(clips)), key=lambda index: len(clips[index]))
        for _, same in groupby(order, key=lambda index: 0 if self.pads_safely else len(clips[index])):
            indices = list(same)
            for start in range(0, len(indices), self.batch_size):
                yield indices[start : start + self.batch_size]


class Ctc(Transformers):
    """One decision per frame; frames of overlapping windows are joined before they are read as letters.

    That needs to know which samples a frame comes from, as the models with convolutions over the waveform tell. Others
    (on spectrograms: wav2vec 2.0 BERT, Parakeet) are cut at pauses, and only given clips of one length together.
    """

    _language: str | None = None

    @property
    def _on_waveform(self) -> bool:
        return hasattr(self.model.config, "conv_stride") and hasattr(self.model, "_get_feat_extract_output_lengths")

    def _padding_changes_nothing(self) -> bool:
        return self._on_waveform and super()._padding_changes_nothing()

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        self._speak(language)
        windows = self._windows if self._on_waveform else self._pieces
        pieces = [(owner, window) for owner, clip in enumerate(clips) for window in windows(clip)]
        audio = [clips[owner][start:end] for owner, (start, end, _, _) in pieces]
        frames: list[Any] = [None] * len(pieces)
        for indices in self._groups(audio):
            for index, logits in zip(indices, self._features([audio[i] for i in indices]), strict=True):
                _, (_, _, first, last) = pieces[index]
                frames[index] = logits[first:last]
        joined: list[list[Any]] = [[] for _ in clips]
        for (owner, _), part in zip(pieces, frames, strict=True):
            joined[owner].append(part)
        return [self._text(parts) for parts in joined]

    def _pieces(self, clip: Clip) -> Iterator[Window]:
        start = 0
        for piece in split_at_pauses(clip, self.rate, self.chunk_s):
            yield start, start + len(piece), 0, None
            start += len(piece)

    def _windows(self, clip: Clip) -> Iterator[Window]:
        samples = len(clip)
        per_frame = self.model.config.inputs_to_logits_ratio
        window, overlap = (int(seconds * self.rate) // per_frame for seconds in (self.chunk_s, self.chunk_s / 6))
        if samples <= window * per_frame:
            yield 0, samples, 0, None
            return
        total = samples // per_frame
        start = 0
        while True:
            end = start + window
            first = overlap if start else 0
            if end >= total:
                yield start * per_frame, samples, first, None
                return
            yield start * per_frame, end * per_frame, first, window - overlap
            start = end - 2 * overlap

    def _features(self, clips: list[Clip]) -> list[Any]:
        logits = self.model(**self._inputs(clips)).logits
        if not self._on_waveform:
            return list(logits)
        counts = self.model._get_feat_extract_output_lengths(_lengths(clips)).tolist()
        return [row[:count] for row, count in zip(logits, counts, strict=True)]

    def _text(self, parts: list[Any]) -> str:
        import torch

        logits = torch.cat(parts)
        if hasattr(self.processor, "decoder"):  # a language model over the letters, with pyctcdecode
            return self.processor.decode(logits.float().cpu().numpy()).text
        return self.processor.decode(logits.argmax(-1).tolist())

    def _speak(self, language: str | None) -> None:
        """MMS has a small adapter and an alphabet for each language; the others have one alphabet."""
        if not getattr(self.model.config, "adapter_attn_dim", None) or not language or language == self._language:
            return
        code = ISO_639_3.get(language, language)
        self.processor.tokenizer.set_target_lang(code)
        self.model.load_adapter(code)
        self._language = language


class Whisper(Transformers):
    """Always 30 s of input; longer clips through its own sequential decoding."""

    def _padding_changes_nothing(self) -> bool:
        return True

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        texts = [""] * len(clips)
        limit = int(WHISPER_S * self.rate)
        for long in (False, True):
            kind = [index for index, clip in enumerate(clips) if (len(clip) > limit) is long]
            for start in range(0, len(kind), self.batch_size):
                indices = kind[start : start + self.batch_size]
                for index, text in zip(
                    indices, self._generate([clips[i] for i in indices], long, language), strict=True
                ):
                    texts[index] = text
        return texts

    def _generate(self, clips: list[Clip], long: bool, language: str | None) -> list[str]:
        how: dict[str, Any] = {"truncation": False, "padding": "longest"} if long else {}
        inputs = self.processor(clips, sampling_rate=self.rate, return_tensors="pt", return_attention_mask=True, **how)
        settings: dict[str, Any] = {"num_beams": self.beams}
        if long:
            settings["return_timestamps"] = True
        if getattr(self.model.generation_config, "is_multilingual", False):
            settings.update(task="transcribe", language=language)
        tokens = self.model.generate(**self._placed(inputs), **settings)
        return self.processor.batch_decode(tokens, skip_special_tokens=True)


class Seq2Seq(Transformers):
    """An encoder and a decoder that writes until it says that it is done."""

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        cut = [split_at_pauses(clip, self.rate, self.chunk_s) for clip in clips]
        pieces = [(owner, piece) for owner, parts in enumerate(cut) for piece in parts]
        texts = [""] * len(pieces)
        for indices in self._groups([piece for _, piece in pieces]):
            for index, text in zip(indices, self._generate([pieces[i][1] for i in indices]), strict=True):
                texts[index] = text
        joined: list[list[str]] = [[] for _ in clips]
        for (owner, _), text in zip(pieces, texts, strict=True):
            joined[owner].append(text.strip())
        return [" ".join(filter(None, parts)) for parts in joined]

    def _generate(self, clips: list[Clip]) -> list[str]:
        limits = [max(2, int(len(clip) / self.rate * self.tokens_per_s)) for clip in clips]
        most = _positions(self.model.config)
        tokens = self.model.generate(**self._inputs(clips), max_new_tokens=min(max(limits), most), num_beams=self.beams)
        # the batch ran to its longest clip's limit: each clip keeps what it would have had alone (token 0 is the start)
        kept = [row[: limit + 1] for row, limit in zip(tokens.tolist(), limits, strict=True)]
        return self.processor.batch_decode(kept, skip_special_tokens=True)

    def _features(self, clips: list[Clip]) -> list[Any]:
        return list(self.model.get_encoder()(**self._inputs(clips)).last_hidden_state)


def _lengths(clips: list[Clip]) -> Any:
    import torch

    return torch.tensor([len(clip) for clip in clips])


def _positions(config: Any) -> int:
    """How many tokens the decoder has room for, less a few for its prompt."""
    names = ("max_target_positions", "max_text_positions", "max_position_embeddings")
    decoder = getattr(config, "decoder", None)
    found = (getattr(one, name, None) for one in (config, decoder) for name in names)
    return next((value for value in found if isinstance(value, int) and value > 8), 448) - 4


def load(
    target: str,
    *,
    device: str = "",
    dtype: str = "float32",
    batch_size: int = 8,
    language: str = "",
    revision: str = "",
    chunk_s: float = 30.0,
    beams: int = 1,
    tokens_per_s: float = 0.0,
    threads: int = 0,
) -> Recogniser:
    """`hf:<id or folder>`. `language` overrides the data's, `auto` leaves it open; no `device` is a GPU, if any."""
    torch = need("torch", "hf", INSTALL)
    transformers = need("transformers", "hf", INSTALL)
    if not target:
        raise UserError("'hf' needs a model: hf:openai/whisper-tiny.en, or hf:<folder>")
    if not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise UserError(f"hf: no dtype '{dtype}'; use float32, float16 or bfloat16")
    if threads:
        torch.set_num_threads(threads)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    where = {"revision": revision} if revision else {}
    try:
        config = transformers.AutoConfig.from_pretrained(target, **where)
        kind, auto = _kind(transformers, config, target)
        processor = transformers.AutoProcessor.from_pretrained(target, **where)
        model = auto.from_pretrained(target, torch_dtype=getattr(torch, dtype), **where)
    except (OSError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"hf:{target}: {str(error).strip().splitlines()[0]}") from None
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    extractor = getattr(processor, "feature_extractor", processor)
    per_s = tokens_per_s or TOKENS_PER_S.get(config.model_type, DEFAULT_TOKENS_PER_S)
    options = {"device": place, "dtype": dtype, "batch_size": batch_size, "language": language or None}
    if kind is not Whisper:
        options["chunk_s"] = chunk_s
    if kind is Seq2Seq:
        options["tokens_per_s"] = per_s
    if kind is not Ctc:
        options["beams"] = beams
    return kind(
        name=target if not Path(target).is_dir() else Path(target).resolve().name,
        revision=_revision(target, config),
        options=options,
        batch_size=batch_size,
        model=model.to(place).eval(),
        processor=processor,
        rate=extractor.sampling_rate,
        chunk_s=chunk_s,
        forced_language=language or None,
        tokens_per_s=per_s,
        beams=beams,
    )


def _kind(transformers: Any, config: Any, target: str) -> tuple[type[Transformers], Any]:
    if config.model_type == "whisper":
        return Whisper, transformers.AutoModelForSpeechSeq2Seq
    named = config.architectures or []
    for kind, auto in ((Ctc, transformers.AutoModelForCTC), (Seq2Seq, transformers.AutoModelForSpeechSeq2Seq)):
        fits = type(config) in auto._model_mapping
        # a CTC head and a bare encoder share one config class: the checkpoint says which one it is
        if fits and (kind is Seq2Seq or not named or any(name.endswith("ForCTC") for name in named)):
            return kind, auto
    raise UserError(f"hf:{target}: {', '.join(named) or config.model_type} is not a speech recogniser")


def _revision(target: str, config: Any) -> str | None:
    if Path(target).is_dir():
        return folder_revision(Path(target), ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt"))
    return getattr(config, "_commit_hash", None)
