"""Training a voice conversion head on the target speaker alone, and testing it on others.

s3prl turns spectrograms into speech with a HiFi-GAN; here it is Griffin and Lim's method, with which s3prl listens in
during training. It costs naturalness, so MCD and WER are comparable between encoders here, and not with the paper's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.extensions.superb_sg.conversion_head import ConversionHead, spoken_by_target
from speech_robust_bench.extensions.superb_sg.head_file import HeadRecord, TaskScores
from speech_robust_bench.extensions.superb_sg.head_training import (
    HeadTraining,
    load_weights,
    longest_of,
    mean_score,
    open_encoder,
    states_of,
)
from speech_robust_bench.extensions.superb_sg.mel import MEL_RATE, griffin_lim, log_mel
from speech_robust_bench.extensions.superb_sg.translation_training import Change
from speech_robust_bench.extensions.superb_sg.voice_scores import SpeakerEncoder, mcd_db, missing
from speech_robust_bench.extensions.superb_sg.voices import VoiceClip, at_rate, target_recordings
from speech_robust_bench.models.interface import Recogniser
from speech_robust_bench.scoring.scoring import Counts, align
from speech_robust_bench.scoring.verdict_guard import empty_clips, refusal


@dataclass
class ConversionTraining(HeadTraining):
    """A conversion head under training."""

    measure = "L1"

    def __post_init__(self) -> None:
        super().__post_init__()
        frames = torch.cat([self._features(clip)[1] for clip in self.train])
        self.head.mean.copy_(frames.mean(0))
        self.head.scale.copy_(frames.std(0, correction=0).clamp_min(1e-6))

    def new_head(self) -> ConversionHead:
        up, how = self.upstream, self.schedule
        return ConversionHead(up.layers, up.width, up.stride, how.units, how.dropout)

    def _features(self, clip: VoiceClip) -> tuple[Tensor, ...]:
        longest = longest_of(self.upstream)

        def compute() -> tuple[Tensor, ...]:
            wave = clip.load(MEL_RATE)[: longest * MEL_RATE // RATE]
            return states_of(self.upstream, clip.load(RATE)), log_mel(wave).to(self.device)

        return self.kept.get(clip.id, compute)

    def loss(self, batch: Sequence[VoiceClip]) -> Tensor:
        states, mels = zip(*(self._features(clip) for clip in batch), strict=True)
        predicted, frames = self.head(states, mels)
        return self.head.distance(predicted, frames, mels)

    def score(self) -> TaskScores:
        distances = []
        for clip in self.dev:
            states, mel = self._features(clip)
            predicted = spoken_by_target(self.head, states)
            distances.append(float(self.head.distance(predicted[None], [len(predicted)], [mel])))
        mean, resampled = mean_score(self.dev, distances)
        return TaskScores(clips=len(self.dev), resampled=resampled, l1=mean)


def convert(head: ConversionHead, upstream: Upstream, clip: Samples) -> Samples:
    """A clip at 16 kHz in the target's voice, at 24 kHz; what is longer than 30 s is converted piece by piece."""
    longest = longest_of(upstream)
    pieces = [clip[start : start + longest] for start in range(0, max(1, len(clip)), longest)]
    converted = [griffin_lim(spoken_by_target(head, states_of(upstream, piece)).cpu()) for piece in pieces]
    return np.concatenate(converted).astype(np.float32)


@dataclass
class VoiceTest:
    """The test of a conversion head: clips of others, recordings of the target, and who listens."""

    head: ConversionHead
    upstream: Upstream
    target: str
    clips: Sequence[VoiceClip]
    target_clips: Sequence[VoiceClip]
    listener: Recogniser | None = None
    language: str = "en"

    def score(self, change: Change | None = None) -> TaskScores:
        """MCD, WER and accept rate of the converted clips; with `change`, of what it makes of the clips before."""
        clips = [clip.load(RATE) if change is None else change(clip.load(RATE), clip.id) for clip in self.clips]
        converted = [convert(self.head, self.upstream, clip) for clip in clips]
        distortions = self._distortions(converted)
        mcd, over = mean_score(self.clips, distortions)
        heard = [at_rate(wave, MEL_RATE, RATE) for wave in converted]
        accepted = self._accepted(heard)
        rate, over_clips = mean_score(self.clips, accepted, scale=100.0)
        wer, over_words, why = self._wer(heard)
        return TaskScores(
            clips=len(self.clips),
            resampled=over_words or over_clips or over,
            mcd_db=mcd,
            mcd_clips=sum(each is not None for each in distortions) or None,
            accepted=rate,
            wer=wer,
            no_verdict=why or None,
        )

    def _distortions(self, converted: Sequence[Samples]) -> list[float | None]:
        if missing("pyworld"):
            return [None] * len(converted)
        pairs = zip(converted, self.clips, strict=True)
        return [clip.target and mcd_db(wave, clip.target(MEL_RATE), self.target) for wave, clip in pairs]  # type: ignore[misc]

    def _accepted(self, heard: Sequence[Samples]) -> list[float | None]:
        if missing("resemblyzer"):
            return [None] * len(heard)
        encoder = SpeakerEncoder()
        recordings = target_recordings(self.clips, self.target_clips)
        return [float(encoder.accepts(clip, load(RATE))) for clip, load in zip(heard, recordings, strict=True)]

    def _wer(self, heard: Sequence[Samples]) -> tuple[ScoreValue | None, str, str]:
        """WER of the converted clips, over what its interval is, and why it says nothing where that is so."""
        known = [place for place, clip in enumerate(self.clips) if clip.text]
        if self.listener is None or not known:
            return None, "", ""
        clips = [self.clips[place] for place in known]
        counts = self._counts(clips, [heard[place] for place in known])
        before = self._counts(clips, [clip.load(RATE) for clip in clips])
        score, over = mean_score(clips, list(counts.errors), list(counts.lengths), scale=100.0)
        why = refusal(before.rate, empty_clips(before) / len(before))
        return score, over, why and f"the recogniser, before the conversion: {why}"

    def _counts(self, clips: Sequence[VoiceClip], waves: Sequence[Samples]) -> Counts:
        assert self.listener is not None
        texts = [self.listener.transcribe([wave], RATE, self.language)[0] for wave in waves]
        return align([clip.text or "" for clip in clips], texts, language=self.language)


def open_conversion_head(folder: Path, device: str = "cpu") -> tuple[HeadRecord, Upstream, ConversionHead]:
    """A trained head with its encoder."""
    record, upstream = open_encoder(folder, device)
    head = ConversionHead(record.layers, record.width, upstream.stride, record.schedule["units"])
    return record, upstream, load_weights(head, folder, device)
