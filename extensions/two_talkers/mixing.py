"""Two talkers at once (`en_overlap_sev2`): every clip of a corpus mixed with another one, drawn for it.

The second clip is by another speaker where the corpus names at least two. Both are whole and begin together, and a
row's text has the words of both, the clip's own speaker first: `good morning <sc> is it you`. The row's parameters name
the second clip. It is drawn from all clips of the corpus, whatever the limit of a build.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from speech_robust_bench.builders.corpora.base import Audio, Utterance, seconds_of
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.rows import join_talkers, one_talker
from speech_robust_bench.core.seeding import clip_rng


@dataclass(frozen=True, slots=True)
class OverlapAudio:
    """A clip to which another one is added when it is loaded."""

    first: Audio
    second: Audio
    second_id: str
    second_speaker: str | None
    sir_db: float
    speakers: tuple[tuple[str | None, str], ...] = ()  # of both clips: who speaks, and the text

    @property
    def segments(self) -> list[tuple[float, float, str | None, str]]:
        """Who speaks when: both begin together."""
        if not all(speaker for speaker, _ in self.speakers):
            return []
        clips = zip((self.first, self.second), self.speakers, strict=False)
        return [(0.0, round(seconds_of(audio), 3), *who) for audio, who in clips]

    @property
    def name(self) -> str:
        return f"{self.first.name} + {self.second.name}"

    @property
    def parameters(self) -> Settings:
        """The draw, for the row."""
        return {"sir_db": self.sir_db, "second": self.second_id, "second_speaker": self.second_speaker}

    def load(self) -> Samples:
        return overlap(self.first.load(), self.second.load(), self.sir_db)


def overlap(first: Samples, second: Samples, sir_db: float) -> Samples:
    """The first clip unchanged, and the second `sir_db` below it, by the mean powers of the whole clips.

    The result is as long as the longer of the two. With a silent clip the second is added unchanged.
    """
    powers = [float(np.mean(np.square(clip, dtype=np.float64))) if len(clip) else 0.0 for clip in (first, second)]
    gain = np.sqrt(powers[0] / powers[1]) * 10 ** (-sir_db / 20) if all(powers) else 1.0
    mixed = np.zeros(max(len(first), len(second)), dtype=np.float32)
    mixed[: len(first)] = first
    mixed[: len(second)] += np.float32(gain) * second
    return mixed


def overlap_all(
    utterances: Sequence[Utterance], corpus: Sequence[Utterance], scenario: Scenario, severity: int, seed: str = ""
) -> Iterator[Utterance]:
    """Each utterance with a second one of its corpus."""
    pool, sir_db = SecondTalkers(corpus), scenario.value(severity)
    for item in utterances:
        second = pool.draw(item, clip_rng(item.corpus, item.id, scenario.rng_key, severity, seed))
        who = (item.speaker, one_talker(item.text or "")), (second.speaker, one_talker(second.text or ""))
        mixed = OverlapAudio(item.audio, second.audio, second.id, second.speaker, sir_db, who)
        known = None not in (item.text, second.text)
        text = join_talkers(one_talker(item.text or ""), one_talker(second.text or "")) if known else None
        yield replace(item, audio=mixed, text=text)


class SecondTalkers:
    """The clips of a corpus by speaker, so that one of another speaker is drawn in one step."""

    def __init__(self, corpus: Sequence[Utterance]) -> None:
        self.all = sorted(corpus, key=lambda item: item.id)
        self.named = sorted((item for item in self.all if item.speaker), key=lambda item: (str(item.speaker), item.id))
        self.blocks: dict[str, tuple[int, int]] = {}  # of each speaker: where the clips begin in `named`, and how many
        start = 0
        for speaker, items in groupby(self.named, key=lambda item: str(item.speaker)):
            self.blocks[speaker] = start, (count := sum(1 for _ in items))
            start += count
        self.places = {item.id: place for place, item in enumerate(self.all)}

    def draw(self, item: Utterance, rng: np.random.Generator) -> Utterance:
        """Another clip than this one, by another speaker if any is named."""
        if item.speaker and len(self.blocks) > 1:
            clips, (start, count) = self.named, self.blocks[item.speaker]
        else:
            clips, (start, count) = self.all, (self.places[item.id], 1)
        others = len(clips) - count
        if not others:
            raise UserError(f"overlap needs a second clip, and the corpus has only '{item.id}'")
        place = int(rng.integers(others))
        return clips[place if place < start else place + count]


OVERLAP = Scenario(
    "overlap",
    "overlap",
    "two talkers, both transcribed",
    "LibriMix",
    parameter="sir_db",
    severities=(10, 5, 0, -5),
    maker="mixing",
    from_clips=overlap_all,
    mix=overlap,
    keeps_text=False,
)
