"""A trained head as a folder: `head.json` says what it is and how it was trained. Nothing here needs torch."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, above, at_least, option
from speech_robust_bench.core.records import NULL, Record, Settings, Whole, read
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.superb_sg.mixtures import Task

RECORD = "head.json"


@dataclass(frozen=True)
class MaskOptions(Options):
    """How a head is trained; the defaults are s3prl's."""

    steps: int = option(150_000, "training steps", metavar="N", check=at_least(1))
    batch_size: int = option(8, "mixtures a step", metavar="N", check=at_least(1))
    lr: float = option(1e-4, "learning rate of AdamW", check=above(0), advanced=True)
    units: int = option(896, "units a direction of the BLSTM", metavar="N", check=at_least(1))
    dropout: float = option(0.5, "dropout of the head", advanced=True)
    eval_every: int = option(2_000, "steps between tests", metavar="N", check=at_least(1), advanced=True)
    seed: int = option(0, "seed of weights and order")


class TaskScores(Record, frozen=True, kw_only=True):
    """Means over the clips of a test, and what their intervals are over."""

    clips: Whole
    resampled: str = ""
    pesq: ScoreValue | None = NULL
    stoi: ScoreValue | None = NULL
    si_sdr_db: ScoreValue | None = NULL
    si_sdri_db: ScoreValue | None = NULL

    def best_by(self, task: Task) -> float:
        """The score by which the best weights are chosen."""
        chosen = self.pesq if task == "enhancement" else self.si_sdri_db
        return -np.inf if chosen is None else chosen.value


class Evaluation(Record, frozen=True, kw_only=True):
    """A test on the dev set after some steps."""

    step: Whole
    loss: float
    scores: TaskScores


class HeadRecord(Record, frozen=True, kw_only=True):
    """What `head.json` holds."""

    schema: Whole = 1
    task: Task
    upstream: str
    revision: str | None = NULL
    layers: Whole
    width: Whole
    schedule: Settings
    data: Settings
    evaluations: list[Evaluation]
    layer_weights: list[float]

    @property
    def best(self) -> Evaluation:
        """The test whose weights were kept."""
        return max(self.evaluations, key=lambda each: each.scores.best_by(self.task))


def read_head(folder: Path) -> HeadRecord:
    """The record of a trained head."""
    path = folder / RECORD
    if not path.is_file():
        raise UserError(f"{folder}: is no trained head; `srb superb train` makes one")
    return read(path, HeadRecord)
