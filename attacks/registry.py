"""The attacks by name: what each needs, which options it has, and how it is made at a severity of the scenario table.

The paper's two are here; extensions have more in `ATTACKS`, a dict from names to `module:row`. A row names its
functions instead of importing them, so that the help of `srb attack` and the check of a submission need no torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.extensions import load_object, registered, registered_objects
from speech_robust_bench.core.options import Options, Settings, at_least, option

if TYPE_CHECKING:
    from speech_robust_bench.attacks.clips import Bound
    from speech_robust_bench.attacks.pgd import Attack
    from speech_robust_bench.builders.scenario import Scenario

GRADIENT = ("eot", "precision", "compile")  # options of attacks that take gradients
FITTED = ("dev", "dev_data", "dev_limit", "perturbation")  # of those that fit one perturbation for all clips


@dataclass(frozen=True)
class AttackRow:
    """An attack: its help and options, what it needs of a model, and the functions that make and run it."""

    name: str
    help: str
    make: str  # module:function of an `AttackPlan`, which returns the attack
    options: tuple[str, ...]  # fields of `srb.AttackOptions` that its help shows
    advanced: tuple[str, ...] = ()  # those that --help-all adds
    example: str = ""
    needs: Literal["gradients", "transcripts", "nothing"] = "gradients"
    targets: tuple[str, ...] = ()  # what a targeted attack makes the model write, unless told
    fit: str = ""  # module:function of an `AttackPlan`: how its one perturbation is fitted
    join: str = ""  # module:function of (views, judge): proxies as one view; with it, models are scored, not attacked
    standard: Any = None  # the settings of the attacks that are compared on the leaderboard, as a dataclass
    matrices: str = ""  # module:function of (request, progress): its configs, and a table of models and proxies by file


@dataclass(frozen=True)
class StandardPgd:
    """Per utterance: 100 steps of 0.4 of the radius, a random start, the worst of every twentieth candidate."""

    steps: int = 100
    step: float = 0.4
    random_start: bool = True
    restarts: int = 1
    transcribe_every: int = 20
    target: str | None = None
    stop: float | None = None


@dataclass(frozen=True)
class StandardUniversal:
    """One perturbation for all: at most 10 epochs of 20 steps a clip."""

    epochs: int = 10
    learning_rate: float = 0.001
    seconds: float = 18.0
    clip_radius: float = 0.003
    cer: float = 0.7
    enough: float = 1.0
    transcribe_every: int = 1


PGD, UNIVERSAL = StandardPgd(), StandardUniversal()
UNIVERSAL_STEPS = 20  # at most, per clip and epoch
EOT_DRAWS = 16  # per gradient of a randomised model (Olivier, 7.3.1)
AT_LEAST = ("steps", "restarts", "epochs", "queries")
AT_MOST = ("transcribe_every",)

OURS = (
    AttackRow(
        "pgd",
        "projected gradient descent within an SNR, clip by clip (default: 100 steps)",
        "speech_robust_bench.attacks.pgd:make_pgd",
        ("model", "severity", "steps", "norm", "eps", "restarts", "target", "seed"),
        ("step", "random_start", "stop", "transcribe_every", *GRADIENT),
        "en_clean --model hf:openai/whisper-tiny.en --severity 1 2 3 4",
        standard=PGD,
    ),
    AttackRow(
        "universal",
        "one perturbation for all clips, fitted on dev clips (default: 20 steps a clip)",
        "speech_robust_bench.attacks.universal:make_universal",
        ("model", "severity", *FITTED, "epochs", "steps"),
        ("transcribe_every", *GRADIENT),
        "en_clean --model hf:facebook/wav2vec2-base-960h --dev en-dev_clean --severity 3",
        fit="speech_robust_bench.attacks.universal:universal_fit",
        standard=UNIVERSAL,
    ),
)


def attack_rows() -> dict[str, AttackRow]:
    """All attacks by name: those of SRB, then those of extensions."""
    ours = {row.name: row for row in OURS}
    return {**ours, **{name: row for name, row in registered_objects("ATTACKS").items() if name not in ours}}


def attack_row(name: str) -> AttackRow:
    """The attack of that name; an unknown one is answered with the nearest."""
    ours = {row.name: row for row in OURS}
    if name in ours:
        return ours[name]
    known = registered("ATTACKS")
    if name not in known:
        raise UserError(f"no attack '{name}'; {did_you_mean(name, {**ours, **known})}")
    return load_object(known[name])


def standard_attacks() -> list[str]:
    """The attacks of the leaderboard."""
    return [name for name, row in attack_rows().items() if row.standard is not None]


def weakness(attack: str, settings: Settings) -> str | None:
    """How an attack's settings are milder than, or other than, the standard ones; None if they are not."""
    for name, standard in asdict(attack_row(attack).standard).items():
        value = settings.get(name)
        if name in AT_LEAST or name in AT_MOST:
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                return f"'{name}' is {value!r}, the standard has {standard}"
            if (value < standard) if name in AT_LEAST else (value > standard):
                return f"'{name}' is {value}, the standard has {standard}"
        elif value != standard:
            return f"'{name}' is {value!r}, the standard has {standard!r}"
    if settings.get("precision") is not None:
        return "gradients were taken in mixed precision"
    draws = settings.get("eot")
    if draws is not None and (not isinstance(draws, int) or draws < EOT_DRAWS):
        return f"'eot' is {draws!r}, the standard has {EOT_DRAWS}"
    return None


@dataclass(frozen=True)
class AttackOptions(Options):
    """The options of all attacks together; each attack takes some, and None means its own default."""

    proxy: Sequence[str] = option((), "model to fit on, or several: 'M + M'", metavar="M", repeat=True)
    judge: str | None = option(None, "model that chooses the candidate (default: the first proxy)", metavar="M")
    dropout: bool = option(True, "run the proxies without dropout")
    severity: Sequence[int] | None = option(None, "severities; 1 is the mildest (default: all)", metavar="N")
    steps: int | None = option(None, "maximum number of steps", metavar="N")
    step: float | None = option(None, "step size, as a fraction of the radius", metavar="F")
    norm: Literal["l2", "linf"] = option("l2", "norm of the ball", choices=("l2", "linf"))
    eps: float | None = option(None, "radius of the linf ball, instead of the severity's")
    regularisation: float | None = option(
        None,
        "weight of the perturbation's norm (cw; default: 0.25) or energy (transfer_cw; default: 10)",
        metavar="C",
    )
    restarts: int | None = option(None, "number of random starts; the best one counts", metavar="N")
    random_start: bool = option(True, "start at the clip itself (FGSM, with --steps 1 --step 1)")
    target: Sequence[str] = option((), "target text of a targeted attack", metavar="TEXT", repeat=True)
    target_language: str = option("sr", "language to be detected", metavar="CODE")
    stop: float | None = option(
        None, "end a clip at this WER (1 is 100 %; with --target: to the target)", metavar="WER"
    )
    transcribe_every: int | None = option(
        None, "steps between two transcriptions of the candidate (0: only the last)", metavar="N"
    )
    epochs: int | None = option(None, "passes over the dev clips", metavar="N")
    eot: int | None = option(None, "draws per gradient of a smooth: model (default: 16; 0: one)", metavar="N")
    dev: str | None = option(None, "config of other clips to fit on", metavar="CONFIG")
    dev_data: str | None = option(None, "where the dev config is (default: --data)", metavar="DATA")
    dev_limit: int = option(500, "dev clips to fit on", metavar="N")
    perturbation: str | None = option(
        None, "fitted perturbation (.npz) to use, or for auto to start from", metavar="FILE"
    )
    seed: str = option("", "seed, any text; another seed draws other random numbers", metavar="TEXT")
    precision: Literal["bfloat16", "float16"] | None = option(
        None, "mixed precision, for speed on GPUs", choices=("bfloat16", "float16")
    )
    compile: bool = option(False, "compile the model with torch.compile")
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")
    name: str | None = option(None, "name of the model in config names (default: its own)")
    batch_size: int = option(8, "clips at a time; does not change the results", metavar="N", check=at_least(1))
    threads: int | None = option(None, "threads of torch on a CPU", metavar="N")
    engine: Literal["local", "ray"] = option(
        "local", "ray spreads batches over GPUs and machines", choices=("local", "ray")
    )
    workers: int | None = option(None, "models, with --engine ray (default: GPUs, or 1)", metavar="N")
    on_error: Literal["stop", "skip"] = option(
        "stop", "what to do about clips that fail the checks", choices=("stop", "skip")
    )
    overwrite: bool = option(False, "replace configs that were made with other settings")

    def given(self, *names: str) -> Settings:
        """The options that were given, by name."""
        return {name: getattr(self, name) for name in names if getattr(self, name) is not None}

    @property
    def unusual(self) -> Settings:
        """The options that change gradients, where they are not the usual ones: they belong in every row."""
        return self.given("eot", "precision") | ({"compiled": True} if self.compile else {})


@dataclass(frozen=True)
class AttackPlan:
    """What an attack is made from: its settings at one severity."""

    attack: str
    severity: int
    settings: AttackOptions
    perturbation: Any = None  # the fitted one, for an attack that adds it or begins with it

    @cached_property
    def snr_db(self) -> float:
        value = _scenario(self.attack).value(self.severity)
        assert value is not None
        return value

    @property
    def bound(self) -> Bound:
        """The L2 ball of the severity's SNR."""
        from speech_robust_bench.attacks.clips import Bound

        return Bound("l2", self.snr_db)

    @property
    def loop_settings(self) -> Settings:
        """Settings that every gradient loop has."""
        common = self.settings.given("steps", "step", "stop", "transcribe_every", "seed")
        return {**common, "target": self.settings.target[0]} if self.settings.target else common


def make_attack(name: str, severity: int, settings: AttackOptions, perturbation: Any = None) -> Attack:
    """The attack of that name at a severity; `perturbation` is the fitted one that a universal attack adds."""
    return load_object(attack_row(name).make)(AttackPlan(name, severity, settings, perturbation))


def check_severities(name: str, severities: Sequence[int] | None) -> list[int]:
    """The severities asked for, or all; checked before anything is opened."""
    scenario = _scenario(name)
    chosen = list(severities or scenario.levels)
    for severity in chosen:
        scenario.value(severity)
    if not scenario.graded and severities:
        raise UserError(f"'{name}' has no severities; leave --severity out")
    return chosen


def _scenario(name: str) -> Scenario:
    from speech_robust_bench.builders.scenarios import SCENARIOS

    return SCENARIOS[name]
