"""SpeechBrain: `speechbrain:speechbrain/asr-crdnn-rnnlm-librispeech`, or a folder that `save_dir` of it left behind.

Encoder-decoder, encoder-only (CTC), streaming and Whisper models share one method, `transcribe_batch`, which takes
padded waveforms and their lengths as parts of the longest. It is given clips of one length together, so that padding
changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, resample
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.interface import Clip, Described, Recogniser, folder_revision, need, split_at_pauses

INSTALL = "pip install speechbrain"
LONGEST_S = 30.0
SHORTEST_S = 0.1
# The classes of `speechbrain.inference.ASR`, by the name that a model's files are loaded with
KINDS = ("EncoderDecoderASR", "EncoderASR", "WhisperASR", "StreamingASR")


@dataclass
class SpeechBrainRecogniser(Described):
    """A SpeechBrain model, given clips of one length at a time."""

    model: Any = None
    rate: int = RATE

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        shortest = int(SHORTEST_S * self.rate)
        ready = [resample(clip, rate, self.rate) for clip in clips]
        ready = [np.pad(clip, (0, max(0, shortest - len(clip)))) for clip in ready]
        cut = [split_at_pauses(clip, self.rate, LONGEST_S) for clip in ready]
        pieces = [(owner, piece) for owner, parts in enumerate(cut) for piece in parts]
        texts: dict[int, str] = {}
        for indices in self._same_length([piece for _, piece in pieces]):
            texts |= zip(indices, self._batch([pieces[index][1] for index in indices]), strict=True)
        return [
            " ".join(filter(None, (texts[index].strip() for index, (owner, _) in enumerate(pieces) if owner == clip)))
            for clip in range(len(clips))
        ]

    def _same_length(self, clips: list[Clip]) -> Iterator[list[int]]:
        order = sorted(range(len(clips)), key=lambda index: len(clips[index]))
        for _, same in groupby(order, key=lambda index: len(clips[index])):
            indices = list(same)
            for start in range(0, len(indices), self.batch_size):
                yield indices[start : start + self.batch_size]

    def _batch(self, clips: list[Clip]) -> list[str]:
        import torch

        with torch.no_grad():
            words = self.model.transcribe_batch(torch.from_numpy(np.stack(clips)), torch.ones(len(clips)))
        texts = words[0] if isinstance(words, tuple) else words  # with their tokens, for most classes
        return [text if isinstance(text, str) else " ".join(text) for text in texts]


def load(target: str, *, kind: str = "", device: str = "cpu", batch_size: int = 8, revision: str = "") -> Recogniser:
    """`speechbrain:<id or folder>`; `kind` is the class of `speechbrain.inference.ASR`, tried in turn if none."""
    asr = need("speechbrain.inference.ASR", "speechbrain", INSTALL)
    if not target:
        raise UserError("'speechbrain' needs a model: speechbrain:speechbrain/asr-crdnn-rnnlm-librispeech")
    if kind and kind not in KINDS:
        raise UserError(f"speechbrain: no class '{kind}'; there are: {', '.join(KINDS)}")
    folder = Path(target)
    more = {"revision": revision} if revision else {}
    model = _opened(asr, target, [kind] if kind else list(KINDS), {"run_opts": {"device": device}, **more})
    return SpeechBrainRecogniser(
        name=folder.resolve().name if folder.is_dir() else target,
        revision=folder_revision(folder, ("*.yaml", "*.ckpt", "*.json")) if folder.is_dir() else revision or None,
        options={"kind": type(model).__name__, "device": device, "batch_size": batch_size},
        batch_size=batch_size,
        model=model,
        rate=int(getattr(model.hparams, "sample_rate", RATE)),
    )


def _opened(asr: Any, target: str, kinds: list[str], how: Settings) -> Any:
    """The model as the first class whose parts its file has."""
    problems = []
    for kind in kinds:
        if not hasattr(asr, kind):
            continue
        try:
            model = getattr(asr, kind).from_hparams(source=target, **how)
        except (ValueError, KeyError, AttributeError) as error:  # it lacks a part that the class needs
            problems.append(f"{kind}: {str(error).strip().splitlines()[0] if str(error).strip() else error!r}")
            continue
        except OSError as error:
            raise UserError(f"speechbrain:{target}: {str(error).strip().splitlines()[0]}") from None
        missing = [name for name in getattr(model, "MODULES_NEEDED", ()) if name not in getattr(model, "mods", (name,))]
        if not missing:
            return model
        problems.append(f"{kind}: the model has no {missing[0]}")  # SpeechBrain itself would find out on the first clip
    raise UserError(f"speechbrain:{target}: not a recogniser that can be loaded ({'; '.join(problems)[:300]})")
