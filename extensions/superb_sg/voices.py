"""Clips for voice conversion from any speaker to one: VCC 2020, or a speaker of any corpus.

VCC 2020 (Zhao et al., 2020; ODbL): `<speaker>/E10001.wav` at 24 kHz in folders that differ between the published
archives and s3prl's script, so files are found by speaker and number. The head learns E10001 to E10060 and E20001 to
E20050 of the target (TEF1, TEF2, TEM1 or TEM2; 60 of these exist for each) and is tested on E10061 to E10070; the test
converts E30001 to E30025 of the four source speakers, which the target has read too (s3prl's lists).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import soundfile

from speech_robust_bench.builders.corpora import Sources
from speech_robust_bench.builders.plan import DEMO, CheckedClip, check_clips
from speech_robust_bench.builders.plan import clips as listed_clips
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.extensions.superb_sg.head_file import Part

soxr = LazyModule("soxr")
SOURCES = ("SEF1", "SEF2", "SEM1", "SEM2")
TARGETS = ("TEF1", "TEF2", "TEM1", "TEM2")
GET = "get it from https://github.com/nii-yamagishilab/VCC2020-database"
PARTS: dict[Part, tuple[range, ...]] = {
    "train": (range(10001, 10061), range(20001, 20051)),
    "dev": (range(10061, 10071),),
    "test": (range(30001, 30026),),
}
HELD = 10  # of a corpus, one clip of the target in so many is kept from training
Load = Callable[[int], Samples]  # a clip at a rate
Progress = Callable[[str, int], Callable[[int], None]]


@dataclass(frozen=True)
class VoiceClip:
    """A clip to learn or to convert; `target` is the same sentence by the target speaker, where it was recorded."""

    id: str
    speaker: str | None
    text: str | None
    load: Load = field(repr=False)
    target: Load | None = field(default=None, repr=False)


def at_rate(samples: Samples, rate: int, wanted: int) -> Samples:
    """Samples at another rate."""
    return samples if rate == wanted else soxr.resample(samples, rate, wanted).astype(np.float32)


def vcc2020(root: str, part: Part, target: str) -> list[VoiceClip]:
    """The target's clips to learn from, or those of the source speakers to convert."""
    if target not in TARGETS:
        raise UserError(f"no target '{target}' in VCC 2020's first task; choose one of {', '.join(TARGETS)}")
    files = {(path.parent.name, path.stem): path for path in sorted(Path(root).rglob("E[123]0*.wav"))}
    texts = _transcripts(Path(root))
    numbers = [f"E{number}" for span in PARTS[part] for number in span]
    clips = []
    for speaker in SOURCES if part == "test" else (target,):
        for number in numbers:
            if path := files.get((speaker, number)):
                same = files.get((target, number))
                recorded = _reader(same) if same else None
                clips.append(VoiceClip(f"{speaker}_{number}", speaker, texts.get(number[1:]), _reader(path), recorded))
    if not clips:
        raise UserError(f"{root}: holds no recordings of {target} or {SOURCES[0]} for the {part} part; {GET}")
    return clips


def _transcripts(root: Path) -> dict[str, str]:
    """Number of a sentence -> its English text."""
    texts = {}
    for path in sorted(root.rglob("*transcriptions.txt")):
        if "_Eng_" in path.name or path.name.startswith("Eng_") or "evaluation" in path.name:
            for line in path.read_text(encoding="utf-8").splitlines():
                if match := re.match(r"E?(\d{5})\s+(.*)", line):
                    texts[match[1]] = match[2].strip()
    return texts


def _reader(path: Path) -> Load:
    def load(rate: int) -> Samples:
        samples, known = soundfile.read(path, dtype="float32", always_2d=True)
        return at_rate(samples.mean(1), known, rate)

    return load


def corpus_voices(sources: Sources, part: Part, target: str, progress: Progress) -> list[VoiceClip]:
    """The target speaker's clips, one in ten of them for tests; or all clips of the others, to convert."""
    clips: list[CheckedClip] = []
    for language, name in sources:
        corpus, listed = listed_clips(ConfigName(language, "clean", corpus=name), {**DEMO, **sources})
        checked = check_clips(corpus, listed, Inline(), progress)
        checked.refuse_unusable("stop")
        clips += checked.clips
    own = [clip for clip in clips if clip.utterance.speaker == target]
    if not own:
        speakers = sorted({clip.utterance.speaker or "" for clip in clips} - {""})
        raise UserError(f"no clips of the target speaker '{target}'; the speakers are {', '.join(speakers[:20])}")
    if part == "test":
        return [_voice(clip, None) for clip in _in_turn(clips) if clip.utterance.speaker != target]
    held = part == "dev"
    return [_voice(clip, clip) for place, clip in enumerate(own) if (place % HELD == HELD - 1) is held]


def _in_turn(clips: Sequence[CheckedClip]) -> list[CheckedClip]:
    """The first clip of every speaker, then the second of every speaker, and so on: the first N have many speakers."""
    seen: Counter[str | None] = Counter()
    turns = []
    for place, clip in enumerate(clips):
        turns.append((seen[clip.utterance.speaker], place))
        seen[clip.utterance.speaker] += 1
    return [clips[place] for _, place in sorted(turns)]


def _voice(clip: CheckedClip, same: CheckedClip | None) -> VoiceClip:
    item = clip.utterance
    return VoiceClip(item.id, item.speaker, item.text, _loader(clip), _loader(same) if same else None)


def _loader(clip: CheckedClip) -> Load:
    return lambda rate: at_rate(clip.load(), RATE, rate)


def target_recordings(clips: Sequence[VoiceClip], others: Sequence[VoiceClip]) -> list[Load]:
    """For each clip a recording of the target: of the same sentence, or one of `others` in turn."""
    return [clip.target or others[place % len(others)].load for place, clip in enumerate(clips)]
