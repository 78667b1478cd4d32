"""Training a probe, by s3prl's schedule for OOD-ASR: Adam at 1e-4, batches of 16 clips of like length, gradients
clipped at norm 1, SpecAugment, up to 500,000 steps, tested on the dev set every 2,000; the best of them is kept.

What a step does is a function of the seed and of its number, and a checkpoint holds weights, moments and what was
measured so far. So a training that was killed ends, on a CPU, with the weights of one that was not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.files import locked_folder, replacing
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import Record, convert
from speech_robust_bench.extensions.probe.head import BLANK, BLSTM_LAYERS, UNITS, Head, Letters
from speech_robust_bench.extensions.probe.probe_file import (
    RECORD,
    Evaluation,
    ProbeFile,
    read_probe,
    read_weights,
    write_record,
    write_weights,
)
from speech_robust_bench.extensions.probe.training_clips import (
    Augmentation,
    HiddenStates,
    Progress,
    SpokenClip,
    batch_of_step,
    buckets,
    clips_digest,
)
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.scoring.scoring import align

CHECKPOINT = "checkpoint.pt"


@dataclass(frozen=True)
class Schedule:
    """How a probe is trained; the defaults are s3prl's, but for the early stop, which it does not have."""

    steps: int = 500_000
    batch_size: int = 16
    lr: float = 1e-4
    warmup: int = 0  # steps over which the learning rate rises; the paper's is 8,000 for HuBERT Large on SBCSAE
    clip_norm: float = 1.0
    spec_augment: bool = True
    eval_every: int = 2_000
    patience: int = 10  # tests without a better dev WER before it stops
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "eval_every", "patience"):
            if getattr(self, name) < 1:
                raise UserError(f"{name} is 1 or more, not {getattr(self, name)}")
        if not self.lr > 0 or not self.clip_norm > 0 or self.warmup < 0:
            raise UserError("lr and clip_norm are above 0, warmup 0 or more")


@dataclass(frozen=True)
class HeadSettings:
    """Which head; `normalise` brings every layer to mean 0 and variance 1 first, as the paper does for large models."""

    size: str = "medium"
    units: int = UNITS
    normalise: bool = False

    def __post_init__(self) -> None:
        if self.size not in BLSTM_LAYERS:
            raise UserError(f"no head '{self.size}'; {did_you_mean(self.size, BLSTM_LAYERS)}")
        if not 1 <= self.units <= 8192:
            raise UserError(f"a head has 1 to 8192 units, not {self.units}")


class _Progress(Record, frozen=True, kw_only=True):
    """How far a checkpoint is."""

    done: Annotated[int, Meta(ge=0)]
    evaluations: list[Evaluation]


@dataclass
class Training:
    """One probe under training."""

    folder: Path
    states: HiddenStates
    language: str
    train: list[SpokenClip]
    dev: list[SpokenClip]
    head_settings: HeadSettings
    schedule: Schedule
    save_every: int = 200
    hours: float | None = None  # as it was asked for

    def __post_init__(self) -> None:
        for name, clips in (("train on", self.train), ("test on (the dev set)", self.dev)):
            if not clips:
                raise UserError(f"there are no clips to {name}")
        shared = {(clip.corpus, clip.id) for clip in self.train} & {(clip.corpus, clip.id) for clip in self.dev}
        if shared:
            raise UserError(f"{len(shared)} clips are in the training and in the dev set, as {min(shared)[1]}")
        self.letters = Letters.of(clip.text for clip in self.train)
        self.batches = buckets(self.train, self.schedule.batch_size)
        self.evaluations: list[Evaluation] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.schedule.seed)
            self.head = new_head(self.head_settings, self.upstream, self.letters).to(self.states.device)
        self.optimiser = torch.optim.Adam(self.head.parameters(), lr=self.schedule.lr)
        self.done = 0

    @property
    def upstream(self) -> Upstream:
        return self.states.upstream

    @property
    def augmentation(self) -> Augmentation | None:
        return self.states.augmentation

    def settings(self) -> Settings:
        """All that the weights depend on: a folder holds a training of one of them."""
        return {
            "upstream": {
                "spec": self.upstream.spec,
                "revision": self.upstream.revision,
                "layers": self.upstream.layers,
                "width": self.upstream.width,
                "stride": self.upstream.stride,
            },
            "head": asdict(self.head_settings),
            "schedule": asdict(self.schedule),
            "language": self.language,
            "letters": self.letters.characters,
            "data": {
                "corpora": sorted({clip.corpus for clip in self.train}),
                "hours_asked": self.hours,
                "hours": round(sum(clip.seconds for clip in self.train) / 3600, 4),
                "clips": len(self.train),
                "clips_digest": clips_digest(self.train),
                "dev_hours": round(sum(clip.seconds for clip in self.dev) / 3600, 4),
                "dev_clips": len(self.dev),
                "dev_digest": clips_digest(self.dev),
            },
            "augment": self.augmentation.describe() if self.augmentation else None,
        }

    def run(self, progress: Progress, say: Callable[[str], None] = lambda line: None) -> ProbeFile:
        """Train to the end, or go on from the last checkpoint; a folder that is trained already is left as it is."""
        with locked_folder(self.folder):
            if (self.folder / RECORD).is_file():
                finished = read_probe(self.folder)
                self._check_settings(finished.about)
                return finished
            self._resume()
            tick = progress(f"training {self.folder.name}", self.schedule.steps)
            tick(self.done)
            while self.done < self.schedule.steps and not self._given_up():
                loss = self._step(self.done)
                self.done += 1
                tick(1)
                tested = self.done % self.schedule.eval_every == 0 or self.done == self.schedule.steps
                if tested:
                    say(self._evaluate(loss))
                if tested or self.done % self.save_every == 0:
                    self._save()
            write_record(self.folder, self._record())
            (self.folder / CHECKPOINT).unlink(missing_ok=True)
            return read_probe(self.folder)

    def _step(self, step: int) -> float:
        epoch, number = batch_of_step(step, len(self.batches), self.schedule.seed)
        batch = self.batches[number]
        states = self.states.of(batch, epoch)
        self.head.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self.schedule.seed << 32) + step)  # dropout and SpecAugment
            logits, frames = self.head(states, augment=self.schedule.spec_augment)
        loss = ctc_loss(logits, frames, [self.letters.encode(clip.text) for clip in batch])
        self.optimiser.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.head.parameters(), self.schedule.clip_norm)
        if math.isfinite(norm):  # else the step is left out, as in s3prl
            for group in self.optimiser.param_groups:
                group["lr"] = self.schedule.lr * min(1.0, (step + 1) / max(1, self.schedule.warmup))
            self.optimiser.step()
        return float(loss.detach())

    def _evaluate(self, loss: float) -> str:
        hypotheses = []
        self.head.eval()
        with torch.no_grad():
            for batch in buckets(self.dev, self.schedule.batch_size):
                logits, frames = self.head(self.states.of(batch))
                best = logits.argmax(-1)
                rows = zip(batch, best.tolist(), frames.tolist(), strict=True)
                hypotheses += [(clip.text, self.letters.decode(row[:count])) for clip, row, count in rows]
        wer = align(*map(list, zip(*hypotheses, strict=True)), language=self.language).rate
        if not self.evaluations or wer < self._best().dev_wer:
            write_weights(self.folder, self.head.state_dict())
        self.evaluations.append(Evaluation(step=self.done, loss=round(loss, 6), dev_wer=round(wer, 4)))
        return f"step {self.done}: loss {loss:.3f}, dev WER {wer:.2f}"

    def _best(self) -> Evaluation:
        return min(self.evaluations, key=lambda evaluation: evaluation.dev_wer)

    def _given_up(self) -> bool:
        if not self.evaluations:
            return False
        return len(self.evaluations) - 1 - self.evaluations.index(self._best()) >= self.schedule.patience

    def _save(self) -> None:
        state = {
            "settings": self.settings(),
            "done": self.done,
            "head": self.head.state_dict(),
            "optimiser": self.optimiser.state_dict(),
            "evaluations": [evaluation.as_json() for evaluation in self.evaluations],
        }
        with replacing(self.folder / CHECKPOINT) as part:
            torch.save(state, part)

    def _resume(self) -> None:
        path = self.folder / CHECKPOINT
        if not path.is_file():
            return
        try:
            state = torch.load(path, map_location=self.states.device, weights_only=True)
            self._check_settings(state["settings"])
            progress = convert({key: state[key] for key in ("done", "evaluations")}, _Progress)
            self._check_optimiser(state["optimiser"])
            self.head.load_state_dict(state["head"])
            self.optimiser.load_state_dict(state["optimiser"])
            self.done, self.evaluations = progress.done, progress.evaluations
        except UserError:
            raise
        except Exception as error:  # torch raises what it likes on a damaged file
            raise UserError(f"{path}: cannot be read ({type(error).__name__}); remove it to train anew") from None

    def _check_optimiser(self, stored: Settings) -> None:
        """What Adam would only stumble over at its next step: other settings, or moments of another shape."""
        fresh = self.optimiser.state_dict()["param_groups"]
        theirs, ours = ([{**group, "lr": None} for group in groups] for groups in (stored["param_groups"], fresh))
        if theirs != ours or not all(math.isfinite(group["lr"]) for group in stored["param_groups"]):
            raise ValueError("other settings of the optimiser")
        for index, parameter in enumerate(self.head.parameters()):
            moments = stored["state"].get(index)
            if moments is None:
                continue
            shapes = {name: moments[name].shape for name in ("step", "exp_avg", "exp_avg_sq")}
            if shapes != {"step": (), "exp_avg": parameter.shape, "exp_avg_sq": parameter.shape}:
                raise ValueError("other shapes of the optimiser")

    def _check_settings(self, before: Settings) -> None:
        for name, value in self.settings().items():
            if before.get(name) != value:
                raise UserError(
                    f"{self.folder}: was trained with another {name} ({_differences(before.get(name), value)}); "
                    "use another folder"
                )

    def _record(self) -> Settings:
        from importlib.metadata import version

        return {
            **self.settings(),
            "best": self._best().as_json(),
            "steps_done": self.done,
            "layer_weights": read_layer_weights(self.folder),
            "parameters": sum(p.numel() for p in self.head.parameters()),
            "evaluations": [evaluation.as_json() for evaluation in self.evaluations],
            "versions": {name: version(name) for name in ("torch", "transformers", "speech-robust-bench")},
        }


def new_head(settings: HeadSettings, upstream: Upstream, letters: Letters) -> Head:
    """An untrained head for an upstream and an alphabet."""
    return Head(
        settings.size,
        upstream.layers,
        upstream.width,
        len(letters),
        stride=upstream.stride,
        units=settings.units,
        normalise=settings.normalise,
    )


def ctc_loss(logits: Tensor, frames: Tensor, labels: list[list[int]]) -> Tensor:
    """The mean over clips of the loss per letter; a clip with more letters than frames counts nothing."""
    counts = torch.tensor([len(label) for label in labels])
    joined = torch.tensor([number for label in labels for number in label], device=logits.device)
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    return functional.ctc_loss(log_probs, joined, frames, counts, BLANK, zero_infinity=True)


def read_layer_weights(folder: Path) -> list[float]:
    """How much each layer counts in the weights that were kept."""
    return [round(weight, 6) for weight in read_weights(folder)["layer_logits"].softmax(0).tolist()]


def _differences(before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in now if before.get(name) != now[name]]
        return ", ".join(f"{name} {before.get(name)}, now {now[name]}" for name in names)
    return f"{str(before)[:60]}, now {str(now)[:60]}"
