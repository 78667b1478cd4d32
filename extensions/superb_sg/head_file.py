"""A trained head as a folder: `head.json` says what it is and how it was trained. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Literal

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, above, at_least, option
from speech_robust_bench.core.records import NULL, Record, Settings, Whole, read
from speech_robust_bench.core.result_records import ScoreValue

RECORD = "head.json"
Task = Literal["enhancement", "separation", "translation", "conversion"]
TASKS: tuple[Task, ...] = ("enhancement", "separation", "translation", "conversion")
Part = Literal["train", "dev", "test"]


@dataclass(frozen=True)
class Schedule:
    """How a head is trained. The learning rate rises over `warmup` steps, then follows `decay`."""

    steps: int
    batch_size: int  # clips; 0: as many as `batch_frames` allows
    lr: float
    units: int
    dropout: float
    eval_every: int
    seed: int = 0
    optimiser: Literal["Adam", "AdamW"] = "AdamW"
    clip_norm: float = 1.0
    warmup: int = 0
    decay: Literal["none", "linear", "sqrt"] = "none"
    batch_frames: int = 0  # of the encoder in a padded batch, at most
    accumulate: int = 1  # batches a step

    def rate(self, step: int) -> float:
        """The learning rate of a step, counted from 0, as s3prl's schedulers have it.

        With "sqrt" it falls at the end of the warm-up by the square root of the steps so far: s3prl does not scale it.
        """
        if step < self.warmup:
            return self.lr * step / self.warmup
        if self.decay == "linear":
            return self.lr * max(0.0, (self.steps - step) / max(1, self.steps - self.warmup))
        return self.lr / np.sqrt(max(step, self.warmup, 1)) if self.decay == "sqrt" else self.lr


# s3prl's configs: enhancement_stft, separation_stft, speech_translation and a2o-vc-vcc2020 (config_taco2_ar).
PUBLISHED: dict[Task, Schedule] = {
    "enhancement": Schedule(150_000, 8, 1e-4, 896, 0.5, 1250),
    "separation": Schedule(150_000, 8, 1e-4, 896, 0.5, 2000),
    "translation": Schedule(
        32_000,
        0,
        1e-3,
        512,
        0.1,
        2000,
        optimiser="Adam",
        clip_norm=10.0,
        warmup=10_000,
        decay="sqrt",
        batch_frames=10_000,
        accumulate=8,
    ),
    "conversion": Schedule(10_000, 6, 1e-4, 1024, 0.5, 1000, warmup=4000, decay="linear"),
}


@dataclass(frozen=True)
class SuperbOptions(Options):
    """How a head is trained; what is left out is s3prl's."""

    steps: int | None = option(None, "training steps (default: s3prl's)", metavar="N", check=at_least(1))
    batch_size: int | None = option(None, "clips a batch (default: s3prl's)", metavar="N", check=at_least(1))
    lr: float | None = option(None, "learning rate", check=above(0), advanced=True)
    units: int | None = option(None, "width of the head (default: s3prl's)", metavar="N", check=at_least(1))
    dropout: float | None = option(None, "dropout of the head", advanced=True)
    warmup: int | None = option(None, "steps of warm-up", metavar="N", check=at_least(0), advanced=True)
    decay: str | None = option(
        None, "of the learning rate: none, linear or sqrt", choices=("none", "linear", "sqrt"), advanced=True
    )
    accumulate: int | None = option(None, "batches a step", metavar="N", check=at_least(1), advanced=True)
    eval_every: int | None = option(None, "steps between tests", metavar="N", check=at_least(1), advanced=True)
    seed: int = option(0, "seed of weights and order", advanced=True)

    def schedule(self, task: Task) -> Schedule:
        """The schedule of a task: the published one, with what was asked for."""
        asked = {each.name: getattr(self, each.name) for each in fields(self)}
        return replace(PUBLISHED[task], **{name: value for name, value in asked.items() if value is not None})


class TaskScores(Record, frozen=True, kw_only=True):
    """Means over the clips of a test, and what their intervals are over."""

    clips: Whole
    resampled: str = ""
    pesq: ScoreValue | None = NULL
    stoi: ScoreValue | None = NULL
    si_sdr_db: ScoreValue | None = NULL
    si_sdri_db: ScoreValue | None = NULL
    bleu: ScoreValue | None = NULL
    l1: ScoreValue | None = NULL  # of the normalised log mel spectrogram
    mcd_db: ScoreValue | None = NULL
    mcd_clips: Whole | None = NULL  # those with a recording of the target speaker to compare with
    wer: ScoreValue | None = NULL
    accepted: ScoreValue | None = NULL  # % of clips
    no_verdict: str | None = NULL  # why the WER says nothing

    def best_by(self, task: Task) -> float:
        """The score by which the best weights are chosen: the greater, the better."""
        if task == "conversion":
            return -np.inf if self.l1 is None else -self.l1.value
        chosen = {"enhancement": self.pesq, "separation": self.si_sdri_db, "translation": self.bleu}[task]
        return -np.inf if chosen is None else chosen.value


class Evaluation(Record, frozen=True, kw_only=True):
    """A test on the dev set after some steps."""

    step: Whole
    loss: float
    scores: TaskScores


class HeadRecord(Record, frozen=True, kw_only=True):
    """What `head.json` holds."""

    schema: Whole = 2
    task: Task
    upstream: str
    revision: str | None = NULL
    layers: Whole
    width: Whole
    schedule: Settings
    data: Settings
    characters: str = ""  # that a translation can be written with
    evaluations: list[Evaluation]
    layer_weights: list[float]

    @property
    def best(self) -> Evaluation:
        """The test whose weights were kept."""
        return max(self.evaluations, key=lambda each: each.scores.best_by(self.task))


def as_settings(schedule: Schedule) -> Settings:
    """A schedule as `head.json` holds it."""
    return asdict(schedule)


def read_head(folder: Path) -> HeadRecord:
    """The record of a trained head."""
    path = folder / RECORD
    if not path.is_file():
        raise UserError(f"{folder}: is no trained head; `srb superb train` makes one")
    return read(path, HeadRecord)
