"""One call from corpora and an upstream to a trained probe; `srb probe train` and `srb.train_probe` are this call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from speech_robust_bench.builders.apply import RandomScenarios
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.plan import Sources
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.probe.probe_file import ProbeFile
from speech_robust_bench.extensions.probe.training import HeadSettings, Schedule, Training
from speech_robust_bench.extensions.probe.training_clips import (
    Augmentation,
    HiddenStates,
    Progress,
    SpokenClip,
    first_hours,
    read_clips,
    split_dev,
)
from speech_robust_bench.extensions.probe.upstream import open_upstream


@dataclass(frozen=True)
class ProbeOptions:
    """What a probe is trained on, and how.

    Without a dev set a tenth of the clips is kept for it. `augment` names scenarios or categories (an empty list: all);
    those `held_out` are for the test.
    """

    upstream: str
    sources: Sources
    dev: Sources | None = None
    hours: float | None = None
    head: HeadSettings = field(default_factory=HeadSettings)
    schedule: Schedule = field(default_factory=Schedule)
    augment: Sequence[str] | None = None
    held_out: Sequence[str] = ()
    augment_p: float = 0.5
    banks: Banks = field(default_factory=Banks)
    cache: str | Path | None = None
    device: str = "cpu"
    revision: str = ""
    save_every: int = 200

    def __post_init__(self) -> None:
        if self.hours is not None and not self.hours > 0:
            raise UserError(f"hours are more than 0, not {self.hours}")
        if not 0 <= self.augment_p <= 1:
            raise UserError(f"augment_p={self.augment_p}: a probability lies between 0 and 1")
        if self.held_out and self.augment is None:
            raise UserError("held-out scenarios are those that --train-augment leaves out; say what it takes")

    def augmentation(self) -> Augmentation | None:
        """What training clips are put under."""
        if self.augment is None:
            return None
        drawn = RandomScenarios.named(self.augment, without=self.held_out)
        return Augmentation(drawn, self.augment_p, self.schedule.seed, self.banks)

    def clips(self, longest_s: float, progress: Progress) -> tuple[str, list[SpokenClip], list[SpokenClip]]:
        """The language, the clips to train on and those to test on."""
        language, clips = read_clips(self.sources, longest_s, progress)
        if self.dev:
            dev_language, dev_clips = read_clips(self.dev, longest_s, progress)
            if dev_language != language:
                raise UserError(f"the dev set is in '{dev_language}', the training set in '{language}'")
        else:
            clips, dev_clips = split_dev(clips)
        return language, clips if self.hours is None else first_hours(clips, self.hours), dev_clips


def train_probe(
    options: ProbeOptions,
    out: str | Path,
    progress: Progress = lambda what, total: lambda count: None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> ProbeFile:
    """Train a probe into the folder `out`. A training that was interrupted continues where it stopped."""
    upstream = open_upstream(options.upstream, options.device, options.revision)
    language, clips, dev_clips = options.clips(upstream.longest_s, progress)
    states = HiddenStates(upstream, Path(options.cache) if options.cache else None, options.augmentation())
    training = Training(
        Path(out), states, language, clips, dev_clips, options.head, options.schedule, options.save_every, options.hours
    )
    return training.run(progress, say)
