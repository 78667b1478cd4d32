"""A front end before any recogniser: `front:rnnoise|moonshine`, or a chain: `front:wpe+rnnoise|moonshine`.

Does denoising help your recogniser? Often it hurts. Run it with and without, and `srb compare` says where.

A separator gives a clip for each talker. Each is transcribed, and the prediction is all their texts, `good morning <sc>
is it you`; where two talk at once they are scored permutation-invariantly, elsewhere as one text.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass

import numpy as np

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import registered
from speech_robust_bench.core.rows import join_talkers
from speech_robust_bench.models.interface import Clip, Described, FrontEnd, Recogniser, SomeFailed, open_model

EXAMPLE = "front:rnnoise|moonshine"


@dataclass
class Front(Described):
    """A recogniser that is given enhanced clips."""

    inner: Recogniser = None  # type: ignore[assignment]
    enhance: FrontEnd = None  # type: ignore[assignment]

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        enhanced = [self.enhance(clip, rate) for clip in clips]
        try:
            texts: list[str | Exception] = [
                *self.inner.transcribe([stream for clip in enhanced for stream in streams(clip)], rate, language)
            ]
        except SomeFailed as failed:
            texts = failed.outcomes
        of_streams = iter(texts)
        return SomeFailed.raise_if_failed([_joined([next(of_streams) for _ in streams(clip)]) for clip in enhanced])

    def close(self) -> None:
        self.inner.close()


def load(target: str, *, device: str = "") -> Recogniser:
    """`front:<front end>[+<front end>...]|<model>`; options after `?` are the model's."""
    names, bar, model = target.partition("|")
    if not bar or not names or not model:
        raise UserError(f"'front:{target}' names no front end and model; write {EXAMPLE}")
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
            parts = [streams(front_end(stream, rate)) for stream in streams(clip)]
            clip = parts[0][0] if clip.ndim == 1 and len(parts[0]) == 1 else np.concatenate(parts)
        return clip

    return enhance


def _joined(texts: list[str | Exception]) -> str | Exception:
    """The texts of one clip's streams as one, or what went wrong with one of them."""
    failed = next((text for text in texts if isinstance(text, Exception)), None)
    return failed or (texts[0] if len(texts) == 1 else join_talkers(*map(str, texts)))


def streams(clip: Clip) -> Clip:
    """What a front end gave as an array (talkers, samples)."""
    return np.atleast_2d(clip)


def open_front_end(name: str) -> FrontEnd:
    """The front end of that name, `kind` or `kind:target`."""
    kind, _, target = name.partition(":")
    known = registered("FRONT_ENDS")
    if kind not in known:
        raise UserError(f"no front end '{kind}'; {did_you_mean(kind, known)}")
    return importlib.import_module(known[kind]).load(target)
