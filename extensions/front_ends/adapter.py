"""A front end before any recogniser: `front:rnnoise|moonshine`, or a chain: `front:wpe+rnnoise|moonshine`.

Denoising often hurts: run a recogniser with and without it, and `srb compare` shows where.

A separator gives a clip for each talker. Each is transcribed, and the prediction joins their texts, as in `good morning
<sc> is it you`. Clips with two talkers are scored permutation-invariantly, all others as one text.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import load_object, registered
from speech_robust_bench.core.rows import join_talkers
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    FrontEnd,
    Recogniser,
    SomeFailed,
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
