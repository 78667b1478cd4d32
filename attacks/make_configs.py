"""`srb attack`: open the model, check the clips, fit a perturbation if the attack has one, export the configs.

An attack runs on a model with gradients, on a recogniser that only transcribes, or on no model at all. Batches go one
after the other, or to the workers of a Ray cluster with one loaded model each. What becomes of a clip does not depend
on its batch, so a batch that does not fit into a GPU's memory is cut in two; how many seconds of padded audio fit is
learnt from the peak of the first batch, and from any that did not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch

from speech_robust_bench.attacks.clips import AttackClip, clips_of, norm2
from speech_robust_bench.attacks.export import ConfigOwner, ExportedConfig, ExportOptions, export
from speech_robust_bench.attacks.pgd import Attack, Attacked
from speech_robust_bench.attacks.registry import AttackOptions, AttackPlan, attack_row, check_severities, make_attack
from speech_robust_bench.attacks.universal import Perturbation, fit_key, refuse_overlap
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.builders.config_sources import open_data, select
from speech_robust_bench.builders.configs import StoredConfig
from speech_robust_bench.core.engines import RayActors
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.models.interface import open_model, parse_spec

HEADROOM = 0.9  # of the memory that a plan uses: allocators leave gaps


def padded_s(clips: Sequence[AttackClip]) -> float:
    """Seconds of audio of a batch, all clips being as long as the longest."""
    return len(clips) * max(clip.seconds for clip in clips)


class BatchRunner:
    """An opened target of attacks (a view, a recogniser or nothing) and what is known of its memory."""

    def __init__(self, target: Any) -> None:
        self.target = target
        self.most_s = math.inf  # seconds of padded audio that fit
        self._began = False

    def run(self, attack: Attack, clips: list[AttackClip]) -> list[Attacked]:
        """The clips, attacked, in as many parts as memory asks for."""
        if not self._began and isinstance(self.target, View):
            self.target.check(clips)
        waiting, done = [clips], []
        while waiting:
            part = waiting.pop(0)
            if padded_s(part) > self.most_s and len(part) > 1:
                waiting[:0] = _halves(part)
                continue
            try:
                done += attack.run(self.target, part)
            except torch.OutOfMemoryError:
                waiting[:0] = self._smaller(part)
                continue
            if not self._began:
                self._learn(part)
                self._began = True
        return done

    def _smaller(self, part: list[AttackClip]) -> list[list[AttackClip]]:
        if len(part) == 1:
            raise UserError(
                f"{part[0].id}: its {part[0].seconds:.1f} s do not fit into the memory of {self.target.device}; "
                "try --precision bfloat16, another --device, or shorter clips"
            )
        if torch.cuda.is_available():
            torch.cuda.empty_cache()
        self.most_s = min(self.most_s, padded_s(part) / 2)
        return _halves(part)

    def _learn(self, part: list[AttackClip]) -> None:
        device = torch.device(getattr(self.target, "device", None) or "cpu")
        if device.type == "cuda":
            peak, whole = torch.cuda.max_memory_allocated(device), torch.cuda.mem_get_info(device)[1]
            self.most_s = min(self.most_s, planned_s(padded_s(part), peak, whole))


def planned_s(seconds: float, peak_bytes: int, whole_bytes: int) -> float:
    """How many seconds fit into memory, by one measurement; weights count as growing, to be on the safe side."""
    return max(seconds, seconds * HEADROOM * whole_bytes / max(peak_bytes, 1))


def _halves(clips: list[AttackClip]) -> list[list[AttackClip]]:
    middle = len(clips) // 2
    return [clips[:middle], clips[middle:]]


class BatchAttacker(BatchRunner):
    """Opens a model of its own; a call is one batch."""

    def __init__(self, attack: str, specs: Sequence[str], options: AttackOptions) -> None:
        super().__init__(open_target(attack, specs, options))


def check_sound(clip: AttackClip) -> None:
    """A silent clip has no SNR, so no bound."""
    if not norm2(clip.samples):
        raise UserError("the clip is silent, so no SNR bounds a perturbation of it")


def checker(view: View, targets: Sequence[str] = ()) -> Callable[[AttackClip], None]:
    """A check of one clip against what a model can take and write."""
    for target in targets:
        try:
            view.spell(target)
        except UserError as reason:
            raise UserError(f"target '{target}': {reason}") from None

    def check(clip: AttackClip) -> None:
        check_sound(clip)
        if clip.seconds > view.longest_s:
            raise UserError(
                f"the clip lasts {clip.seconds:.1f} s and {view.recogniser.name} takes {view.longest_s:g} s"
            )
        view.spell(clip.text)

    return check


@dataclass(frozen=True)
class AttackRequest:
    """All that one `srb attack` asks for."""

    attack: str
    config: str
    models: list[str]
    data: str
    out: Path
    limit: int | None
    options: AttackOptions

    @property
    def export(self) -> ExportOptions:
        """How the configs are written."""
        options = self.options
        return ExportOptions(self.limit, options.batch_size, options.on_error == "skip", options.overwrite)

    def clean(self) -> StoredConfig:
        """The clean config that is attacked."""
        return _open_config(self.data, self.config)

    def check(self) -> None:
        """Refuse what cannot work, before anything is opened."""
        check_severities(self.attack, self.options.severity)
        if self.limit is not None and self.limit < 1:
            raise UserError("--limit is 1 or more")
        if self.options.eps is not None and self.attack == "pgd" and self.options.norm != "linf":
            raise UserError("--eps is the radius of --norm linf; an l2 ball is given by the severity's SNR")
        row = attack_row(self.attack)
        if self.options.judge and "judge" not in row.options:
            raise UserError("--judge is the model whose transcripts choose among the candidates of transfer_cw")
        if row.join:
            if not self.options.proxy or not self.models:
                raise UserError(
                    f"'{self.attack}' fits on --proxy models and scores on --model ones; "
                    "give both, each as often as needed"
                )
        elif row.needs != "nothing" and len(self.models) != 1:
            raise UserError(f"'{self.attack}' attacks one model: --model hf:openai/whisper-tiny.en")


class Progress(Protocol):
    """What a caller may show while configs are made."""

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        """Begin a stage; the function that is returned reports (clips more, message)."""
        ...


class Silent:
    """Progress that is not shown, for callers from Python."""

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        return lambda clips, note: None


SILENT = Silent()


def make_configs(request: AttackRequest, progress: Progress = SILENT) -> list[ExportedConfig]:
    """Attack the clean config at every severity asked for, and write one config each."""
    request.check()
    return configs_and_target(request, request.models, request.clean(), progress)[1]


def configs_and_target(
    request: AttackRequest, specs: list[str], clean: StoredConfig, progress: Progress
) -> tuple[Any, list[ExportedConfig]]:
    """The opened target and the configs."""
    opening = request.attack, tuple(specs), request.options
    target = open_target(*opening)
    workers = None
    if request.options.engine == "ray" and target is not None:
        workers = RayActors(BatchAttacker, opening, request.options.workers)
    try:
        configs = []
        for severity in check_severities(request.attack, request.options.severity):
            perturbation = _perturbation(request, severity, target, clean, progress)
            attack = make_attack(request.attack, severity, request.options, perturbation)
            label = f"{request.attack} sev{severity}" if severity else request.attack
            tick = progress.stage(label, len(clean.rows[: request.limit]))
            configs.append(
                export(
                    clean,
                    attack,
                    _owner(request, specs, target),
                    request.out,
                    _runner(attack, target, workers),
                    replace(request.export, check=_check(request, target)),
                    _success_reporter(tick),
                )
            )
        return target, configs
    finally:
        if workers is not None:
            workers.close()


def _success_reporter(tick: Callable[[int, str], None]) -> Callable[[int, float], None]:
    return lambda clips, success: tick(clips, f"success so far {100 * success:.0f} %")


def _runner(attack: Attack, target: Any, workers: Any) -> Callable[[Iterable[list[AttackClip]]], Iterator]:
    """A function that attacks batches: here, or on Ray's workers."""

    def run(batches: Iterable[list[AttackClip]]) -> Iterator[list[Attacked]]:
        if workers is not None:
            yield from workers.map_unordered("run", ((attack, batch) for batch in batches))
            return
        runner = BatchRunner(target)
        for clips in batches:
            yield runner.run(attack, clips)

    return run


def _check(request: AttackRequest, target: Any) -> Callable[[AttackClip], None]:
    """A function that refuses clips which the attack or the model cannot take."""
    if not isinstance(target, View):
        return check_sound
    return checker(target, request.options.target or attack_row(request.attack).targets)


def _owner(request: AttackRequest, specs: Sequence[str], target: Any) -> ConfigOwner:
    if target is None:
        return ConfigOwner()
    recogniser = target.recogniser if isinstance(target, View) else target
    name = request.options.name or "-".join(parse_spec(spec).folder for spec in specs)
    safe = target.pads_safely if isinstance(target, View) else True
    return ConfigOwner(name, " + ".join(specs), recogniser.revision, safe, request.options.unusual)


def _open_config(where: str, name: str) -> StoredConfig:
    data = open_data(where)
    (exact,) = select(data, [name], where)[:1]
    return data.config(exact)


# --- universal perturbations -----------------------------------------------------------------------------------------


def _perturbation(request: AttackRequest, severity: int, view: Any, clean: StoredConfig, progress: Progress) -> Any:
    """The perturbation of a universal attack: loaded, or fitted on other clips and saved beside the configs."""
    row, options = attack_row(request.attack), request.options
    if options.perturbation and "perturbation" in row.options:
        return Perturbation.load(Path(options.perturbation))
    if not row.fit:
        return None
    if not options.dev:
        raise UserError(
            f"'{request.attack}' is fitted on clips that are not tested: --dev CONFIG, or --perturbation FILE"
        )
    dev = list(clips_of(_open_config(options.dev_data or request.data, options.dev), options.dev_limit))
    refuse_overlap(dev, clips_of(clean, request.limit))
    label = f"{request.attack}_sev{severity}" if severity else request.attack
    saved = request.out / "perturbations" / f"{label}-{options.name or parse_spec(request.models[0]).folder}.npz"
    tick = progress.stage(f"fitting {label} on {len(dev)} clips", None)
    fit = load_object(row.fit)(AttackPlan(request.attack, severity, options))
    return fitted(fit, view, dev, saved, lambda value: tick(1, f"{fit.reports} {value:.2f}"))


class Fit(Protocol):
    """How one perturbation for all clips is fitted: a dataclass of its settings, and what it reports of an epoch."""

    reports: ClassVar[str]
    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __call__(
        self, view: View, dev: Sequence[AttackClip], tick: Callable[[float], None] = ..., place: Path | None = ...
    ) -> Perturbation: ...


def fitted(fit: Fit, view: View, dev: list[AttackClip], saved: Path, tick: Callable[[float], None]) -> Perturbation:
    """A perturbation fitted on dev clips and saved; or as it was saved by the same fit before."""
    if saved.is_file():
        known = Perturbation.load(saved)
        if known.about.get("fit") == fit_key(asdict(fit), view, dev):
            return known
    saved.parent.mkdir(parents=True, exist_ok=True)
    unfinished = saved.with_name(f".{saved.name}")
    perturbation = fit(view, dev, tick, unfinished)
    perturbation.save(saved)
    unfinished.unlink(missing_ok=True)
    return perturbation


def open_target(attack: str, specs: Sequence[str], options: AttackOptions) -> Any:
    """The opened target of an attack: a `View`, a `Recogniser`, or None."""
    import torch

    from speech_robust_bench.attacks.views.open_view import open_view

    if options.threads:
        torch.set_num_threads(options.threads)
    row = attack_row(attack)
    if row.needs == "nothing":
        return None
    recognisers = [open_model(spec, device=options.device) for spec in specs]
    if row.needs == "transcripts":
        return recognisers[0]
    dtype = getattr(torch, options.precision) if options.precision else None
    views = [open_view(recogniser, eot=options.eot, precision=dtype) for recogniser in recognisers]
    judge = open_model(options.judge, device=options.device) if options.judge else None
    view = load_object(row.join)(views, judge) if row.join else views[0]
    if options.compile:
        view.compile()
    return view
