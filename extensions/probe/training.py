"""Training a probe, by s3prl's schedule for OOD-ASR: Adam at 1e-4, batches of 16 clips of similar length, gradients
clipped at norm 1, SpecAugment, up to 500,000 steps, tested on the dev set every 2,000; the best weights are kept.

A step is a function of the seed and its number, and a checkpoint holds weights, moments and the tests so far. So a
resumed training ends, on a CPU, with the same weights as an uninterrupted one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from speech_robust_bench.builders.apply import RandomScenarios
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Sources
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked_folder, replacing
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import Record, convert
from speech_robust_bench.extensions.probe.head import BLANK, Letters, new_head
from speech_robust_bench.extensions.probe.options import HeadSettings, ProbeOptions
from speech_robust_bench.extensions.probe.probe_file import (
    RECORD,
    Evaluation,
    ProbeFile,
    read_probe,
    read_weights,
    write_record,
    write_weights,
)
from speech_robust_bench.extensions.probe.ranking import Ablation
from speech_robust_bench.extensions.probe.training_clips import (
    Augmentation,
    HiddenStates,
    Progress,
    SpokenClip,
    batch_of_step,
    buckets,
    clips_digest,
    first_hours,
    read_clips,
    split_dev,
)
from speech_robust_bench.extensions.probe.upstream import Upstream, open_upstream
from speech_robust_bench.scoring.scoring import align

CHECKPOINT = "checkpoint.pt"


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
    options: ProbeOptions
    hours: float | None = None  # as requested

    def __post_init__(self) -> None:
        for name, clips in (("train on", self.train), ("test on (the dev set)", self.dev)):
            if not clips:
                raise UserError(f"there are no clips to {name}")
        shared = {(clip.corpus, clip.id) for clip in self.train} & {(clip.corpus, clip.id) for clip in self.dev}
        if shared:
            raise UserError(f"{len(shared)} clips are in the training and in the dev set, as {min(shared)[1]}")
        self.letters = Letters.of(clip.text for clip in self.train)
        self.batches = buckets(self.train, self.options.batch_size)
        self.evaluations: list[Evaluation] = []
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.options.seed)
            self.head = new_head(self.head_settings, self.upstream, self.letters).to(self.states.device)
        self.optimiser = torch.optim.Adam(self.head.parameters(), lr=self.options.lr)
        self.done = 0

    @property
    def upstream(self) -> Upstream:
        return self.states.upstream

    @property
    def augmentation(self) -> Augmentation | None:
        return self.states.augmentation

    def settings(self) -> Settings:
        """The settings that the weights depend on: a folder holds a training with one set of them."""
        return {
            "upstream": {
                "spec": self.upstream.spec,
                "revision": self.upstream.revision,
                "layers": self.upstream.layers,
                "width": self.upstream.width,
                "stride": self.upstream.stride,
            },
            "head": asdict(self.head_settings),
            "schedule": self.options.settings,
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
        """Train to the end, from the last checkpoint if there is one; a finished probe stays unchanged."""
        with locked_folder(self.folder):
            if (self.folder / RECORD).is_file():
                finished = read_probe(self.folder)
                self._check_settings(finished.about)
                return finished
            self._resume()
            tick = progress(f"training {self.folder.name}", self.options.steps)
            tick(self.done)
            while self.done < self.options.steps and not self._given_up():
                loss = self._step(self.done)
                self.done += 1
                tick(1)
                tested = self.done % self.options.eval_every == 0 or self.done == self.options.steps
                if tested:
                    say(self._evaluate(loss))
                if tested or self.done % self.options.save_every == 0:
                    self._save()
            write_record(self.folder, self._record())
            (self.folder / CHECKPOINT).unlink(missing_ok=True)
            return read_probe(self.folder)

    def _step(self, step: int) -> float:
        epoch, number = batch_of_step(step, len(self.batches), self.options.seed)
        batch = self.batches[number]
        states = self.states.of(batch, epoch)
        self.head.train()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed((self.options.seed << 32) + step)  # dropout and SpecAugment
            logits, frames = self.head(states, augment=self.options.spec_augment)
        loss = ctc_loss(logits, frames, [self.letters.encode(clip.text) for clip in batch])
        self.optimiser.zero_grad()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(self.head.parameters(), self.options.clip_norm)
        if math.isfinite(norm):  # else the step is left out, as in s3prl
            for group in self.optimiser.param_groups:
                group["lr"] = self.options.lr * min(1.0, (step + 1) / max(1, self.options.warmup))
            self.optimiser.step()
        return float(loss.detach())

    def _evaluate(self, loss: float) -> str:
        hypotheses = []
        self.head.eval()
        with torch.no_grad():
            for batch in buckets(self.dev, self.options.batch_size):
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
        return len(self.evaluations) - 1 - self.evaluations.index(self._best()) >= self.options.patience

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
        """Refuse other settings or shapes of moments, which Adam would only notice at its next step."""
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
        return {
            **self.settings(),
            "best": self._best().as_json(),
            "steps_done": self.done,
            "layer_weights": read_layer_weights(self.folder),
            "parameters": sum(p.numel() for p in self.head.parameters()),
            "evaluations": [evaluation.as_json() for evaluation in self.evaluations],
            "versions": {name: version(name) for name in ("torch", "transformers", "speech-robust-bench")},
        }


def ctc_loss(logits: Tensor, frames: Tensor, labels: list[list[int]]) -> Tensor:
    """The mean over clips of the loss per letter; a clip with more letters than frames has none."""
    counts = torch.tensor([len(label) for label in labels])
    joined = torch.tensor([number for label in labels for number in label], device=logits.device)
    log_probs = logits.log_softmax(-1).transpose(0, 1)
    return functional.ctc_loss(log_probs, joined, frames, counts, BLANK, zero_infinity=True)


def read_layer_weights(folder: Path) -> list[float]:
    """The weight of each layer in the best weights."""
    return [round(weight, 6) for weight in read_weights(folder)["layer_logits"].softmax(0).tolist()]


def _differences(before: Any, now: Any) -> str:
    if isinstance(before, dict) and isinstance(now, dict):
        names = [name for name in now if before.get(name) != now[name]]
        return ", ".join(f"{name} {before.get(name)}, now {now[name]}" for name in names)
    return f"{str(before)[:60]}, now {str(now)[:60]}"


def train(
    probe: Ablation,
    head: HeadSettings,
    corpus: Sources,
    dev: Sources,
    options: ProbeOptions,
    progress: Progress,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> ProbeFile:
    """Train a probe from corpora into its folder; an interrupted training continues where it stopped."""
    augmentation = None
    if options.train_augment is not None:
        drawn = RandomScenarios.named(options.train_augment, without=options.held_out)
        augmentation = Augmentation(drawn, options.augment_p, options.seed, Banks(options.noise_dir, options.rir_dir))
    upstream = open_upstream(probe.upstream, options.device, options.revision)
    language, clips = read_clips(corpus, upstream.longest_s, progress)
    if dev:
        dev_language, dev_clips = read_clips(dev, upstream.longest_s, progress)
        if dev_language != language:
            raise UserError(f"the dev set is in '{dev_language}', the training set in '{language}'")
    else:
        clips, dev_clips = split_dev(clips)
    clips = clips if probe.hours is None else first_hours(clips, probe.hours)
    cache = Path(options.cache_features) if options.cache_features else None
    states = HiddenStates(upstream, cache, augmentation)
    return Training(probe.folder, states, language, clips, dev_clips, head, options, probe.hours).run(progress, say)
