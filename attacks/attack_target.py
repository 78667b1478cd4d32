"""What an attack runs on: a model with gradients, a recogniser that only transcribes, or no model at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from speech_robust_bench.attacks.registry import attack_row
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.interface import open_model


@dataclass(frozen=True)
class TargetOptions:
    """Which models an attack opens, and how gradients are taken from them."""

    attack: str
    specs: tuple[str, ...]
    device: str | None = None
    precision: str | None = None
    compiled: bool = False
    eot: int | None = None
    threads: int | None = None
    judge: str | None = None  # of transfer_cw: the model whose transcripts choose the candidate

    @property
    def unusual(self) -> Settings:
        """The settings that change gradients, where they are not the usual ones: they belong in every row."""
        settings = {"eot": self.eot, "precision": self.precision, "compiled": self.compiled or None}
        return {key: value for key, value in settings.items() if value is not None}


def open_target(options: TargetOptions) -> Any:
    """The opened target of an attack: a `View`, a `Recogniser`, or None."""
    import torch

    from speech_robust_bench.attacks.views.open_view import open_view

    if options.threads:
        torch.set_num_threads(options.threads)
    row = attack_row(options.attack)
    if row.needs == "nothing":
        return None
    recognisers = [open_model(spec, device=options.device) for spec in options.specs]
    if row.needs == "transcripts":
        return recognisers[0]
    dtype = getattr(torch, options.precision) if options.precision else None
    views = [open_view(recogniser, eot=options.eot, precision=dtype) for recogniser in recognisers]
    judge = open_model(options.judge, device=options.device) if options.judge else None
    view = load_object(row.join)(views, judge) if row.join else views[0]
    if options.compiled:
        view.compile()
    return view
