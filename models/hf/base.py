"""What all of transformers' recognisers share, and the two that read a clip in windows: CTC models and Whisper.

Models are loaded without transformers' chatter, and whatever is wrong with one is one line.

Padding must not change what a clip gives. It is tried once, when the model is loaded: one whose features move when a
longer clip stands beside (group normalisation, convolutions that do not mask) is only given clips of one length
together.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import resample
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Transcript,
    folder_revision,
    need,
    out_of_memory,
    split_at_pauses,
    with_alternatives,
    with_confidences,
)

Inputs = dict[str, Any]  # what a transformers model takes: tensors by name
INSTALL = install_hint("models")


def quiet_transformers(adapter: str) -> Any:
    """The package, which from here on prints errors alone; nor does the Hub's client tell of every retry."""
    transformers = need("transformers", adapter, INSTALL)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    logging.getLogger("huggingface_hub").setLevel(logging.ERROR)
    return transformers


@contextmanager
def loading(spec: str) -> Iterator[None]:
    """A model that is not there, is damaged, or is of another kind: transformers raises what it likes."""
    try:
        with closed_stdin():
            yield
    except UserError:
        raise
    except (OSError, ValueError, ImportError) as error:
        raise UserError(f"{spec}: {first_line(error)}") from None
    except Exception as error:  # a folder with gaps in it
        if out_of_memory(error):
            raise
        raise UserError(
            f"{spec}: cannot be loaded ({first_line(error)[:200]}); a whole folder has config.json, weights that "
            "fit it, a processor and a tokenizer, as save_pretrained writes them"
        ) from None


def first_line(error: Exception) -> str:
    """What an error says, in short."""
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def revision_of(target: str, config: Any) -> str | None:
    """The commit on the Hub, or a hash over the files of a folder."""
    if Path(target).is_dir():
        return folder_revision(Path(target), ("*.json", "*.safetensors", "*.bin", "*.model", "*.txt", "*.py"))
    return getattr(config, "_commit_hash", None)


SHORTEST_S = 0.1  # below, the first convolutions have nothing to give; such clips are padded with silence
DEFAULT_TOKENS_PER_S = 25.0  # letters, for models that spell; people say 10 to 20 in a second


@dataclass
class TransformersRecogniser(Described):
    """A model and its processor."""

    model: Any = None
    processor: Any = None
    rate: int = 16_000
    chunk_s: float = 30.0
    forced_language: str | None = None
    tokens_per_s: float = DEFAULT_TOKENS_PER_S
    beams: int = 1
    prompt: str | None = None
    request: Callable[..., Any] | None = None
    confidence: bool = False
    word_times: bool = False
    nbest: int = 0
    terms: tuple[str, ...] = ()
    pads_safely: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self.pads_safely = self._padding_changes_nothing()
        self.options["pads_safely"] = self.pads_safely

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        import torch

        shortest = math.ceil(SHORTEST_S * self.rate)
        ready = [resample(clip, rate, self.rate) for clip in clips]
        ready = [np.pad(clip, (0, shortest - len(clip))) if len(clip) < shortest else clip for clip in ready]
        with torch.inference_mode():
            return self._texts(ready, self._spoken(language))

    def _spoken(self, language: str | None) -> str | None:
        """The language to tell the model: the option's, else the data's; with `auto` the model has to find out."""
        return None if self.forced_language == "auto" else self.forced_language or language

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        raise NotImplementedError

    def _inputs(self, clips: list[Clip], **more: Any) -> Inputs:
        inputs = self.processor(audio=clips, sampling_rate=self.rate, return_tensors="pt", padding=True, **more)
        return self._placed(inputs)

    def _placed(self, inputs: Any) -> Inputs:
        """The inputs where the model is, and in the precision that it listens in; some processors add plain numbers."""
        device, dtype = self.model.device, self._audio_dtype

        def placed(value: Any) -> Any:
            if not hasattr(value, "is_floating_point"):
                return value
            if device.type == "cuda" and value.device.type == "cpu":
                value = value.pin_memory()  # it is copied while the processor goes on
            return value.to(device, dtype if value.is_floating_point() else value.dtype, non_blocking=True)

        return {name: placed(value) for name, value in inputs.items()}

    @property
    def _audio_dtype(self) -> Any:
        """Of the part that takes the audio: some models keep it in single precision, whatever the rest is in."""
        for owner in (self.model, getattr(self.model, "model", None)):
            for name in ("codec_model", "audio_tower"):  # Kyutai; Nemotron 3.5 Transcribe
                if part := getattr(owner, name, None):
                    return next((p.dtype for p in part.parameters() if p.is_floating_point()), self.model.dtype)
        return self.model.dtype

    def _features(self, clips: list[Clip]) -> list[Any]:
        """What the model computes for each clip before it decides on a text: one tensor (time, width) per clip."""
        raise NotImplementedError

    def _padding_changes_nothing(self) -> bool:
        import torch

        noise = np.random.Generator(np.random.PCG64(0)).normal(0, 0.1, 2 * self.rate).astype(np.float32)
        short, long = noise[: self.rate], noise
        try:
            with torch.inference_mode():
                alone = self._features([short])[0].float()
                padded = self._features([short, long])[0].float()[: len(alone)]
        except (AttributeError, NotImplementedError, RuntimeError, TypeError, ValueError):
            return False  # it cannot be asked for its features alone
        tolerance = 1e-3 if self.model.dtype == torch.float32 else 0.05  # of the spread: rounding, against real change
        return alone.shape == padded.shape and bool((alone - padded).abs().max() <= tolerance * alone.std())

    def _groups(self, clips: list[Clip]) -> Iterator[list[int]]:
        """The indices of clips that may share a batch."""
        order = sorted(range(len(clips)), key=lambda index: len(clips[index]))
        for _, same in groupby(order, key=lambda index: 0 if self.pads_safely else len(clips[index])):
            indices = list(same)
            for start in range(0, len(indices), self.batch_size):
                yield indices[start : start + self.batch_size]

    def _in_pieces(self, clips: list[Clip], transcribe: Callable[[list[Clip]], list[str]]) -> list[list[str]]:
        """The texts of every clip: one, or several if it is longer than `chunk_s` and had to be cut at pauses."""
        cut = [split_at_pauses(clip, self.rate, self.chunk_s) for clip in clips]
        pieces = [(owner, piece) for owner, parts in enumerate(cut) for piece in parts]
        texts = [""] * len(pieces)
        for indices in self._groups([piece for _, piece in pieces]):
            for index, text in zip(indices, transcribe([pieces[i][1] for i in indices]), strict=True):
                texts[index] = text
        joined: list[list[str]] = [[] for _ in clips]
        for (owner, _), text in zip(pieces, texts, strict=True):
            joined[owner].append(text)
        return joined


def nbest_lists(texts: list[str], nbest: int) -> list[str]:
    """The transcript of each clip from the texts of its beams, which stand one after the other."""
    if not nbest:
        return texts
    return [with_alternatives(texts[start : start + nbest]) for start in range(0, len(texts), nbest)]


def positions(config: Any) -> int:
    """How many tokens the decoder has room for, less a few for its prompt."""
    names = ("max_target_positions", "max_text_positions", "max_position_embeddings")
    parts = [config, *(getattr(config, name, None) for name in ("decoder", "decoder_config", "text_config"))]
    sizes = (getattr(part, name, None) for part in parts for name in names)
    return next((value for value in sizes if isinstance(value, int) and value > 8), 448) - 4


# MMS names its adapters by ISO 639-3
ISO_639_3 = {
    "ar": "ara", "cs": "ces", "da": "dan", "de": "deu", "el": "ell", "en": "eng", "es": "spa", "et": "est", "fi": "fin",
    "fr": "fra", "he": "heb", "hi": "hin", "hr": "hrv", "hu": "hun", "id": "ind", "it": "ita", "ja": "jpn", "ko": "kor",
    "lt": "lit", "lv": "lav", "nl": "nld", "no": "nob", "pl": "pol", "pt": "por", "ro": "ron", "ru": "rus", "sk": "slk",
    "sl": "slv", "sv": "swe", "sw": "swh", "ta": "tam", "te": "tel", "th": "tha", "tr": "tur", "uk": "ukr", "ur": "urd",
    "vi": "vie",
}  # fmt: skip

Window = tuple[int, int, int, int | None]  # from this sample to that, and which of its frames count


class Ctc(TransformersRecogniser):
    """One decision per frame; frames of overlapping windows are joined before they are read as letters.

    That needs to know which samples a frame comes from, as the models with convolutions over the waveform tell. Those
    on spectrograms (wav2vec 2.0 BERT, Parakeet) are cut at pauses instead.
    """

    _language: str | None = None

    @property
    def _on_waveform(self) -> bool:
        return hasattr(self.model.config, "conv_stride") and hasattr(self.model, "_get_feat_extract_output_lengths")

    @property
    def _masks_frames(self) -> bool:
        """Whether the model itself tells which of its frames are padding (Parakeet, LASR, Granite Speech 5)."""
        return hasattr(self.model, "_get_output_attention_mask")

    def _padding_changes_nothing(self) -> bool:
        return (self._on_waveform or self._masks_frames) and super()._padding_changes_nothing()

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
        inputs = self._inputs(clips)
        logits = self.model(**inputs).logits
        if self._masks_frames and "attention_mask" in inputs:
            mask = self.model._get_output_attention_mask(inputs["attention_mask"], target_length=logits.shape[1])
            return [row[:count] for row, count in zip(logits, mask.sum(-1).tolist(), strict=True)]
        if not self._on_waveform:
            return list(logits)
        counts = self.model._get_feat_extract_output_lengths(_lengths(clips)).tolist()
        return [row[:count] for row, count in zip(logits, counts, strict=True)]

    def _text(self, parts: list[Any]) -> str:
        import torch

        logits = torch.cat(parts) if len(parts) > 1 else parts[0]
        if hasattr(self.processor, "decoder"):  # a language model over the letters, with pyctcdecode
            return self.processor.decode(logits.float().cpu().numpy()).text.strip()
        if self.confidence:
            return self._text_with_confidences(logits)
        special = {"skip_special_tokens": True} if self._masks_frames else {}
        return self.processor.decode(logits.argmax(-1).tolist(), **special).strip()

    def _text_with_confidences(self, logits: Any) -> str:
        """A word's confidence is the mean probability of its letters, over the frames that are not blank."""
        best, letters = logits.float().softmax(-1).max(-1)
        decoded = self.processor.decode(letters.tolist(), output_word_offsets=True)
        spelled = letters != self.processor.tokenizer.pad_token_id
        frame_s = self.model.config.inputs_to_logits_ratio / self.rate if self._on_waveform else None
        words = []
        for word in decoded.word_offsets:
            start, end = word["start_offset"], word["end_offset"]
            times = (None, None) if frame_s is None else (start * frame_s, end * frame_s)
            words.append((word["word"], float(best[start:end][spelled[start:end]].mean()), *times))
        return with_confidences(decoded.text.strip(), words)

    def check_confidence(self) -> None:
        """Refuse `confidence` where nothing tells which frames a word comes from."""
        if hasattr(self.processor, "decoder") or not hasattr(self.processor.tokenizer, "word_delimiter_token"):
            raise UserError(f"hf:{self.name}: does not tell which frames a word comes from; leave confidence out")

    def _speak(self, language: str | None) -> None:
        """MMS has a small adapter and an alphabet for each language; the others have one alphabet."""
        if not getattr(self.model.config, "adapter_attn_dim", None) or not language or language == self._language:
            return
        code = ISO_639_3.get(language, language)
        self.processor.tokenizer.set_target_lang(code)
        self.model.load_adapter(code)
        self._language = language


def _lengths(clips: list[Clip]) -> Any:
    import torch

    return torch.tensor([len(clip) for clip in clips])


WHISPER_S = 30.0
TIME_PRECISION_S = 0.02


class Whisper(TransformersRecogniser):
    """Always 30 s of input; longer clips with timestamps, one window after the other."""

    def _padding_changes_nothing(self) -> bool:
        return True

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        texts = [""] * len(clips)
        limit = int(WHISPER_S * self.rate)
        for long in (False, True):
            kind = [index for index, clip in enumerate(clips) if (len(clip) > limit) is long]
            for start in range(0, len(kind), self.batch_size):
                indices = kind[start : start + self.batch_size]
                answers = self._generate([clips[i] for i in indices], long, language)
                for index, text in zip(indices, answers, strict=True):
                    texts[index] = text if isinstance(text, Transcript) else text.strip()
        return texts

    def _generate(self, clips: list[Clip], long: bool, language: str | None) -> list[str]:
        how: Settings = {"truncation": False, "padding": "longest"} if long else {}
        inputs = self.processor(clips, sampling_rate=self.rate, return_tensors="pt", return_attention_mask=True, **how)
        if self.nbest and not long and (language or not self._multilingual):
            return self._generate_lists(inputs, language)
        settings: Settings = {"num_beams": self.beams}
        if self.terms:
            settings["prompt_ids"] = self._prompt_ids()
        if long:
            settings["return_timestamps"] = True
        if self._multilingual:
            settings.update(task="transcribe", language=language)
        if self.word_times and not long:
            settings |= {"return_token_timestamps": True, "return_dict_in_generate": True}
        generated = self.model.generate(**self._placed(inputs), **settings)
        if self.word_times and not long:
            return [self._timed(generated, row) for row in range(len(clips))]
        return self.processor.batch_decode(generated, skip_special_tokens=True)

    @property
    def _multilingual(self) -> bool:
        return getattr(self.model.generation_config, "is_multilingual", False)

    def _prompt_ids(self) -> Any:
        return self.processor.get_prompt_ids(", ".join(self.terms), return_tensors="pt").to(self.model.device)

    def _generate_lists(self, inputs: Any, language: str | None) -> list[str]:
        """By the plain beam search of transformers: Whisper's own `generate` gives the best beam of each list alone."""
        import torch
        from transformers.generation import GenerationMixin

        tokenizer = self.processor.tokenizer
        if self._multilingual:
            tokenizer.set_prefix_tokens(language=language, task="transcribe", predict_timestamps=False)
        prompt = torch.tensor([tokenizer.prefix_tokens], device=self.model.device)
        if self.terms:
            prompt = torch.cat([self._prompt_ids()[None], prompt], dim=1)
        features = self._placed(inputs)["input_features"]
        tokens = GenerationMixin.generate(
            self.model,
            features,
            decoder_input_ids=prompt.repeat(len(features), 1),
            num_beams=self.beams,
            num_return_sequences=self.nbest,
            do_sample=False,
        )[:, prompt.shape[1] :]
        texts = tokenizer.batch_decode(tokens, skip_special_tokens=True)
        return nbest_lists([text.strip() for text in texts], self.nbest)

    def _timed(self, generated: Any, row: int) -> str:
        """A transcript with the time of each word, by the weights of the cross-attention."""
        output = {name: generated[name][row : row + 1].cpu().numpy() for name in ("sequences", "token_timestamps")}
        text, more = self.processor.tokenizer._decode_asr(
            [{"tokens": output["sequences"], "token_timestamps": output["token_timestamps"]}],
            return_timestamps="word",
            return_language=False,
            time_precision=TIME_PRECISION_S,
        )
        words = ((chunk["text"].strip(), None, *chunk["timestamp"]) for chunk in more["chunks"])
        return with_confidences(text.strip(), words)

    def check_options(self) -> None:
        """Refuse what this Whisper cannot do, before any clip."""
        if self.word_times and not getattr(self.model.generation_config, "alignment_heads", None):
            raise UserError(
                f"hf:{self.name}: its generation_config.json has no alignment_heads, so it has no word times; take the "
                "file of the original model"
            )
        if self.word_times and (self.nbest or self.beams > 1):
            raise UserError("hf: word_times are those of greedy decoding; leave nbest and beams out")
        room = self.model.config.max_target_positions // 2 - 1
        if self.terms and (tokens := len(self._prompt_ids())) > room:
            raise UserError(f"{len(self.terms)} terms are {tokens} tokens; Whisper's prompt has room for {room}")
