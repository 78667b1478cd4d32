"""`srb.train_superb_head` and `srb.score_superb_head`: SUPERB-SG's other tasks on any frozen encoder."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.apply import perturb_clip
from speech_robust_bench.builders.corpora import Corpora, as_sources
from speech_robust_bench.builders.plan import job_named
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.extensions.superb_sg.covost import covost
from speech_robust_bench.extensions.superb_sg.head_file import (
    TASKS,
    HeadRecord,
    Part,
    SuperbOptions,
    Task,
    TaskScores,
    read_head,
)
from speech_robust_bench.extensions.superb_sg.mixtures import MadeMixtures, librimix, split_dev, voicebank
from speech_robust_bench.extensions.superb_sg.voices import corpus_voices, vcc2020
from speech_robust_bench.models.interface import need, open_model
from speech_robust_bench.options import Place
from speech_robust_bench.perturbation import open_banks

Progress = Callable[[str, int], Callable[[int], None]]
GIVEN: dict[Task, tuple[str, ...]] = {  # the data that each task is trained on
    "enhancement": ("voicebank", "librimix", "corpus"),
    "separation": ("librimix", "corpus"),
    "translation": ("covost",),
    "conversion": ("vcc", "corpus"),
}
AS_GIVEN = "as given"  # the name of a test without a scenario


@dataclass(frozen=True)
class SuperbData:
    """The data of a head: exactly one of the places.

    Args:
        voicebank, librimix, covost, vcc: the folder of the published data.
        corpus: instead, a corpus of which mixtures are made, or whose speaker `target` is the target of a conversion.
        pair: the languages of CoVoST 2.
        target: the target speaker of a conversion.
        scenarios, noise_dir: what makes clips of a corpus noisy, for enhancement.
    """

    voicebank: Place | None = None
    librimix: Place | None = None
    covost: Place | None = None
    vcc: Place | None = None
    corpus: Corpora = None
    pair: str = "en_de"
    target: str = "TEF1"
    scenarios: Sequence[str] = ("noise_env",)
    noise_dir: Place | None = None

    def place(self, task: Task) -> str:
        """The name of the place that is given, checked against the task."""
        if task not in TASKS:
            raise UserError(f"no task '{task}'; choose one of {', '.join(TASKS)}")
        names = dict.fromkeys(name for places in GIVEN.values() for name in places)
        given = [name for name in names if getattr(self, name)]
        if len(given) != 1 or given[0] not in GIVEN[task]:
            flags = ", ".join(f"--{name}" for name in GIVEN[task])
            raise UserError(f"name the data for {task} with {'one of ' if ',' in flags else ''}{flags}")
        return given[0]

    def parts(self, task: Task, names: Sequence[Part], show: Progress) -> list[list[Any]]:
        """The clips of some parts; mixtures of a corpus have none, so a tenth is the dev part, and all a test."""
        place = self.place(task)
        root = os.fspath(getattr(self, place)) if place != "corpus" else ""
        if place == "voicebank":
            return [voicebank(root, name) for name in names]
        if place == "librimix":
            return [librimix(root, name, task) for name in names]
        if place == "covost":
            return [covost(root, name, self.pair) for name in names]
        if place == "vcc":
            return [vcc2020(root, name, self.target) for name in names]
        sources = as_sources(self.corpus)
        if task == "conversion":
            return [corpus_voices(sources, name, self.target, show) for name in names]
        mixtures = MadeMixtures(task, self.scenarios, open_banks(self.noise_dir, None)).of(sources, show)
        return list(split_dev(mixtures)) if len(names) == 2 else [mixtures]

    def describe(self, task: Task, clips: int) -> dict[str, Any]:
        """What the head's record says of its data."""
        kind = self.place(task)
        made = kind == "corpus" and task == "enhancement"
        return {
            "kind": kind,
            "clips": clips,
            **({"scenarios": list(self.scenarios)} if made else {}),
            **({"pair": self.pair} if task == "translation" else {}),
            **({"target": self.target} if task == "conversion" else {}),
        }


def train_superb_head(
    task: Task,
    upstream: str,
    out: Place,
    data: SuperbData,
    *,
    superb_options: SuperbOptions = SuperbOptions(),
    device: str = "cpu",
    progress: bool = True,
) -> HeadRecord:
    """Train a head on a frozen encoder. Called again with the same arguments, it continues from its last checkpoint.

    Args:
        task: "enhancement", "separation", "translation" or "conversion".
        upstream: "hf:ID or folder", "random:ID or folder", or "fbank".
        out: the folder of the head.
        data: the published data or a corpus; its train part is learned from, its dev part tests.
        superb_options: steps, batches and units; s3prl's by default.
    """
    data.place(task)
    need("torch", "superb", install_hint("models"))
    from speech_robust_bench.extensions.probe.upstream import open_upstream
    from speech_robust_bench.extensions.superb_sg.conversion_training import ConversionTraining
    from speech_robust_bench.extensions.superb_sg.mask_training import MaskTraining
    from speech_robust_bench.extensions.superb_sg.translation_training import TranslationTraining

    trainings = {"translation": TranslationTraining, "conversion": ConversionTraining}
    with tasks(not progress) as show:
        train, dev = data.parts(task, ("train", "dev"), show)
        training = trainings.get(task, MaskTraining)(
            Path(out),
            task,
            open_upstream(upstream, device),
            train,
            dev,
            superb_options.schedule(task),
            data.describe(task, len(train)),
            device,
        )
        say = (lambda line: print(line, file=sys.stderr, flush=True)) if progress else (lambda line: None)
        return training.run(show, say)


def score_superb_head(
    head: Place,
    data: SuperbData,
    *,
    under: Sequence[str] = (),
    asr: str | None = None,
    limit: int | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> dict[str, TaskScores]:
    """The scores of a trained head on the test part of its task's data: as given, and under scenarios.

    Args:
        head: the folder of the head.
        data: published data, or a corpus; a conversion's target is the head's.
        under: scenarios such as "gaussian_sev2", for translation and conversion; `srb.quality` asks the other heads.
        asr: a recogniser that transcribes converted speech, for its WER.
        limit: only the first N clips.
    """
    record = read_head(Path(head))
    need("torch", "superb", install_hint("models"))
    if under and record.task in ("enhancement", "separation"):
        raise UserError(f"{head} is a front end: test it under scenarios with srb quality --front superb:{head}")
    changes = {AS_GIVEN: None, **{name: _change(name, data.noise_dir) for name in under}}
    with tasks(not progress) as show:
        (clips,) = data.parts(record.task, ("test",), show)
        clips = clips[:limit]
        if record.task == "translation":
            return _translated(Path(head), clips, changes, device)
        if record.task == "conversion":
            return _converted(Path(head), record, data, clips, changes, asr, device, show)
    from speech_robust_bench.extensions.superb_sg.mask_training import open_mask_head, score_masks

    record, upstream, opened = open_mask_head(Path(head), device)
    return {AS_GIVEN: score_masks(opened, upstream, record.task, clips)}


def _change(name: str, noise_dir: Place | None) -> Callable[[Samples, str], Samples]:
    """What puts a clip under a scenario, by the scenario's name and severity."""
    job, banks = job_named(f"en_{name}"), open_banks(noise_dir, None)
    if not job.scenario.perturbs:
        raise UserError(f"{name} does not perturb clips")

    def change(samples: Samples, clip_id: str) -> Samples:
        return perturb_clip(job.scenario, job.name.severity, samples, banks, corpus="superb", clip_id=clip_id).samples

    return change


def _translated(head: Path, clips: list[Any], changes: dict[str, Any], device: str) -> dict[str, TaskScores]:
    need("sacrebleu", "superb", install_hint("superb"))
    from speech_robust_bench.extensions.superb_sg.translation_training import open_translation_head, score_translations

    upstream, letters, opened = open_translation_head(head, device)
    return {name: score_translations(opened, upstream, letters, clips, change) for name, change in changes.items()}


def _converted(
    head: Path,
    record: HeadRecord,
    data: SuperbData,
    clips: list[Any],
    changes: dict[str, Any],
    asr: str | None,
    device: str,
    show: Progress,
) -> dict[str, TaskScores]:
    from speech_robust_bench.extensions.superb_sg.conversion_training import VoiceTest, open_conversion_head

    if record.data["target"] != data.target:
        raise UserError(f"{head} speaks as {record.data['target']}, not as {data.target}; name it as the target")
    (recorded,) = data.parts("conversion", ("dev",), show)
    listener = open_model(asr, device=device) if asr else None
    _, upstream, opened = open_conversion_head(head, device)
    try:
        test = VoiceTest(opened, upstream, data.target, clips, recorded, listener)
        return {name: test.score(change) for name, change in changes.items()}
    finally:
        if listener:
            listener.close()
