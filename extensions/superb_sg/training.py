"""Training and testing a mask head, by s3prl's schedule: AdamW at 1e-4, 8 mixtures a step, gradients clipped at norm 1,
150,000 steps; the best on the dev set is kept, by PESQ for enhancement and by SI-SDRi for separation.

What a step does is a function of the seed and its number, and a checkpoint holds weights and moments, so that a
training that was interrupted goes on as if it had not been.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from speech_robust_bench.builders.quality import pesq
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked_folder, replacing, write_atomically
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import decode, to_json
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.front_ends.quality import assigned, si_sdr, si_sdri, stoi
from speech_robust_bench.extensions.probe.upstream import Upstream, open_upstream
from speech_robust_bench.extensions.superb_sg.head_file import (
    RECORD,
    Evaluation,
    HeadRecord,
    MaskOptions,
    TaskScores,
    read_head,
)
from speech_robust_bench.extensions.superb_sg.mask_head import MaskHead, mask_loss, separate, spectrum
from speech_robust_bench.extensions.superb_sg.mixtures import Mixture, Task
from speech_robust_bench.scoring.bootstrap import Units
from speech_robust_bench.scoring.estimate import ratio

WEIGHTS, CHECKPOINT = "head.pt", "checkpoint.pt"
KEPT_BYTES = 2_000_000_000  # hidden states that are kept in memory
Progress = Callable[[str, int], Callable[[int], None]]


def signals_of(task: Task) -> int:
    """How many signals a task looks for."""
    return 2 if task == "separation" else 1


@dataclass
class MaskTraining:
    """One head under training."""

    folder: Path
    task: Task
    upstream: Upstream
    train: Sequence[Mixture]
    dev: Sequence[Mixture]
    schedule: MaskOptions
    data: Settings
    device: str = "cpu"
    done: int = field(default=0, init=False)
    evaluations: list[Evaluation] = field(default_factory=list, init=False)
    kept: dict[str, tuple[Tensor, Tensor, Tensor]] = field(default_factory=dict, init=False)
    kept_bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        if not self.train or not self.dev:
            raise UserError(f"{len(self.train)} mixtures to train on and {len(self.dev)} to test on: both are needed")
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.schedule.seed)
            self.head = self._new_head().to(self.device)
        self.optimiser = torch.optim.AdamW(self.head.parameters(), lr=self.schedule.lr)

    def _new_head(self) -> MaskHead:
        up, how = self.upstream, self.schedule
        return MaskHead(up.layers, up.width, signals_of(self.task), how.units, how.dropout)

    def settings(self) -> Settings:
        """All that the weights depend on."""
        upstream = {"upstream": self.upstream.spec, "revision": self.upstream.revision}
        return {"task": self.task, **upstream, "schedule": asdict(self.schedule), "data": self.data}

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
                evaluations=self.evaluations,
                layer_weights=[round(float(w), 5) for w in self.head.layer_logits.softmax(0)],
            )
            write_atomically(self.folder / RECORD, to_json(record, indent=1).decode())
            (self.folder / CHECKPOINT).unlink(missing_ok=True)
            return record

    def _step(self) -> float:
        rng = np.random.default_rng([self.schedule.seed, self.done])
        batch = rng.choice(len(self.train), min(self.schedule.batch_size, len(self.train)), replace=False)
        states, mixed, signals = zip(*(self._features(self.train[int(place)]) for place in batch), strict=True)
        self.head.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self.schedule.seed << 32) + self.done)  # dropout
            masks = self.head(states, [len(each) for each in mixed])
        loss = mask_loss(masks, mixed, signals)
        self.optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.head.parameters(), 1.0)
        self.optimiser.step()
        self.done += 1
        return float(loss.detach())

    def _features(self, mixture: Mixture) -> tuple[Tensor, Tensor, Tensor]:
        """Hidden states of a mixture, its spectrum and those of its signals, kept while there is room."""
        if mixture.id in self.kept:
            return self.kept[mixture.id]
        mixed, signals = mixture.load(longest_of(self.upstream))
        with torch.no_grad():
            (states,) = self.upstream.states([mixed])
            found = (states, *(self._spectrum(each) for each in (mixed, signals)))
        size = sum(each.numel() * each.element_size() for each in found)
        if self.kept_bytes + size <= KEPT_BYTES:
            self.kept[mixture.id], self.kept_bytes = found, self.kept_bytes + size
        return found

    def _spectrum(self, samples: np.ndarray) -> Tensor:
        return spectrum(torch.from_numpy(samples).to(self.head.layer_logits.device), self.upstream.stride)

    def _test(self, loss: float) -> str:
        scores = score_head(self.head, self.upstream, self.task, self.dev)
        found = Evaluation(step=self.done, loss=round(loss, 6), scores=scores)
        earlier = [each.scores.best_by(self.task) for each in self.evaluations]
        if scores.best_by(self.task) > max(earlier, default=-np.inf) or not earlier:
            with replacing(self.folder / WEIGHTS) as part:
                torch.save(self.head.state_dict(), part)
        self.evaluations.append(found)
        self._save()
        measure = "PESQ" if self.task == "enhancement" else "SI-SDRi"
        return f"step {self.done}: loss {loss:.4g}, dev {measure} {scores.best_by(self.task):.3f}"

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


def score_head(head: MaskHead, upstream: Upstream, task: Task, mixtures: Sequence[Mixture]) -> TaskScores:
    """PESQ, STOI, SI-SDR and its improvement on some mixtures, with intervals over speakers or clips."""
    head.eval()
    rows = []
    for mixture in mixtures:
        mixed, signals = mixture.load(longest_of(upstream))
        outputs = separate(head, upstream, mixed)
        first, clean = assigned(outputs, list(signals))[0], signals[0]
        scores = {"pesq": pesq(first, clean), "stoi": stoi(first, clean)} if task == "enhancement" else {}
        rows.append({**scores, "si_sdr_db": si_sdr(first, clean), "si_sdri_db": si_sdri(outputs, mixed, list(signals))})
    measured = {key: _mean(mixtures, [row[key] for row in rows]) for key in rows[0]}
    means = {key: score for key, (score, _) in measured.items()}
    return TaskScores(clips=len(mixtures), resampled=next(iter(measured.values()))[1], **means)


def _mean(mixtures: Sequence[Mixture], values: Sequence[float | None]) -> tuple[ScoreValue | None, str]:
    """The mean of what is known with its interval, and what that is over."""
    known = [(mixture, value) for mixture, value in zip(mixtures, values, strict=True) if value is not None]
    if not known:
        return None, ""
    units = Units.of([mixture.id for mixture, _ in known], [mixture.speaker for mixture, _ in known])
    estimate = ratio(units, np.array([value for _, value in known]), np.ones(len(known)), scale=1.0)
    bounds = estimate.interval()
    span = bounds and [round(bound, 4) for bound in bounds]
    return ScoreValue(value=round(estimate.value, 4), interval=span), str(estimate.resampled)


def open_head(folder: Path, device: str = "cpu") -> tuple[HeadRecord, Upstream, MaskHead]:
    """A trained head with its encoder."""
    record = read_head(folder)
    revision = record.revision or ""
    seed = int(revision.removeprefix("seed ")) if revision.startswith("seed ") else 0  # of random weights
    upstream = open_upstream(record.upstream, device, seed=seed)
    if upstream.revision != record.revision:
        raise UserError(f"{folder}: its encoder {record.upstream} is {upstream.revision}, not {record.revision}")
    head = MaskHead(record.layers, record.width, signals_of(record.task), record.schedule["units"])
    head.load_state_dict(torch.load(folder / WEIGHTS, weights_only=True))
    return record, upstream, head.to(device).eval()
