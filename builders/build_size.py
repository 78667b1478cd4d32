"""How large a build will be, before it starts: a few clips under each scenario say how well the corpus compresses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.checked_clips import CheckedClip
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.builders.row_generator import RowGenerator
from speech_robust_bench.core.audio import encode_flac
from speech_robust_bench.core.engines import Engine

SAMPLED_CLIPS = 3


@dataclass(frozen=True)
class BuildSize:
    """What a group of configs will take."""

    configs: int
    clips: int
    hours: float  # of the corpus
    audio_bytes: int  # of all configs together, an estimate

    def __str__(self) -> str:
        size = _readable(self.audio_bytes)
        return f"{self.configs} configs of {self.clips} clips ({self.hours:.2f} h each): about {size}"


def _readable(size: float) -> str:
    """
    >>> _readable(6_700_000_000), _readable(12), _readable(2.5e6)
    ('6.7 GB', '12 bytes', '2.5 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"


@dataclass(frozen=True)
class _Sample:
    """One severity of a scenario, which stands for all of them, and the clips to try it on."""

    job: Job
    clips: tuple[CheckedClip, ...]
    banks: Banks


def estimate_size(jobs: Sequence[Job], clips: Sequence[CheckedClip], banks: Banks, engine: Engine) -> BuildSize:
    """The bytes of FLAC that the configs will take, within some tens of per cent."""
    by_length = sorted(clips, key=lambda clip: clip.seconds)
    places = (len(clips) * (2 * i + 1) // (2 * SAMPLED_CLIPS) for i in range(SAMPLED_CLIPS))
    chosen = tuple(by_length[place] for place in sorted(set(places)))
    groups: dict[str, list[Job]] = {}
    for job in jobs:
        groups.setdefault(job.scenario.name, []).append(job)
    samples = [_Sample(group[len(group) // 2], chosen, banks) for group in groups.values()]
    rates = engine.map(_bytes_per_second, samples, lambda count: None)
    seconds = sum(clip.seconds for clip in clips)
    total = sum(rate * seconds * len(group) for rate, group in zip(rates, groups.values(), strict=True))
    return BuildSize(len(jobs), len(clips), seconds / 3600, round(total))


def _bytes_per_second(sample: _Sample, tick: Callable[[int], None]) -> float:
    """Stored bytes for each second of the clean clips."""
    generator = RowGenerator((sample.job,), sample.banks)
    rows = (row for clip in sample.clips for row in generator.rows(clip.utterance, clip.load()))
    size = sum(len(encode_flac(row.pcm)) for row in rows)
    return size / sum(clip.seconds for clip in sample.clips)
