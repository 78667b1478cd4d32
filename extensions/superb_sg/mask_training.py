"""Training and testing a mask head; the best on the dev set is kept, by PESQ (enhancement) or SI-SDRi (separation)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.builders.quality import pesq
from speech_robust_bench.core.records import Settings
from speech_robust_bench.extensions.front_ends.quality import assigned, si_sdr, si_sdri, stoi
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.extensions.superb_sg.head_file import HeadRecord, Task, TaskScores
from speech_robust_bench.extensions.superb_sg.head_training import (
    HeadTraining,
    load_weights,
    longest_of,
    mean_score,
    open_encoder,
    states_of,
)
from speech_robust_bench.extensions.superb_sg.mask_head import MaskHead, mask_loss, separate, spectrum
from speech_robust_bench.extensions.superb_sg.mixtures import Mixture


def signals_of(task: Task) -> int:
    """How many signals a task looks for."""
    return 2 if task == "separation" else 1


@dataclass
class MaskTraining(HeadTraining):
    """A head for enhancement or separation under training; the clips are mixtures."""

    @property
    def measure(self) -> str:  # type: ignore[override]
        return "PESQ" if self.task == "enhancement" else "SI-SDRi"

    def new_head(self) -> MaskHead:
        up, how = self.upstream, self.schedule
        return MaskHead(up.layers, up.width, signals_of(self.task), how.units, how.dropout)

    def loss(self, batch: Sequence[Mixture]) -> Tensor:
        states, mixed, signals = zip(*(self._features(mixture) for mixture in batch), strict=True)
        masks = self.head(states, [len(each) for each in mixed])
        return mask_loss(masks, mixed, signals)

    def _features(self, mixture: Mixture) -> tuple[Tensor, ...]:
        """Hidden states of a mixture, its spectrum and those of its signals."""

        def compute() -> tuple[Tensor, ...]:
            mixed, signals = mixture.load(longest_of(self.upstream))
            return states_of(self.upstream, mixed), self._spectrum(mixed), self._spectrum(signals)

        return self.kept.get(mixture.id, compute)

    def _spectrum(self, samples: np.ndarray) -> Tensor:
        return spectrum(torch.from_numpy(samples).to(self.head.mix.logits.device), self.upstream.stride)

    def score(self) -> TaskScores:
        return score_masks(self.head, self.upstream, self.task, self.dev)


def score_masks(head: MaskHead, upstream: Upstream, task: Task, mixtures: Sequence[Mixture]) -> TaskScores:
    """PESQ, STOI, SI-SDR and its improvement on some mixtures, with intervals over speakers or clips."""
    head.eval()
    rows = []
    for mixture in mixtures:
        mixed, signals = mixture.load(longest_of(upstream))
        outputs = separate(head, upstream, mixed)
        first, clean = assigned(outputs, list(signals))[0], signals[0]
        scores = {"pesq": pesq(first, clean), "stoi": stoi(first, clean)} if task == "enhancement" else {}
        rows.append({**scores, "si_sdr_db": si_sdr(first, clean), "si_sdri_db": si_sdri(outputs, mixed, list(signals))})
    measured = {key: mean_score(mixtures, [row[key] for row in rows]) for key in rows[0]}
    means: Settings = {key: score for key, (score, _) in measured.items()}
    return TaskScores(clips=len(mixtures), resampled=next(iter(measured.values()))[1], **means)


def open_mask_head(folder: Path, device: str = "cpu") -> tuple[HeadRecord, Upstream, MaskHead]:
    """A trained head with its encoder."""
    record, upstream = open_encoder(folder, device)
    head = MaskHead(record.layers, record.width, signals_of(record.task), record.schedule["units"])
    return record, upstream, load_weights(head, folder, device)
