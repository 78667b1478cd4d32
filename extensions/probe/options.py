"""How a probe is trained: the options of `srb.train_probe` and `srb probe train`. The defaults are s3prl's for OOD-ASR,
apart from the early stop, which s3prl does not have.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.options import Options, above, at_least, option
from speech_robust_bench.core.records import Settings

BLSTM_LAYERS = {"linear": 0, "small": 1, "medium": 2, "large": 4}
UNITS = 1024


@dataclass(frozen=True, kw_only=True)
class Schedule(Options):
    """The optimisation of a probe."""

    steps: int = option(
        500_000, "training steps at most (default: 500000, as in s3prl)", metavar="N", check=at_least(1)
    )
    batch_size: int = option(16, "clips per step", metavar="N", check=at_least(1))
    seed: int = option(0, "seed of weights, order and masks")
    lr: float = option(1e-4, "learning rate of Adam (default: 0.0001)", check=above(0), advanced=True)
    warmup: int = option(
        0, "steps of linear warm-up (the paper: 8000 for HuBERT Large on SBCSAE)", check=at_least(0), advanced=True
    )
    clip_norm: float = 1.0
    spec_augment: bool = option(True, "do not mask frames in training", advanced=True)
    eval_every: int = option(2_000, "steps between tests", metavar="N", check=at_least(1), advanced=True)
    patience: int = option(
        10, "stop after N tests without a better dev WER", metavar="N", check=at_least(1), advanced=True
    )

    @property
    def settings(self) -> Settings:
        """The settings by name, as `probe.json` has them."""
        return {each.name: getattr(self, each.name) for each in fields(Schedule)}


@dataclass(frozen=True, kw_only=True)
class ProbeOptions(Schedule):
    """The schedule, the width of the head, and the perturbation of training clips."""

    train_augment: list[str] | None = option(
        None,
        "perturb training clips by these scenarios or categories (without any: by all)",
        metavar="SCENARIO",
        bare=[],
    )
    device: str = option("cpu", "cpu, cuda, cuda:1 (default: cpu)")
    revision: str = option("", "commit of the upstream on the Hub", advanced=True)
    units: int = option(UNITS, "units of the head in each direction", metavar="N", advanced=True)
    normalise: bool = option(False, "normalise each layer first, for large encoders", advanced=True)
    save_every: int = option(200, "steps between checkpoints", metavar="N", check=at_least(1), advanced=True)
    held_out: list[str] = option(
        [], "scenarios that --train-augment leaves out for the test", metavar="SCENARIO", advanced=True
    )
    augment_p: float = option(0.5, "share of perturbed clips", metavar="P", advanced=True)
    noise_dir: str | None = option(None, "noise recordings for --train-augment", metavar="FOLDER", advanced=True)
    rir_dir: str | None = option(None, "room impulse responses for --train-augment", metavar="FOLDER", advanced=True)
    cache_features: str | None = option(
        None, "keep the encoder's hidden states on the disk (large)", metavar="FOLDER", advanced=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.augment_p <= 1:
            raise UserError(f"augment_p must be from 0 to 1, not {self.augment_p}")
        if self.held_out and self.train_augment is None:
            raise UserError("held_out leaves scenarios out of train_augment: name what to train on")


@dataclass(frozen=True)
class HeadSettings:
    """The head; `normalise` brings every layer to mean 0 and variance 1 first, as the paper does for large models."""

    size: str = "medium"
    units: int = UNITS
    normalise: bool = False

    def __post_init__(self) -> None:
        if self.size not in BLSTM_LAYERS:
            raise UserError(f"no head '{self.size}'; {did_you_mean(self.size, BLSTM_LAYERS)}")
        if not 1 <= self.units <= 8192:
            raise UserError(f"units must be from 1 to 8192, not {self.units}")
