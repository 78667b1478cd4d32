"""One adversarial config per severity: what `srb attack` does, as functions.

`make_configs` opens the model, fits a universal perturbation where the attack needs one, and exports the configs.
`transfer_matrices` does so for every proxy and then lets other models transcribe the results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from speech_robust_bench.attacks.attack_target import NEEDS_NO_MODEL, TargetOptions, open_target
from speech_robust_bench.attacks.batch_runner import BatchRunner
from speech_robust_bench.attacks.checks import check_sound, checker
from speech_robust_bench.attacks.clips import AttackClip, clips_of
from speech_robust_bench.attacks.cw import TARGETS
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.attacks.differentiable.ensemble import Ensemble
from speech_robust_bench.attacks.export import ConfigOwner, ExportedConfig, ExportOptions, export
from speech_robust_bench.attacks.gradient_loop import Attack, Attacked
from speech_robust_bench.attacks.language import LanguageFit
from speech_robust_bench.attacks.registry import TARGETED, TRANSFER, AttackOptions, check_severities, make_attack
from speech_robust_bench.attacks.transfer import Cell, TransferColumn, matrix, write_matrix
from speech_robust_bench.attacks.universal import Perturbation, UniversalFit, fit_key, refuse_overlap
from speech_robust_bench.builders.config_sources import open_data, select
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.builders.stored_config import StoredConfig
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import open_model, parse_spec

UNIVERSAL = ("universal", "language_universal")


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
    options: AttackOptions = field(default_factory=AttackOptions)
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
        """What is opened for an attack on these models."""
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
        if self.judge and self.attack != "transfer_cw":
            raise UserError("--judge is the model whose transcripts choose among the candidates of transfer_cw")
        if self.attack in TRANSFER:
            if not self.proxies or not self.models:
                raise UserError(
                    f"'{self.attack}' fits on --proxy models and scores on --model ones; "
                    "give both, each as often as needed"
                )
        elif self.attack not in NEEDS_NO_MODEL and len(self.models) != 1:
            raise UserError(f"'{self.attack}' attacks one model: --model hf:openai/whisper-tiny.en")


class Progress(Protocol):
    """What a caller may show while configs are made."""

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        """Begin a stage; the function that is returned reports (clips more, what there is to say)."""
        ...


class Silent:
    """Progress that is not shown, for callers from Python."""

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        return lambda clips, note: None


SILENT = Silent()


def make_configs(request: AttackRequest, progress: Progress = SILENT) -> list[ExportedConfig]:
    """Attack the clean config at every severity asked for, and write one config each."""
    request.check()
    return _make_configs(request, request.models, request.clean(), progress)[1]


def _make_configs(
    request: AttackRequest, specs: list[str], clean: StoredConfig, progress: Progress
) -> tuple[Any, list[ExportedConfig]]:
    """The opened target and the configs."""
    target_options = request.target(specs)
    target = open_target(target_options)
    workers = None
    if request.engine == "ray" and target is not None:
        from speech_robust_bench.attacks.ray_workers import Workers

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
    return checker(target, request.options.target or (list(TARGETS) if request.attack in TARGETED else []))


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
    if request.perturbation and request.attack in (*UNIVERSAL, "auto"):
        return Perturbation.load(request.perturbation)
    if request.attack not in UNIVERSAL:
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
    what = "success" if request.attack == "universal" else "loss"
    return fitted(
        _fit(request.attack, severity, request.options), view, dev, saved, lambda value: tick(1, f"{what} {value:.2f}")
    )


def _fit(name: str, severity: int, options: AttackOptions) -> UniversalFit | LanguageFit:
    snr_db = SCENARIOS[name].value(severity)
    assert snr_db is not None
    if name == "universal":
        return UniversalFit(snr_db, **options.given("epochs", "steps", "transcribe_every"))
    return LanguageFit(snr_db, options.target_language, **options.given("epochs"))


def fitted(
    fit: UniversalFit | LanguageFit, view: View, dev: list[AttackClip], saved: Path, tick: Callable[[float], None]
) -> Perturbation:
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


# --- transfer --------------------------------------------------------------------------------------------------------


def transfer_matrices(
    request: AttackRequest, progress: Progress = SILENT
) -> tuple[list[ExportedConfig], dict[Path, list[Cell]]]:
    """The configs fitted on each proxy, and per severity every model's success on each of them, by file written."""
    request.check()
    clean = request.clean()
    severities = check_severities(request.attack, request.severities)
    models = {parse_spec(spec).folder: open_model(spec, device=request.device) for spec in request.models}
    # What a model gets wrong by itself is nobody's success: the clean clips are the first column.
    columns = {severity: [TransferColumn("clean", [], clean)] for severity in severities}
    configs = []
    for proxy in request.proxies:
        specs = [spec.strip() for spec in proxy.split(" + ")]
        view, exported = _make_configs(request, specs, clean, progress)
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
        matrices[path] = matrix(of_severity, models, target, request.export.limit)
        write_matrix(path, matrices[path])
    return configs, matrices
