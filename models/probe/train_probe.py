"""One call from corpora and an upstream to a trained probe; `srb probe train` and `srb.train_probe` are this call."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from srb.builders.banks import Banks
from srb.builders.plan import Sources
from srb.builders.random_scenarios import RandomScenarios
from srb.core.errors import UserError
from srb.models.probe.probe_file import ProbeFile
from srb.models.probe.training import HeadSettings, Schedule, Training
from srb.models.probe.training_clips import Augmentation, HiddenStates, Progress, first_hours, read_clips, split_dev
from srb.models.probe.upstream import open_upstream


def train_probe(
    upstream: str,
    sources: Sources,
    out: str | Path,
    *,
    dev: Sources | None = None,
    hours: float | None = None,
    head: HeadSettings | None = None,
    schedule: Schedule | None = None,
    augment: Sequence[str] | None = None,
    held_out: Sequence[str] = (),
    augment_p: float = 0.5,
    banks: Banks | None = None,
    cache: str | Path | None = None,
    device: str = "cpu",
    revision: str = "",
    save_every: int = 200,
    progress: Progress = lambda what, total: lambda count: None,
    say: Callable[[str], None] = lambda line: print(line, file=sys.stderr, flush=True),
) -> ProbeFile:
    """Train a probe on corpora; without a dev set a tenth of the clips is kept for it. It goes on where it stopped.

    `augment` names scenarios or categories, none of them for all; those `held_out` are left for the test.
    """
    if hours is not None and not hours > 0:
        raise UserError(f"hours are more than 0, not {hours}")
    if not 0 <= augment_p <= 1:
        raise UserError(f"augment_p={augment_p}: a probability lies between 0 and 1")
    if held_out and augment is None:
        raise UserError("held-out scenarios are those that --train-augment leaves out; say what it takes")
    schedule = schedule or Schedule()
    opened = open_upstream(upstream, device, revision)
    language, clips = read_clips(sources, opened.longest_s, progress)
    if dev:
        dev_language, dev_clips = read_clips(dev, opened.longest_s, progress)
        if dev_language != language:
            raise UserError(f"the dev set is in '{dev_language}', the training set in '{language}'")
    else:
        clips, dev_clips = split_dev(clips)
    if hours is not None:
        clips = first_hours(clips, hours)
    augmentation = None
    if augment is not None:
        drawn = RandomScenarios.named(augment, without=held_out)
        augmentation = Augmentation(drawn, augment_p, schedule.seed, banks or Banks())
    states = HiddenStates(opened, Path(cache) if cache else None, augmentation)
    training = Training(
        Path(out), states, language, clips, dev_clips, head or HeadSettings(), schedule, save_every, hours
    )
    return training.run(progress, say)
