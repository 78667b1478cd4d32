"""`srb attack`: open the model, check the clips, fit a perturbation if the attack has one, export the configs.

An attack runs on a model with gradients, on a recogniser that only transcribes, or on no model at all. Batches go one
after the other, or to the workers of a Ray cluster with one loaded model each. What becomes of a clip does not depend
on its batch, so a batch that does not fit into a GPU's memory is cut in two; how many seconds of padded audio fit is
learnt from the peak of the first batch, and from any that did not fit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import torch

from speech_robust_bench.attacks.clips import AttackClip, clips_of, norm2
from speech_robust_bench.attacks.export import ConfigOwner, ExportedConfig, ExportOptions, export
from speech_robust_bench.attacks.gradient_loop import Attack, Attacked
from speech_robust_bench.attacks.registry import AttackPlan, AttackSettings, attack_row, check_severities, make_attack
from speech_robust_bench.attacks.universal import Perturbation, fit_key, refuse_overlap
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.builders.config_sources import open_data, select
from speech_robust_bench.builders.configs import StoredConfig
from speech_robust_bench.core.engines import RayActors
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.options import Settings
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

    def __init__(self, settings: TargetOptions) -> None:
        super().__init__(open_target(settings))


class Workers:
    """As many attackers as asked for, or as there are GPUs."""

    def __init__(self, settings: TargetOptions, count: int | None) -> None:
        self._actors = RayActors(BatchAttacker, (settings,), count)

    def map(self, attack: Attack, batches: Iterable[list[AttackClip]]) -> Iterator[list[Attacked]]:
        """The batches attacked, in the order in which they are done; only as many are read as are worked on."""
        yield from self._actors.map_unordered("run", ((attack, batch) for batch in batches))

    def close(self) -> None:
        self._actors.close()


def check_sound(clip: AttackClip) -> None:
    """A silent clip has no SNR, so no bound."""
    if not norm2(clip.samples):
        raise UserError("the clip is silent, so no SNR bounds a perturbation of it")


def checker(view: View, targets: list[str] | None = None) -> Callable[[AttackClip], None]:
    """A check of one clip against what a model can take and write."""
    for target in targets or []:
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
    models: list[str] = field(default_factory=list)
    proxies: list[str] = field(default_factory=list)
    data: str = "srb"
    out: Path = Path("srb")
    severities: list[int] | None = None
    name: str | None = None
    options: AttackSettings = field(default_factory=AttackSettings)
    export: ExportOptions = field(default_factory=ExportOptions)
    device: str | None = None
    precision: str | None = None
    compiled: bool = False
    eot: int | None = None
    threads: int | None = None
    judge: str | None = None
    engine: str = "local"
    workers: int | None = None
    dev: str | None = None
    dev_data: str | None = None
    dev_limit: int = 500
    perturbation: Path | None = None

    def target(self, specs: list[str]) -> TargetOptions:
        """The models that an attack opens."""
        shared = {key: getattr(self, key) for key in ("device", "precision", "compiled", "eot", "threads", "judge")}
        return TargetOptions(self.attack, tuple(specs), **shared)

    def clean(self) -> StoredConfig:
        """The clean config that is attacked."""
        return _open_config(self.data, self.config)

    def check(self) -> None:
        """Refuse what cannot work, before anything is opened."""
        check_severities(self.attack, self.severities)
        if (self.export.limit is not None and self.export.limit < 1) or self.export.batch_size < 1:
            raise UserError("--limit and --batch-size are 1 or more")
        if self.options.eps is not None and self.attack == "pgd" and self.options.norm != "linf":
            raise UserError("--eps is the radius of --norm linf; an l2 ball is given by the severity's SNR")
        row = attack_row(self.attack)
        if self.judge and "judge" not in row.options:
            raise UserError("--judge is the model whose transcripts choose among the candidates of transfer_cw")
        if row.join:
            if not self.proxies or not self.models:
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
    target_options = request.target(specs)
    target = open_target(target_options)
    workers = None
    if request.engine == "ray" and target is not None:
        workers = Workers(target_options, request.workers)
    try:
        configs = []
        for severity in check_severities(request.attack, request.severities):
            perturbation = _perturbation(request, severity, target, clean, progress)
            attack = make_attack(request.attack, severity, request.options, perturbation, request.judge)
            label = f"{request.attack} sev{severity}" if severity else request.attack
            tick = progress.stage(label, len(clean.rows[: request.export.limit]))
            configs.append(
                export(
                    clean,
                    attack,
                    _owner(request, target_options, target),
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
            yield from workers.map(attack, batches)
            return
        runner = BatchRunner(target)
        for clips in batches:
            yield runner.run(attack, clips)

    return run


def _check(request: AttackRequest, target: Any) -> Callable[[AttackClip], None]:
    """A function that refuses clips which the attack or the model cannot take."""
    if not isinstance(target, View):
        return check_sound
    return checker(target, request.options.target or list(attack_row(request.attack).targets))


def _owner(request: AttackRequest, options: TargetOptions, target: Any) -> ConfigOwner:
    if target is None:
        return ConfigOwner()
    recogniser = target.recogniser if isinstance(target, View) else target
    name = request.name or "-".join(parse_spec(spec).folder for spec in options.specs)
    safe = target.pads_safely if isinstance(target, View) else True
    return ConfigOwner(name, " + ".join(options.specs), recogniser.revision, safe, options.unusual)


def _open_config(where: str, name: str) -> StoredConfig:
    data = open_data(where)
    (exact,) = select(data, [name], where)[:1]
    return data.config(exact)


# --- universal perturbations -----------------------------------------------------------------------------------------


def _perturbation(request: AttackRequest, severity: int, view: Any, clean: StoredConfig, progress: Progress) -> Any:
    """The perturbation of a universal attack: loaded, or fitted on other clips and saved beside the configs."""
    row = attack_row(request.attack)
    if request.perturbation and "perturbation" in row.options:
        return Perturbation.load(request.perturbation)
    if not row.fit:
        return None
    if not request.dev:
        raise UserError(
            f"'{request.attack}' is fitted on clips that are not tested: --dev CONFIG, or --perturbation FILE"
        )
    dev = list(clips_of(_open_config(request.dev_data or request.data, request.dev), request.dev_limit))
    refuse_overlap(dev, clips_of(clean, request.export.limit))
    label = f"{request.attack}_sev{severity}" if severity else request.attack
    saved = request.out / "perturbations" / f"{label}-{request.name or parse_spec(request.models[0]).folder}.npz"
    tick = progress.stage(f"fitting {label} on {len(dev)} clips", None)
    fit = load_object(row.fit)(AttackPlan(request.attack, severity, request.options))
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
