"""Do perturbations fitted on some models (proxies) fool others? (Olivier, chapter 6.)

The losses of several proxies are summed. A column of the matrix is the proxies of one attack, a row a model that
transcribes the result. A model that is a proxy, or shares pretrained weights with one, is marked: that is no black-box
attack.

`transfer` is PGD. `transfer_cw` is targeted (6.3.1 and D.2.2): SGD on the signs of the gradient of loss + c |delta|,
with the proxies' dropout on, so that the perturbation does not fit one set of weights alone. Another model is the
judge: the candidate whose transcript by the judge is nearest to the target is kept.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, clips_of, to_float, word_errors
from speech_robust_bench.attacks.export import ExportedConfig
from speech_robust_bench.attacks.make_configs import SILENT, AttackRequest, Progress, configs_and_target
from speech_robust_bench.attacks.pgd import (
    Attacked,
    BestCandidates,
    Pgd,
    attacked_clips,
    descend,
    outcomes,
    prepare,
)
from speech_robust_bench.attacks.registry import AttackPlan, check_severities
from speech_robust_bench.attacks.views.base import View, WrappedView
from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import StoredConfig
from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.options import Settings
from speech_robust_bench.extensions.attacks.targeted import TargetedInBall, closest, penalised, targeted_settings
from speech_robust_bench.models.interface import Recogniser, open_model, parse_spec


@dataclass
class Ensemble(View):
    """Several recognisers as one: the sum of their losses (Olivier, 6.3.1). Transcripts are those of the first."""

    views: list[View] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.pads_safely = all(view.pads_safely for view in self.views)
        self.longest_s = min(view.longest_s for view in self.views)

    @property
    def device(self) -> str:
        return self.views[0].device

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        return self._sum(lambda view, own: view.gradient(waves.to(view.device), own), batch)

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self._sum(lambda view, own: (view.values(waves.to(view.device), own),), batch)[0]

    def spell(self, text: str) -> str:
        for view in self.views:
            view.spell(text)
        return text

    def check(self, clips: Sequence[AttackClip]) -> None:
        for view in self.views:
            view.check(clips)

    def _sum(self, function: Callable[[View, AttackBatch], tuple[Tensor, ...]], batch: AttackBatch) -> Any:
        parts = []
        for view in self.views:
            own = replace(batch, texts=[view.spell(text) for text in batch.texts], right_tokens=[])
            parts.append([part.to(self.device) for part in function(view, own)])
        return tuple(torch.stack(same).sum(0) for same in zip(*parts, strict=True))


def joined(views: Sequence[View], judge: Recogniser | None = None) -> View:
    """Several proxies as one view; one alone stays as it is."""
    return views[0] if len(views) == 1 else Ensemble(views[0].recogniser, views=list(views))


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

    def describe(self) -> Settings:
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


@dataclass(frozen=True)
class TransferCw(TargetedInBall):
    """Settings of the attack; the defaults are Olivier's (D.2.2), in the loop of robust_speech."""

    eps: float = 0.015
    learning_rate: float = 0.0005
    steps: int = 10_000
    regularisation: float = 10.0
    transcribe_every: int = 10
    dropout: bool = True
    judge: str | None = None  # as it was asked for; the model itself comes with the view
    severity: int = 0
    name: str = field(default="transfer_cw", init=False)

    def run(self, view: View, clips: list[AttackClip]) -> list[Attacked]:
        before = view.transcribe([clip.samples for clip in clips], clips[0].language)
        goals = [closest(clip.text, self.targets) for clip in clips]
        texts = [view.spell(goal) for goal in goals]
        waves, batch = prepare(view, clips, texts, [clip.rng(self.name, 0) for clip in clips])
        delta = torch.zeros_like(waves)
        judged = BestCandidates(view, clips, self.bound, goals, targeted=True, every=self.transcribe_every)

        def update(here: Tensor, slope: Tensor, losses: Tensor, which: list[int]) -> Tensor:
            moved = here - self.learning_rate * penalised(slope, here, self.regularisation)
            return moved.clamp(-self.eps, self.eps)

        trained = DropoutView(view.recogniser, inner=view) if self.dropout else view
        taken = descend(trained, waves, batch, delta, update, self.steps, judged.watch)
        if unseen := [index for index, steps in enumerate(taken) if steps % self.transcribe_every or not steps]:
            judged.consider(delta, unseen)
        pcms, after = judged.best_of_each()
        return attacked_clips(self, view, clips, pcms, texts, outcomes(clips, before, after, goals), taken)


@dataclass
class DropoutView(WrappedView):
    """Another view with the dropout of its models on; a clip's draws come from its own RNG."""

    def gradient(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        # Clip by clip: the masks of a batch would depend on who is in it.
        losses, slopes = torch.zeros(len(waves), device=waves.device), torch.zeros_like(waves)
        devices = [waves.device] if waves.device.type == "cuda" else []
        for index, (length, rng) in enumerate(zip(batch.lengths.tolist(), batch.rngs, strict=True)):
            with torch.random.fork_rng(devices), dropout_on(self.inner):
                torch.manual_seed(int(rng.integers(2**31)))
                loss, slope = self.inner.gradient(waves[index : index + 1, :length], batch.select([index]))
            losses[index], slopes[index, :length] = loss[0].to(losses), slope[0].to(slopes)
        return losses, slopes

    def values(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        return self.inner.values(waves, batch)


@contextmanager
def dropout_on(view: View) -> Iterator[None]:
    """The dropout layers of a view's models drop; everything else stays as it is when transcribing."""
    layers = [layer for model in _models(view) for layer in model.modules() if isinstance(layer, torch.nn.Dropout)]
    before = [layer.training for layer in layers]
    try:
        for layer in layers:
            layer.train()
        yield
    finally:
        for layer, training in zip(layers, before, strict=True):
            layer.train(training)


def _models(view: View) -> list[torch.nn.Module]:
    if isinstance(view, Ensemble):
        return [model for part in view.views for model in _models(part)]
    if isinstance(view, WrappedView):
        return _models(view.inner)
    model = getattr(view, "model", None) or getattr(view, "module", None)
    return [model] if isinstance(model, torch.nn.Module) else []


def judged_by(views: Sequence[View], judge: Recogniser | None) -> View:
    """The proxies as one view whose transcripts are the judge's; the first proxy's own without one."""
    return Ensemble(judge or views[0].recogniser, views=list(views))


def make_transfer(plan: AttackPlan) -> Transfer:
    return Transfer(plan.bound, plan.severity, **plan.loop_settings)


def make_transfer_cw(plan: AttackPlan) -> TransferCw:
    return TransferCw(dropout=plan.settings.dropout, judge=plan.settings.judge, **targeted_settings(plan))


def transfer_matrices(
    request: AttackRequest, progress: Progress = SILENT
) -> tuple[list[ExportedConfig], dict[Path, str]]:
    """The configs fitted on each proxy, and per severity a table of every model's success on each, by file written."""
    request.check()
    clean = request.clean()
    severities = check_severities(request.attack, request.options.severity)
    models = {parse_spec(spec).folder: open_model(spec, device=request.options.device) for spec in request.models}
    # What a model gets wrong by itself is nobody's success: the clean clips are the first column.
    columns = {severity: [TransferColumn("clean", [], clean)] for severity in severities}
    configs = []
    for proxy in request.options.proxy:
        specs = [spec.strip() for spec in proxy.split(" + ")]
        view, exported = configs_and_target(request, specs, clean, progress)
        configs += exported
        views = view.views if isinstance(view, Ensemble) else [view]
        label = " + ".join(parse_spec(spec).folder for spec in specs)
        for severity, config in zip(severities, exported, strict=True):
            attacked = open_data(str(request.out)).config(config.name)
            columns[severity].append(TransferColumn(label, [proxy_view.recogniser for proxy_view in views], attacked))
    target = request.options.target[0] if request.options.target else None
    matrices = {}
    for severity, of_severity in columns.items():
        path = request.out / f"{request.attack}{f'_sev{severity}' if severity else ''}.json"
        cells = matrix(of_severity, models, target, request.limit)
        write_matrix(path, cells)
        matrices[path] = as_table(cells)
    return configs, matrices
