"""A front end before any recogniser: `front:rnnoise|moonshine`, or a chain: `front:wpe+rnnoise|moonshine`.

Does denoising help your recogniser? Often it hurts. Run it with and without, and `srb compare` says where.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass

from srb.core.errors import UserError, did_you_mean
from srb.models import front_ends
from srb.models.interface import Clip, Described, FrontEnd, Recogniser, open_model

EXAMPLE = "front:rnnoise|moonshine"


@dataclass
class Front(Described):
    """A recogniser that is given enhanced clips."""

    inner: Recogniser = None  # type: ignore[assignment]
    enhance: FrontEnd = None  # type: ignore[assignment]

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return self.inner.transcribe([self.enhance(clip, rate) for clip in clips], rate, language)

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
            clip = front_end(clip, rate)
        return clip

    return enhance


def open_front_end(name: str) -> FrontEnd:
    """The front end of that name, `kind` or `kind:target`."""
    kind, _, target = name.partition(":")
    known = [module.name for module in pkgutil.iter_modules(front_ends.__path__)]
    if kind not in known:
        raise UserError(f"no front end '{kind}'; {did_you_mean(kind, known)}")
    return importlib.import_module(f"{front_ends.__name__}.{kind}").load(target)
