"""Training a probe, by s3prl's schedule for OOD-ASR: Adam at 1e-4, batches of 16 clips of similar length, gradients
clipped at norm 1, SpecAugment, up to 500,000 steps, tested on the dev set every 2,000; the best weights are kept.

Which clips are in a batch and how they are perturbed is a function of the seed and the number of the step, and a
checkpoint holds weights, moments and the tests so far. So a resumed training ends, on a CPU, with the same weights as
an uninterrupted one.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import torch
from msgspec import Meta
from torch import Tensor, nn
from torch.nn import functional

from speech_robust_bench.builders.apply import RandomScenarios, draw_for_clip, perturb_clip
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Sources
from speech_robust_bench.builders.plan import DEMO, CheckedClip, check_clips
from speech_robust_bench.builders.plan import clips as listed_clips
from speech_robust_bench.builders.scenarios import perturbations
from speech_robust_bench.core.audio import RATE, from_pcm16, to_pcm16
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked_folder, read_array, replacing
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import Record, convert
from speech_robust_bench.extensions.probe.head import BLANK, Letters, new_head, spelled
from speech_robust_bench.extensions.probe.probe_file import (
    RECORD,
    Evaluation,
    HeadSettings,
    ProbeFile,
    ProbeOptions,
    read_probe,
    read_weights,
    write_record,
    write_weights,
)
from speech_robust_bench.extensions.probe.ranking import Ablation
from speech_robust_bench.extensions.probe.upstream import Upstream, open_upstream
from speech_robust_bench.models.interface import Clip
from speech_robust_bench.scoring.scoring import align

DEV_SHARE = 10  # without a dev set, one clip of so many is kept from training
Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(frozen=True)
class SpokenClip:
    """A clip that can be learned from or tested on, with its normalised transcript."""

    listed: CheckedClip
    text: str

    @property
    def id(self) -> str:
        return self.listed.utterance.id

    @property
    def corpus(self) -> str:
        return self.listed.utterance.corpus

    @property
    def seconds(self) -> float:
        return self.listed.seconds


def read_clips(sources: Sources, longest_s: float, progress: Progress) -> tuple[str, list[SpokenClip]]:
    """The language and the clips of one or more corpora; those without a letter or longer than an encoder takes are
    left out."""
    languages = {language for language, _ in sources}
    if len(languages) != 1:
        raise UserError(f"a probe learns one language; the corpora are in {', '.join(sorted(languages)) or 'none'}")
    (language,) = languages
    clips = []
    for _, name in sources:
        corpus, listed = listed_clips(ConfigName(language, "clean", corpus=name), {**DEMO, **sources})
        checked = check_clips(corpus, listed, Inline(), progress)
        checked.refuse_unusable("stop")
        clips += [SpokenClip(clip, spelled(clip.utterance.text or "", language)) for clip in checked.clips]
    return language, [clip for clip in clips if clip.text and clip.seconds <= longest_s]


def _order(clip: SpokenClip, seed: int) -> bytes:
    return hashlib.blake2b(f"{seed}\x1f{clip.corpus}\x1f{clip.id}".encode(), digest_size=8).digest()


def split_dev(clips: Sequence[SpokenClip]) -> tuple[list[SpokenClip], list[SpokenClip]]:
    """Clips to train on and a tenth to test on, by their names: the same tenth on every machine and for every seed."""
    held = {clip.id for clip in clips if int.from_bytes(_order(clip, 0), "big") % DEV_SHARE == 0}
    return [clip for clip in clips if clip.id not in held], [clip for clip in clips if clip.id in held]


def first_hours(clips: Sequence[SpokenClip], hours: float, seed: int = 0) -> list[SpokenClip]:
    """Clips of at most a number of hours, in a random order; those of one hour are among those of five."""
    chosen, seconds = [], 0.0
    for clip in sorted(clips, key=lambda clip: _order(clip, seed)):
        if seconds + clip.seconds > hours * 3600:
            break
        chosen.append(clip)
        seconds += clip.seconds
    return chosen


def clips_digest(clips: Iterable[SpokenClip]) -> str:
    """What tells two sets of clips apart: their names, samples and transcripts."""
    digest = hashlib.sha256()
    for clip in sorted(clips, key=lambda clip: (clip.corpus, clip.id)):
        digest.update("\x1f".join((clip.corpus, clip.id, clip.listed.samples_digest, clip.text, "")).encode())
    return digest.hexdigest()[:16]


@dataclass(frozen=True)
class Augmentation:
    """Scenarios that training clips are put under; those held out are for the test."""

    scenarios: RandomScenarios
    p: float = 0.5
    seed: int = 0
    banks: Banks = field(default_factory=Banks)

    def __call__(self, clip: SpokenClip, samples: Clip, epoch: int) -> Clip:
        """What `srb.RandomPerturb` of the same seed and epoch makes of the clip."""
        how = {"p": self.p, "seed": self.seed, "epoch": epoch}
        draw = draw_for_clip(self.scenarios.choose, clip.corpus, clip.id, **how)  # type: ignore[arg-type]
        if draw.scenario is None:
            return samples
        names = {"corpus": draw.corpus, "clip_id": draw.clip_id, "seed": draw.seed}
        perturbed = perturb_clip(draw.scenario, draw.severity, samples, self.banks, **names)
        return from_pcm16(to_pcm16(perturbed.samples))

    def describe(self) -> dict[str, object]:
        """What the probe's record says: what was trained on, and what is left for the test."""
        seen = [row.name for row in self.scenarios.rows]
        unseen = [row.name for row in perturbations() if row.has_speech and row.name not in seen]
        return {"scenarios": seen, "severity": list(self.scenarios.severity), "p": self.p, "held_out": unseen}


def batch_of_step(step: int, batches: int, seed: int) -> tuple[int, int]:
    """The epoch of a step and the number of its batch: every batch once an epoch, in an order drawn for it."""
    epoch, place = divmod(step, batches)
    return epoch, int(np.random.default_rng([seed, epoch]).permutation(batches)[place])


def buckets(clips: Sequence[SpokenClip], batch_size: int) -> list[list[SpokenClip]]:
    """Batches of clips of like length, as s3prl has them."""
    ordered = sorted(clips, key=lambda clip: (clip.seconds, clip.corpus, clip.id))
    return [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]


@dataclass
class HiddenStates:
    """The hidden states of clips, computed when they are asked for; kept on the disk where a folder is given."""

    upstream: Upstream
    folder: Path | None = None
    augmentation: Augmentation | None = None

    def __post_init__(self) -> None:
        if self.folder is not None:
            if self.augmentation is not None:
                raise UserError("features are cached of clean clips; --train-augment changes them every epoch")
            self.folder.mkdir(parents=True, exist_ok=True)

    def of(self, clips: Sequence[SpokenClip], epoch: int | None = None) -> list[Tensor]:
        """Per clip (layer, frame, width); with an epoch, of the clips as training perturbs them in it.

        One clip at a time: many encoders give something else for a clip that is padded.
        """
        return [self._of_clip(clip, epoch) for clip in clips]

    def _of_clip(self, clip: SpokenClip, epoch: int | None) -> Tensor:
        path = self._path(clip)
        if path is not None and (stored := read_array(path)) is not None and stored.ndim == 3:
            return torch.from_numpy(stored).to(self.device)
        samples = clip.listed.load()
        if self.augmentation is not None and epoch is not None:
            samples = self.augmentation(clip, samples, epoch)
        with torch.no_grad():
            (states,) = self.upstream.states([samples[: int(self.upstream.longest_s * RATE)]])
        if path is not None:
            with replacing(path) as part, part.open("wb") as file:
                np.save(file, states.cpu().numpy())
        return states

    def _path(self, clip: SpokenClip) -> Path | None:
        if self.folder is None:
            return None
        key = "\x1f".join((self.upstream.spec, str(self.upstream.revision), clip.listed.samples_digest))
        return self.folder / f"{hashlib.blake2b(key.encode(), digest_size=16).hexdigest()}.npy"

    @property
    def device(self) -> torch.device:
        where = next(self.upstream.encoder.buffers(), next(self.upstream.encoder.parameters(), torch.zeros(0)))
        return where.device


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
                    self.save()
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

    def save(self) -> None:
        """Write the checkpoint."""
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
