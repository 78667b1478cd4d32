"""Checks of submitted streams: are they possible and consistent?

Every measure follows from the events, the time of each call and the word times, so these are checked. The transcript
must be that of the events; an event comes when its chunk was done; the calls of a clip take no longer than the clip
did. Words must be those of the reference, at the same times in every config as in the clean one and, where the clean
audio is available, in a forced alignment. The time of a call cannot be checked from files.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import UNSET

from speech_robust_bench.builders.forced_alignment import align, spoken_words
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Settings, WordTime
from speech_robust_bench.core.untrusted_files import Refused
from speech_robust_bench.extensions.streaming.clip_measures import early_words, updates_of
from speech_robust_bench.extensions.streaming.streams import calls_of, check_stream, check_words, transcript

SAMPLE = 8  # clips of a clean config that are aligned again
SAME_S = 0.05  # between two alignments of a clip by one aligner
MOST_EARLY = 0.1  # of the words, shown before their audio was sent: a language model guesses some, a cheat all
FEWEST_WORDS = 20
Placed = dict[str, tuple[float, list[WordTime]]]  # clip -> its duration, and its words with their times


@dataclass
class StreamedLines:
    """The streams of each config while a submission is read."""

    options: Settings  # of run.json
    words: dict[str, Placed] = field(default_factory=dict)  # by config
    streamed: dict[str, bool] = field(default_factory=dict)
    early: dict[str, tuple[int, int]] = field(default_factory=dict)  # config -> words shown too early, words shown

    def add(self, config: str, lines: Sequence[Prediction]) -> None:
        """Check and remember the lines of one config."""
        if not any(line.stream or line.words is not UNSET for line in lines):
            self.streamed[config] = False
            return
        self.streamed[config] = True
        early = shown = 0
        for number, line in enumerate(lines, 1):
            try:
                self._check(line)
            except ValueError as problem:
                raise Refused(f"line {number}: {problem}") from None
        for line in lines:
            if line.stream:
                one_early, one_shown = early_words(updates_of(line.stream.events), line.word_times)
                early, shown = early + one_early, shown + one_shown
        self.early[config] = (early, shown)
        self.words[config] = {line.id: (line.seconds, line.word_times) for line in lines}

    def _check(self, line: Prediction) -> None:
        check_words(line.word_times, line.seconds)
        if line.word_times and [word.text for word in line.word_times] != spoken_words(line.text or ""):
            raise ValueError("'words' are not those of the reference")
        stream = line.stream
        if line.pred_text is None:
            if stream:
                raise ValueError("a clip that failed has a 'stream'")
            return
        if not stream:
            raise ValueError("lacks 'stream', which other clips have")
        check_stream(stream, line.seconds)
        for key in ("chunk_ms", "speed", "realtime"):
            if getattr(stream, key) != self.options.get(key):
                raise ValueError(f"'{key}' of 'stream' is not that of run.json")
        if stream.speed != 1:
            raise ValueError("'speed' of 'stream' is not 1: a simulated machine cannot be submitted")
        if stream.processor_time:
            raise ValueError("'stream' has processor time instead of wall-clock time; run it without")
        if transcript(stream.events).strip() != line.pred_text:
            raise ValueError("'pred_text' is not the transcript that the events of 'stream' give")
        calls = calls_of(stream, line.seconds)
        least_s = calls.done_s[-1] if stream.realtime else calls.busy_s
        if (line.time or 0) < least_s * 0.999 - 0.002:
            raise ValueError("the calls of 'stream' took longer than the whole clip")

    def problems(self, sources: Mapping[str, str | None], places: Sequence[str]) -> list[str]:
        """The problems of the configs together; `sources`: config -> the clean config that it was made from."""
        if len(set(self.streamed.values())) > 1:
            odd = next(config for config, streamed in self.streamed.items() if not streamed)
            return [f"{odd}.jsonl: was not streamed, but other configs were; submit two runs"]
        lines = []
        for config, clips in self.words.items():
            source = sources.get(config) or config
            if reason := _differ_from_clean(config, clips, self.words.get(source, {})):
                lines.append(f"{config}.jsonl: {reason}")
        for source in sorted({sources.get(config) or config for config in self.words}):
            if reason := _differ_from_audio(source, self.words.get(source, {}), places):
                lines.append(f"{source}.jsonl: {reason}")
        return lines

    def flags(self) -> list[str]:
        """One line for each config with words that were shown before their audio was sent."""
        return [
            f"{config}: {early} of {shown} words were shown before their audio was sent"
            for config, (early, shown) in self.early.items()
            if shown >= FEWEST_WORDS and early > MOST_EARLY * shown
        ]


def _differ_from_clean(config: str, clips: Placed, clean: Placed) -> str | None:
    """The first clip whose word times differ from those of its clean clip."""
    scenario = SCENARIOS.get(parse(config).scenario)
    for clip, (duration, words) in clips.items():
        if clip not in clean or not words:
            continue
        clean_duration, expected = clean[clip]
        factor = duration / clean_duration if scenario and scenario.stretches and clean_duration else 1.0
        if len(expected) != len(words):
            return f"the words of '{clip[:60]}' have times, but not in its clean config"
        starts = [(word.start_s, before.start_s) for word, before in zip(words, expected, strict=True)]
        ends = [(word.end_s, before.end_s) for word, before in zip(words, expected, strict=True)]
        if any(abs(now - before * factor) > 0.002 for now, before in starts + ends):
            return f"the words of '{clip[:60]}' lie elsewhere than in its clean config"
    return None


def _differ_from_audio(config: str, clips: Placed, places: Sequence[str]) -> str | None:
    """The first clip whose word times differ from a forced alignment, of a sample of the clean clips."""
    from speech_robust_bench.builders.config_sources import open_data

    named = sorted(clip for clip, (_, words) in clips.items() if words)
    named.sort(key=lambda clip: hashlib.sha256(f"{config} {clip} {clips[clip][1]}".encode()).digest())
    folder = next((place for place in places if (Path(place) / config).is_dir()), None)
    if not folder or not named:
        return None
    data = open_data(folder).config(config)
    wanted = {row.position for row in data.rows if row.id in named[:SAMPLE]}
    try:
        windows = data.windows(wanted)
        aligned = {row.id: _word_ends(window.decode(row), row.text or "") for window in windows for row in window.rows}
    except UserError:  # without the aligner: as submitted
        return None
    for clip, aligned_ends in aligned.items():
        ends = [word.end_s for word in clips[clip][1]]
        if len(aligned_ends) != len(ends) or any(abs(a - b) > SAME_S for a, b in zip(aligned_ends, ends, strict=True)):
            return f"the words of '{clip[:60]}' are not where a forced alignment of the clip finds them"
    return None


def _word_ends(clip: Any, text: str) -> list[float]:
    return [end_s for _, _, end_s in align(clip, text) or ()]
