"""The training that the heads of all tasks share: s3prl's optimisers and schedules, tests, checkpoints.

What a step does is a function of the seed and its number, and a checkpoint holds weights and moments, so that a
training that was interrupted goes on as if it had not been.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked_folder, replacing, write_atomically
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import decode, to_json
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.probe.upstream import Upstream, open_upstream
from speech_robust_bench.extensions.superb_sg.head_file import (
    RECORD,
    Evaluation,
    HeadRecord,
    Schedule,
    Task,
    TaskScores,
    as_settings,
    read_head,
)
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import Estimate, ratio

WEIGHTS, CHECKPOINT = "head.pt", "checkpoint.pt"
KEPT_BYTES = 2_000_000_000  # features that are kept in memory
Progress = Callable[[str, int], Callable[[int], None]]


class KeptFeatures:
    """What was computed of clips, by their names, while there is room."""

    def __init__(self) -> None:
        self.of: dict[str, tuple[Tensor, ...]] = {}
        self.bytes = 0

    def get(self, name: str, compute: Callable[[], tuple[Tensor, ...]]) -> tuple[Tensor, ...]:
        if name in self.of:
            return self.of[name]
        features = compute()
        size = sum(each.numel() * each.element_size() for each in features)
        if self.bytes + size <= KEPT_BYTES:
            self.of[name], self.bytes = features, self.bytes + size
        return features


class Mix(nn.Module):
    """The weighted sum of an encoder's layers; the weights are learned."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(layers))

    def forward(self, states: Tensor) -> Tensor:
        """(layer, frame, width) to (frame, width)."""
        return torch.einsum("l,lfw->fw", self.logits.softmax(0), states)


@dataclass
class HeadTraining(ABC):
    """One head under training; a task says what its head, its loss and its test are."""

    folder: Path
    task: Task
    upstream: Upstream
    train: Sequence[Any]
    dev: Sequence[Any]
    schedule: Schedule
    data: Settings
    device: str = "cpu"
    done: int = field(default=0, init=False)
    evaluations: list[Evaluation] = field(default_factory=list, init=False)
    measure: ClassVar[str]

    def __post_init__(self) -> None:
        if not self.train or not self.dev:
            raise UserError(f"{len(self.train)} clips to train on and {len(self.dev)} to test on: both are needed")
        self.kept = KeptFeatures()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.schedule.seed)
            self.head = self.new_head().to(self.device)
        kind = torch.optim.Adam if self.schedule.optimiser == "Adam" else torch.optim.AdamW
        self.optimiser = kind(self.head.parameters(), lr=self.schedule.lr)

    @abstractmethod
    def new_head(self) -> Any:
        """The head before training, with `mix` over the layers of the encoder."""

    @abstractmethod
    def loss(self, batch: Sequence[Any]) -> Tensor:
        """The loss of some clips."""

    @abstractmethod
    def score(self) -> TaskScores:
        """The test on the dev set."""

    @property
    def characters(self) -> str:
        """The characters that the head writes, where it writes."""
        return ""

    def batch(self, rng: np.random.Generator) -> list[Any]:
        """The clips of one batch."""
        places = rng.choice(len(self.train), min(self.schedule.batch_size, len(self.train)), replace=False)
        return [self.train[int(place)] for place in places]

    def settings(self) -> Settings:
        """All that the weights depend on."""
        upstream = {"upstream": self.upstream.spec, "revision": self.upstream.revision}
        return {"task": self.task, **upstream, "schedule": as_settings(self.schedule), "data": self.data}

    def run(self, progress: Progress, say: Callable[[str], None]) -> HeadRecord:
        """Train to the end, or go on from the checkpoint; a folder that is trained already is left as it is."""
        with locked_folder(self.folder):
            if (self.folder / RECORD).is_file():
                return read_head(self.folder)
            self._resume()
            tick = progress(f"training {self.folder.name}", self.schedule.steps)
            tick(self.done)
            while self.done < self.schedule.steps:
                loss = self._step()
                tick(1)
                if self.done % self.schedule.eval_every == 0 or self.done == self.schedule.steps:
                    say(self._test(loss))
            record = HeadRecord(
                **self.settings(),
                layers=self.upstream.layers,
                width=self.upstream.width,
                characters=self.characters,
                evaluations=self.evaluations,
                layer_weights=[round(float(w), 5) for w in self.head.mix.logits.detach().softmax(0)],
            )
            write_atomically(self.folder / RECORD, to_json(record, indent=1).decode())
            (self.folder / CHECKPOINT).unlink(missing_ok=True)
            return record

    def _step(self) -> float:
        rng = np.random.default_rng([self.schedule.seed, self.done])
        self.head.train()
        self.optimiser.zero_grad()
        total = 0.0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self.schedule.seed << 32) + self.done)  # dropout
            for _ in range(self.schedule.accumulate):
                loss = self.loss(self.batch(rng)) / self.schedule.accumulate
                loss.backward()
                total += float(loss.detach())
        nn.utils.clip_grad_norm_(self.head.parameters(), self.schedule.clip_norm)
        for group in self.optimiser.param_groups:
            group["lr"] = self.schedule.rate(self.done)
        self.optimiser.step()
        self.done += 1
        return total

    def _test(self, loss: float) -> str:
        self.head.eval()
        scores = self.score()
        earlier = [each.scores.best_by(self.task) for each in self.evaluations]
        if scores.best_by(self.task) > max(earlier, default=-np.inf) or not earlier:
            with replacing(self.folder / WEIGHTS) as part:
                torch.save(self.head.state_dict(), part)
        self.evaluations.append(Evaluation(step=self.done, loss=round(loss, 6), scores=scores))
        self._save()
        return f"step {self.done}: loss {loss:.4g}, dev {self.measure} {abs(scores.best_by(self.task)):.3f}"

    def _save(self) -> None:
        state = {"settings": json.dumps(self.settings()), "done": self.done, "head": self.head.state_dict()}
        known = json.dumps([each.as_json() for each in self.evaluations])
        state |= {"optimiser": self.optimiser.state_dict(), "evaluations": known}
        with replacing(self.folder / CHECKPOINT) as part:
            torch.save(state, part)

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        state = torch.load(path, weights_only=True)
        if json.loads(state["settings"]) != json.loads(json.dumps(self.settings())):
            raise UserError(f"{self.folder}: holds a training with other settings; name another folder")
        self.head.load_state_dict(state["head"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.done = state["done"]
        self.evaluations = decode(state["evaluations"], list[Evaluation], path)


def longest_of(upstream: Upstream) -> int:
    """The samples of the longest clip that an encoder takes whole."""
    return int(min(upstream.longest_s, 30.0) * RATE)


def states_of(upstream: Upstream, clip: np.ndarray) -> Tensor:
    """The hidden states (layer, frame, width) of a clip, of its first 30 s at most."""
    with torch.no_grad():
        (states,) = upstream.states([clip[: longest_of(upstream)]])
    return states


def open_encoder(folder: Path, device: str) -> tuple[HeadRecord, Upstream]:
    """The record of a trained head, and its encoder."""
    record = read_head(folder)
    revision = record.revision or ""
    seed = int(revision.removeprefix("seed ")) if revision.startswith("seed ") else 0  # of random weights
    upstream = open_upstream(record.upstream, device, seed=seed)
    if upstream.revision != record.revision:
        raise UserError(f"{folder}: its encoder {record.upstream} is {upstream.revision}, not {record.revision}")
    return record, upstream


def load_weights(head: nn.Module, folder: Path, device: str) -> Any:
    """The head with its trained weights, for use."""
    head.load_state_dict(torch.load(folder / WEIGHTS, weights_only=True, map_location="cpu"))
    return head.to(device).eval()


def mean_score(
    clips: Sequence[Any], values: Sequence[float | None], lengths: Sequence[float] | None = None, scale: float = 1.0
) -> tuple[ScoreValue | None, str]:
    """The mean of what is known (or, with lengths, a rate) with its interval over speakers or clips, and over what."""
    known = [place for place, value in enumerate(values) if value is not None]
    if not known:
        return None, ""
    units = Units.of([clips[place].id for place in known], [clips[place].speaker for place in known])
    below = np.ones(len(known)) if lengths is None else np.array([lengths[place] for place in known], float)
    estimate = ratio(units, np.array([values[place] for place in known], float), below, scale=scale)
    return rounded(estimate if lengths is not None else estimate.signed()), str(estimate.resampled)


def rounded(estimate: Estimate) -> ScoreValue:
    """A score and its interval, as records hold them."""
    bounds = estimate.interval()
    return ScoreValue(value=round(estimate.value, 4), interval=bounds and [round(bound, 4) for bound in bounds])
