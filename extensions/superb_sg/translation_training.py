"""Training and testing a translation head: batches of clips of similar length, BLEU by sacrebleu."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import soundfile
import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.extensions.superb_sg.covost import TranslatedClip
from speech_robust_bench.extensions.superb_sg.head_file import TaskScores
from speech_robust_bench.extensions.superb_sg.head_training import (
    HeadTraining,
    load_weights,
    longest_of,
    open_encoder,
    states_of,
)
from speech_robust_bench.extensions.superb_sg.translation_head import (
    END,
    HEADS,
    PAD,
    Characters,
    TranslationHead,
    translate,
    translation_loss,
)
from speech_robust_bench.models.interface import need
from speech_robust_bench.scoring.bootstrap import Units, interval
from speech_robust_bench.scoring.estimate import FEWEST_UNITS

sacrebleu = LazyModule("sacrebleu")
REPLICATES = 1000
Change = Callable[[Samples, str], Samples]  # a clip under a scenario, by its name


@dataclass
class TranslationTraining(HeadTraining):
    """A translation head under training."""

    measure = "BLEU"

    def __post_init__(self) -> None:
        need("sacrebleu", "superb", install_hint("superb"))
        if self.schedule.units % HEADS:
            raise UserError(f"units must be a multiple of {HEADS} for translation, not {self.schedule.units}")
        self.letters = Characters.of([clip.translation for clip in self.train])
        super().__post_init__()
        self.batches = self._batches()

    @property
    def characters(self) -> str:
        return self.letters.characters

    def new_head(self) -> TranslationHead:
        up, how = self.upstream, self.schedule
        return TranslationHead(up.layers, up.width, len(self.letters), how.units, how.dropout)

    def _batches(self) -> list[list[TranslatedClip]]:
        """Batches of clips of similar length: `batch_size` clips, or as many padded frames as are allowed."""
        longest, stride = longest_of(self.upstream), self.upstream.stride
        frames = {clip.id: min(_samples(clip.path), longest) // stride for clip in self.train}
        batches: list[list[TranslatedClip]] = [[]]
        for clip in sorted(self.train, key=lambda clip: (frames[clip.id], clip.id)):
            full = self.schedule.batch_size and len(batches[-1]) >= self.schedule.batch_size
            if batches[-1] and (full or (len(batches[-1]) + 1) * frames[clip.id] > self.schedule.batch_frames):
                batches.append([])
            batches[-1].append(clip)
        return batches

    def batch(self, rng: np.random.Generator) -> list[TranslatedClip]:
        return self.batches[int(rng.integers(len(self.batches)))]

    def loss(self, batch: Sequence[TranslatedClip]) -> Tensor:
        states = [self._states(clip) for clip in batch]
        rows = [torch.tensor(self.letters.encode(clip.translation)) for clip in batch]
        written = [torch.cat([torch.tensor([END]), row[:-1]]) for row in rows]
        padded, targets = (pad_sequence(each, batch_first=True, padding_value=PAD) for each in (written, rows))
        logits = self.head(states, padded.to(self.device))
        return translation_loss(logits, targets.to(self.device), len(self.letters))

    def _states(self, clip: TranslatedClip) -> Tensor:
        return self.kept.get(clip.id, lambda: (states_of(self.upstream, clip.load()),))[0]

    def score(self) -> TaskScores:
        return score_translations(self.head, self.upstream, self.letters, self.dev)


def _samples(path: Path) -> int:
    """How long a file is at the rate of the encoders."""
    about = soundfile.info(path)
    return int(about.frames * RATE / about.samplerate)


def score_translations(
    head: TranslationHead,
    upstream: Upstream,
    letters: Characters,
    clips: Sequence[TranslatedClip],
    change: Change | None = None,
) -> TaskScores:
    """BLEU on some clips; with `change`, on what it makes of them."""
    head.eval()
    hypotheses = []
    for clip in clips:
        samples = clip.load() if change is None else change(clip.load(), clip.id)
        hypotheses.append(letters.decode(translate(head, states_of(upstream, samples))))
    score, resampled = bleu(clips, hypotheses)
    return TaskScores(clips=len(clips), resampled=resampled, bleu=score)


def bleu(clips: Sequence[TranslatedClip], hypotheses: Sequence[str]) -> tuple[ScoreValue, str]:
    """Case-sensitive, detokenised corpus BLEU, with the percentile interval of a bootstrap over speakers or clips.

    BLEU is no sum over clips, so each replicate is computed from the n-gram counts of the clips that are drawn.
    """
    metric = sacrebleu.BLEU()
    references = [[clip.translation for clip in clips]]
    value = metric.corpus_score(list(hypotheses), references).score
    units = Units.of([clip.id for clip in clips], [clip.speaker for clip in clips])
    if len(units) < FEWEST_UNITS:
        return ScoreValue(value=round(value, 4), interval=None), str(units)
    counts = np.array(metric._extract_corpus_statistics(list(hypotheses), references))
    sums = np.stack([units.sums(column) for column in counts.T], 1)
    draws = units.draw(sums, REPLICATES)
    scores = [metric._compute_score_from_stats(row.round().astype(int).tolist()).score for row in draws]
    bounds = [round(bound, 4) for bound in interval(np.array(scores), units=len(units))]
    return ScoreValue(value=round(value, 4), interval=bounds), str(units)


def open_translation_head(folder: Path, device: str = "cpu") -> tuple[Upstream, Characters, TranslationHead]:
    """A trained head with its encoder and its alphabet."""
    record, upstream = open_encoder(folder, device)
    letters = Characters(record.characters)
    head = TranslationHead(record.layers, record.width, len(letters), record.schedule["units"])
    return upstream, letters, load_weights(head, folder, device)
