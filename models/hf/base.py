"""Loads models by transformers: without its chatter, and whatever is wrong with a model is one line.

What all of transformers' recognisers share: preparing clips, placing tensors, and batches that change no text.

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
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    folder_revision,
    need,
    out_of_memory,
    split_at_pauses,
    with_alternatives,
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
