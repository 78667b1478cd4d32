"""The attacks by name: the options that they share, and how each is made at a severity of the scenario table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from speech_robust_bench.attacks.clips import Bound, Norm
from speech_robust_bench.attacks.gradient_loop import Attack
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError

TRANSFER = ("transfer", "transfer_cw")  # fitted on proxies, scored on other models
TARGETED = ("cw", "psychoacoustic", "transfer_cw")  # they make the model write one of some targets


@dataclass
class AttackSettings:
    """The settings of all attacks together; None means the attack's own default."""

    norm: Norm = "l2"
    eps: float | None = None
    regularisation: float | None = None
    steps: int | None = None
    step: float | None = None
    restarts: int | None = None
    random_start: bool = True
    target: list[str] = field(default_factory=list)
    target_language: str = "sr"
    stop: float | None = None
    transcribe_every: int | None = None
    epochs: int | None = None
    dropout: bool = True
    seed: str = ""

    def given(self, *names: str) -> dict[str, Any]:
        """The settings that were given, by name."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}


def make_attack(
    name: str, severity: int, options: AttackSettings, perturbation: Any = None, judge: str | None = None
) -> Attack:
    """The attack of that name at a severity; `perturbation` is the fitted one that a universal attack adds."""
    from speech_robust_bench.attacks.pgd import Pgd
    from speech_robust_bench.attacks.universal import Universal
    from speech_robust_bench.extensions.attacks.auto import Auto
    from speech_robust_bench.extensions.attacks.black_box import Genetic, Kenansville
    from speech_robust_bench.extensions.attacks.cw import TARGETS, CarliniWagner
    from speech_robust_bench.extensions.attacks.language import Language, LanguageUniversal
    from speech_robust_bench.extensions.attacks.psychoacoustic import Psychoacoustic
    from speech_robust_bench.extensions.attacks.transfer import Transfer, TransferCw

    snr_db = SCENARIOS[name].value(severity)
    at_snr = Bound("l2", snr_db) if snr_db is not None else None
    common = options.given("steps", "step", "stop", "transcribe_every", "seed")
    if options.target:
        common["target"] = options.target[0]
    if name in TARGETED:
        chosen = options.given("eps", "steps", "transcribe_every", "regularisation")
        targets = tuple(options.target) or TARGETS
        if name == "transfer_cw":
            return TransferCw(targets, dropout=options.dropout, judge=judge, **chosen)
        cw = CarliniWagner(targets=targets, **chosen)
        return cw if name == "cw" else Psychoacoustic(cw, **options.given("steps", "transcribe_every"))
    assert at_snr is not None
    if name == "auto":
        return Auto(at_snr, severity, perturbation, **options.given("steps", "seed"))
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
    universal = {"universal": Universal, "language_universal": LanguageUniversal}[name]
    return universal(at_snr, perturbation, severity)


def check_severities(name: str, severities: list[int] | None) -> list[int]:
    """The severities asked for, or all; checked before anything is opened."""
    scenario = SCENARIOS[name]
    chosen = severities or list(scenario.levels)
    for severity in chosen:
        scenario.value(severity)
    if not scenario.graded and severities:
        raise UserError(f"'{name}' has no severities; leave --severity out")
    return chosen
