"""Long form: whole recordings as clips, with the segments that were transcribed as their references.

A recording is taken from the beginning of its first segment to the end of its last one, and its reference is the text
of the segments in the order of their beginnings, as Whisper's evaluation of TED-LIUM has it (Radford et al., "Robust
Speech Recognition via Large-Scale Weak Supervision", 2023, Appendix A.2). A recogniser's one transcript is aligned with
all of it and no times are looked at: with one stream of output this is the ORC-WER of MeetEval (von Neumann et al.,
2023) for utterances in order. Where people talk at once, the one who began first comes first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.corpora.base import FileAudio, Problem, Utterance


@dataclass(frozen=True, slots=True)
class LongAudio(FileAudio):
    """A stretch of a recording with all its segments: start and end in seconds of the stretch, speaker, text."""

    segments: tuple[tuple[float, float, str | None, str], ...] = ()

    @property
    def parameters(self) -> dict[str, Any]:
        """What the row of the clean config says beside its text."""
        return {"segments": [list(segment) for segment in self.segments]}


def whole_recordings(items: Iterable[Utterance | Problem]) -> Iterator[Utterance | Problem]:
    """One utterance for each file that segments were cut from."""
    by_file: dict[str, list[tuple[FileAudio, Utterance]]] = {}
    for item in items:
        if isinstance(item, Problem):
            yield item
        elif isinstance(item.audio, FileAudio):
            by_file.setdefault(item.audio.path, []).append((item.audio, item))
    for path, segments in by_file.items():
        segments.sort(key=lambda pair: (pair[0].start_s, pair[0].end_s or 0.0, pair[1].speaker or ""))
        spoken = [(audio, item) for audio, item in segments if item.text]
        if not spoken:
            yield Problem(path, "none of its segments has words")
            continue
        start_s = spoken[0][0].start_s
        end_s = max(audio.end_s or 0.0 for audio, _ in spoken)
        references = tuple(
            (round(audio.start_s - start_s, 3), round((audio.end_s or 0.0) - start_s, 3), item.speaker, item.text or "")
            for audio, item in spoken
        )
        speakers, genders = ({getattr(item, field) for _, item in spoken} for field in ("speaker", "gender"))
        yield Utterance(
            id=Path(path).stem,
            audio=LongAudio(path, start_s, end_s, spoken[0][0].mix, references),
            text=" ".join(text for *_, text in references),
            language=spoken[0][1].language,
            speaker=speakers.pop() if len(speakers) == 1 else None,
            gender=genders.pop() if len(genders) == 1 else None,
        )
