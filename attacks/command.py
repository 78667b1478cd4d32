"""What `srb attack` does with its options: open the models, make the attack of each severity, export, and sum up."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from srb.attacks.clips import Bound, Clip, Norm
from srb.attacks.loop import Attack
from srb.builders.audio import replacing
from srb.builders.errors import UserError
from srb.builders.scenarios import SCENARIOS
from srb.models.data import Config
from srb.models.interface import Recogniser, open_model

NEEDS_NO_GRADIENT = ("genetic", "kenansville")


@dataclass
class Options:
    """The options of one command, as far as the attacks read them. None means the attack's own default."""

    norm: Norm = "l2"
    eps: float | None = None
    steps: int | None = None
    step: float | None = None
    restarts: int | None = None
    random_start: bool = True
    target: list[str] = field(default_factory=list)
    target_language: str = "sr"
    stop: float | None = None
    hear_every: int | None = None
    epochs: int | None = None
    seed: str = ""

    def given(self, *names: str) -> dict[str, Any]:
        """The settings that were given, by name."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def open_target(
    specs: list[str],
    attack: str,
    device: str | None = None,
    precision: str | None = None,
    compiled: bool = False,
    eot: int | None = None,
    threads: int | None = None,
) -> Any:
    """What an attack runs on: a view with gradients, a bare recogniser for those that only ask, or nothing at all."""
    import torch

    from srb.attacks.transfer import together
    from srb.attacks.views import open_view

    if threads:
        torch.set_num_threads(threads)
    if attack == "kenansville":
        return None
    opened = [open_model(spec, device=device) for spec in specs]
    if attack in NEEDS_NO_GRADIENT:
        return opened[0]
    dtype = getattr(torch, precision) if precision else None
    view = together([open_view(one, eot=eot, precision=dtype) for one in opened])
    if compiled:
        view.compile()
    return view


def make_attack(name: str, severity: int, options: Options, perturbation: Any = None) -> Attack:
    """The attack of that name at a severity."""
    from srb.attacks.cw import TARGETS, CarliniWagner
    from srb.attacks.genetic import Genetic
    from srb.attacks.kenansville import Kenansville
    from srb.attacks.language import Language, LanguageUniversal
    from srb.attacks.pgd import Pgd
    from srb.attacks.transfer import Transfer
    from srb.attacks.universal import Universal

    snr_db = SCENARIOS[name].value(severity)
    at_snr = Bound("l2", snr_db) if snr_db is not None else None
    common = options.given("steps", "step", "stop", "hear_every", "seed")
    if options.target:
        common["target"] = options.target[0]
    if name == "cw":
        chosen = options.given("eps", "steps", "hear_every")
        return CarliniWagner(targets=tuple(options.target) or TARGETS, **chosen)
    assert at_snr is not None
    if name == "pgd":
        bound = at_snr if options.norm == "l2" else Bound("linf", None if options.eps else snr_db, options.eps)
        return Pgd(bound, severity, random_start=options.random_start, **common, **options.given("restarts"))
    if name == "transfer":
        return Transfer(at_snr, severity, **common)
    if name == "genetic":
        generations: dict[str, Any] = {"generations": options.steps} if options.steps else {}
        return Genetic(at_snr, severity, **generations, **options.given("stop", "seed"))
    if name == "language":
        return Language(at_snr, options.target_language, severity=severity, **options.given("steps", "step", "seed"))
    if name == "kenansville":
        return Kenansville(at_snr, severity)
    kind = {"universal": Universal, "language_universal": LanguageUniversal}[name]
    return kind(at_snr, perturbation, severity)


def fitted(
    name: str, severity: int, options: Options, view: Any, dev: list[Clip], saved: Path, tick: Callable[[float], None]
) -> Any:
    """The perturbation of a universal attack, fitted on dev clips and saved; or as it was saved by the same fit."""
    from srb.attacks.language import LanguageFit
    from srb.attacks.universal import Fit, Perturbation, fit_key

    snr_db = SCENARIOS[name].value(severity)
    assert snr_db is not None
    fit: Fit | LanguageFit
    if name == "universal":
        fit = Fit(snr_db, **options.given("epochs", "steps", "hear_every"))
    else:
        fit = LanguageFit(snr_db, options.target_language, **options.given("epochs"))
    if saved.is_file():
        found = Perturbation.load(saved)
        if found.about.get("fit") == fit_key(asdict(fit), view, dev):
            return found
    saved.parent.mkdir(parents=True, exist_ok=True)
    unfinished = saved.with_name(f".{saved.name}")
    found = fit(view, dev, tick, unfinished)
    found.save(saved)
    unfinished.unlink(missing_ok=True)
    return found


def clips_of(config: Config, limit: int | None = None) -> Iterator[Clip]:
    """The clips of a config, decoded as they are asked for."""
    wanted = {row.position for row in config.rows[:limit]}
    corpus = config.about["corpus"]
    for window in config.windows(wanted):
        for row in window.rows:
            yield Clip(row.id, window.decode(row), row.text, row.language, corpus)


def matrix(
    columns: dict[str, tuple[list[Recogniser], Config]],
    models: dict[str, Recogniser],
    target: str | None,
    limit: int | None,
) -> list[Any]:
    """Every model on every column's config: success rates, related pairs marked."""
    from srb.attacks.transfer import Cell, related, score
    from srb.builders.audio import to_pcm16

    cells = []
    for proxy, (proxies, config) in columns.items():
        clips = [(clip, to_pcm16(clip.samples)) for clip in clips_of(config, limit)]
        for name, model in models.items():
            success, wer = score(model, clips, target)
            ties = [tie for one in proxies if (tie := related(model, one))]
            cells.append(Cell(name, proxy, success, wer, "same" if "same" in ties else ties[0] if ties else None))
    return cells


def write_matrix(path: Path, cells: list[Any]) -> None:
    """The matrix as JSON."""
    with replacing(path) as part:
        part.write_text(json.dumps([asdict(cell) for cell in cells], indent=1))


def check_severities(name: str, severities: list[int] | None) -> list[int]:
    """The severities asked for, or all; checked before anything is opened."""
    scenario = SCENARIOS[name]
    chosen = severities or list(scenario.levels)
    for severity in chosen:
        scenario.value(severity)
    if not scenario.graded and severities:
        raise UserError(f"'{name}' has no severities; leave --severity out")
    return chosen
