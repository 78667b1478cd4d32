"""`srb.train_mask_head` and `srb.score_mask_head`: SUPERB-SG's enhancement and separation on any frozen encoder."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.audio_files import open_banks
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.data_source import Corpora, sources_of
from speech_robust_bench.extensions.superb_sg.head_file import HeadRecord, MaskOptions, TaskScores
from speech_robust_bench.extensions.superb_sg.mixtures import (
    TASKS,
    MadeMixtures,
    Mixture,
    Part,
    Task,
    librimix,
    split_dev,
    voicebank,
)
from speech_robust_bench.models.interface import need
from speech_robust_bench.options import Place


def train_mask_head(
    task: Task,
    upstream: str,
    out: Place,
    *,
    voicebank: Place | None = None,
    librimix: Place | None = None,
    corpus: Corpora = None,
    scenarios: Sequence[str] = ("noise_env",),
    noise_dir: Place | None = None,
    mask_options: MaskOptions = MaskOptions(),
    device: str = "cpu",
    progress: bool = True,
) -> HeadRecord:
    """Train a head on a frozen encoder; the folder is then a front end, "superb:FOLDER".

    Called again with the same arguments, it continues from its last checkpoint.

    Args:
        task: "enhancement" or "separation".
        upstream: "hf:ID or folder", "random:ID or folder", or "fbank".
        out: the folder of the head.
        voicebank, librimix: the folder of the published data; its train part is learned from, its dev part tests.
        corpus: instead, a corpus of which mixtures are made; a tenth is kept for the tests.
        scenarios: what makes clips of the corpus noisy, for enhancement.
        noise_dir: recordings for them.
        mask_options: steps, batches and units; s3prl's by default.
    """
    need("torch", "superb", install_hint("models"))
    from speech_robust_bench.extensions.probe.upstream import open_upstream
    from speech_robust_bench.extensions.superb_sg.training import MaskTraining

    given = _Data(task, voicebank, librimix, corpus, tuple(scenarios), noise_dir)
    with tasks(not progress) as show:
        train, dev = given.parts(("train", "dev"), show)
        training = MaskTraining(
            Path(out), task, open_upstream(upstream, device), train, dev, mask_options, given.describe(train), device
        )
        say = (lambda line: print(line, file=sys.stderr, flush=True)) if progress else (lambda line: None)
        return training.run(show, say)


def score_mask_head(
    head: Place,
    *,
    voicebank: Place | None = None,
    librimix: Place | None = None,
    corpus: Corpora = None,
    scenarios: Sequence[str] = ("noise_env",),
    noise_dir: Place | None = None,
    limit: int | None = None,
    device: str = "cpu",
    progress: bool = True,
) -> TaskScores:
    """PESQ, STOI and SI-SDRi of a trained head on the test part of published data, or on mixtures of a corpus."""
    need("torch", "superb", install_hint("models"))
    from speech_robust_bench.extensions.superb_sg.training import open_head, score_head

    record, upstream, opened = open_head(Path(head), device)
    given = _Data(record.task, voicebank, librimix, corpus, tuple(scenarios), noise_dir)
    with tasks(not progress) as show:
        (mixtures,) = given.parts(("test",), show)
    return score_head(opened, upstream, record.task, mixtures[:limit])


@dataclass(frozen=True)
class _Data:
    """Where mixtures come from: exactly one place."""

    task: Task
    voicebank: Place | None
    librimix: Place | None
    corpus: Corpora
    scenarios: Sequence[str]
    noise_dir: Place | None

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise UserError(f"no task '{self.task}'; choose {' or '.join(TASKS)}")
        if sum(bool(place) for place in (self.voicebank, self.librimix, self.corpus)) != 1:
            raise UserError("name the data with one of --voicebank, --librimix and --corpus")
        if self.voicebank and self.task == "separation":
            raise UserError("Voicebank-DEMAND has one speaker in each clip; separation needs --librimix or --corpus")

    def parts(self, names: Sequence[Part], show: Any) -> list[list[Mixture]]:
        """The mixtures of some parts; a corpus has none, so a tenth of it is the dev part, and all of it a test."""
        if self.voicebank:
            return [voicebank(os.fspath(self.voicebank), name) for name in names]
        if self.librimix:
            return [librimix(os.fspath(self.librimix), name, self.task) for name in names]
        made = MadeMixtures(self.task, self.scenarios, open_banks(self.noise_dir, None))
        mixtures = made.of(sources_of(self.corpus), show)
        return list(split_dev(mixtures)) if len(names) == 2 else [mixtures]

    def describe(self, train: Sequence[Mixture]) -> dict[str, object]:
        """What the head's record says of its data."""
        kind = "voicebank" if self.voicebank else "librimix" if self.librimix else "corpus"
        made = {} if kind != "corpus" or self.task == "separation" else {"scenarios": list(self.scenarios)}
        return {"kind": kind, "mixtures": len(train), **made}
