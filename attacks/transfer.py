"""Do perturbations fitted on some models fool others? (Olivier, chapter 6.)

A column of the matrix is one proxy, or several whose losses are summed; a row is a model that transcribes the
result. Where model and proxy are the same or share pretrained weights the pair is marked: that is no black-box attack.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.attacks.clips import AttackClip, Bound, clips_of, to_float, word_errors
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.gradient_loop import Attacked
from speech_robust_bench.attacks.pgd import Pgd
from speech_robust_bench.builders.stored_config import StoredConfig
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.files import replacing
from speech_robust_bench.models.interface import Recogniser

BIG_ENOUGH = 256  # values in a tensor that two models have by descent, not by chance


@dataclass(frozen=True)
class Transfer:
    """PGD on the proxies' summed losses; exported as the config of the proxies."""

    bound: Bound
    severity: int = 0
    steps: int = 100
    step: float = 0.4
    target: str | None = None
    transcribe_every: int = 20
    stop: float | None = None
    seed: str = ""
    name: str = field(default="transfer", init=False)

    def describe(self) -> dict[str, Any]:
        return asdict(self)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        settings = {key: getattr(self, key) for key in ("steps", "step", "target", "transcribe_every", "stop")}
        return Pgd(self.bound, self.severity, seed=f"transfer{self.seed}", **settings).run(view, clips)


@dataclass(frozen=True)
class Cell:
    """One model under one column's perturbations."""

    model: str
    proxy: str
    success: float
    wer: float
    related: str | None  # "same", "shared weights", or None for a true transfer


def score(
    model: Recogniser, clips: Sequence[tuple[AttackClip, np.ndarray]], targets: Sequence[str | None] = ()
) -> tuple[float, float]:
    """Mean success and WER of a model on perturbed clips: min(WER, 1), or max(1 - WER to the target, 0)."""
    errors, successes = [], []
    for (clip, pcm), target in zip(clips, targets or [None] * len(clips), strict=True):
        hypotheses = model.transcribe([to_float(pcm)], 16_000, clip.language)
        error = word_errors([clip.text], hypotheses, clip.language)[0]
        errors.append(error)
        if target is None:
            successes.append(min(error, 1.0))
        else:
            successes.append(max(1 - word_errors([target], hypotheses, clip.language)[0], 0.0))
    return float(np.mean(successes)), float(np.mean(errors))


def related(model: Recogniser, proxy: Recogniser) -> str | None:
    """Whether two models are one, or have a tensor of weights in common (fine-tuning freezes the first layers)."""
    if model is proxy or (model.revision is not None and (model.name, model.revision) == (proxy.name, proxy.revision)):
        return "same"
    return "shared weights" if _weights(model) & _weights(proxy) else None


def _weights(recogniser: Recogniser) -> set[str]:
    if hasattr(recogniser, "inner"):  # a defence around another
        return _weights(recogniser.inner)
    owner = getattr(recogniser, "owner", recogniser)
    model: Any = getattr(owner, "model", owner)
    if not hasattr(model, "parameters"):
        return set()
    # Positions by formula (Whisper's sinusoids) and constant tensors (a bias of zeros) are nobody's training.
    trained = (weight for name, weight in model.named_parameters() if "embed_positions" not in name)
    tensors = (weight.detach().float().cpu().numpy() for weight in trained if weight.numel() >= BIG_ENOUGH)
    return {
        hashlib.sha256(np.ascontiguousarray(tensor).data).hexdigest()
        for tensor in tensors
        if tensor.min() < tensor.max()
    }


@dataclass(frozen=True)
class TransferColumn:
    """What one column of the matrix is made of: the proxies that the perturbations were fitted on, and the config."""

    label: str
    proxies: list[Recogniser]
    config: StoredConfig


def matrix(
    columns: Sequence[TransferColumn], models: dict[str, Recogniser], target: str | None, limit: int | None
) -> list[Cell]:
    """Every model on every column's config: success rates, related pairs marked."""
    cells = []
    # The clean clips are judged by the targets that they had elsewhere.
    rows = [row for column in columns for row in column.config.rows]
    targets = {row.id: row.facts["target"] for row in rows if "target" in row.facts}
    for column in columns:
        clips = [(clip, to_pcm16(clip.samples)) for clip in clips_of(column.config, limit)]
        wanted = [target or targets.get(clip.id) for clip, _ in clips]
        for name, model in models.items():
            success, wer = score(model, clips, wanted)
            ties = [tie for proxy in column.proxies if (tie := related(model, proxy))]
            tie = "same" if "same" in ties else ties[0] if ties else None
            cells.append(Cell(name, column.label, success, wer, tie))
    return cells


def write_matrix(path: Path, cells: Sequence[Cell]) -> None:
    """The matrix as JSON."""
    with replacing(path) as part:
        part.write_text(json.dumps([asdict(cell) for cell in cells], indent=1))


def as_table(cells: Sequence[Cell]) -> str:
    """The matrix in plain text, models down and proxies across; `=` marks one and the same, `~` shared weights."""
    proxies = list(dict.fromkeys(cell.proxy for cell in cells))
    models = list(dict.fromkeys(cell.model for cell in cells))
    marks = {"same": "=", "shared weights": "~", None: " "}
    shown = {(cell.model, cell.proxy): f"{100 * cell.success:5.1f}{marks[cell.related]}" for cell in cells}
    width = max(len(name) for name in (*models, "model"))
    widths = [max(len(proxy), 6) for proxy in proxies]
    lines = ["  ".join(["model".ljust(width), *(p.rjust(w) for p, w in zip(proxies, widths, strict=True))])]
    for model in models:
        cells_here = (shown[model, p].rjust(w) for p, w in zip(proxies, widths, strict=True))
        lines.append("  ".join([model.ljust(width), *cells_here]))
    return "\n".join([*lines, "success in %; = the proxy itself, ~ shares weights with it"])
