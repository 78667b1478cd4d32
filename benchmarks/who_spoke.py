"""Who said what, on meetings in AMI's layout that are made of LibriSpeech: a small diarizer, and how to measure it.

    python benchmarks/who_spoke.py --librispeech LibriSpeech --to meetings
    srb run --model 'python:benchmarks.who_spoke:Diarizer' en-amilong_clean --corpus en-amilong=meetings --on-error skip

A meeting has three speakers with two turns each, in turn; every second turn begins 0.5 s before the one before it ends,
the others 0.5 s after. The diarizer is a floor: it cuts at pauses, clusters the pieces by their mean log-mel spectrum,
and transcribes each piece with Moonshine tiny.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np
import soundfile

from speech_robust_bench.builders.corpora.conversations import TEST_MEETINGS
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.models.interface import Clip, open_model, with_turns

NITE = "http://nite.sourceforge.net/"
FRAME = RATE // 50
PAUSE_S, SHORTEST_S = 0.3, 0.4
APART = 22.0  # distance of two clusters: chosen on four meetings of dev-clean


class Diarizer:
    """Pieces between pauses, clustered by how they sound."""

    def __init__(self) -> None:
        self.recogniser = open_model("moonshine?threads=1")

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        return [self._one(clip, rate, language) for clip in clips]

    def _one(self, clip: Clip, rate: int, language: str | None) -> str:
        pieces = speech_pieces(clip)
        if not pieces:
            return with_turns([])
        labels = cluster(np.array([spectrum(clip[start:end]) for start, end in pieces]))
        texts = self.recogniser.transcribe([clip[start:end] for start, end in pieces], rate, language)
        turns = zip(labels, pieces, texts, strict=True)
        return with_turns((str(label), start / rate, end / rate, text) for label, (start, end), text in turns)


def speech_pieces(clip: Clip) -> list[tuple[int, int]]:
    """The samples between pauses: stretches whose level is within 30 dB of the loudest."""
    frames = clip[: len(clip) // FRAME * FRAME].reshape(-1, FRAME)
    level = 10 * np.log10(np.square(frames).mean(axis=1) + 1e-10)
    loud = np.flatnonzero(level > max(level.max() - 30, -60))
    if not len(loud):
        return []
    gaps = [place for place, (a, b) in enumerate(pairwise(loud)) if (b - a) * FRAME > PAUSE_S * RATE]
    groups = np.split(loud, [place + 1 for place in gaps])
    spans = [(int(group[0]) * FRAME, int(group[-1] + 1) * FRAME) for group in groups]
    return [(start, end) for start, end in spans if end - start > SHORTEST_S * RATE]


def spectrum(piece: Clip) -> np.ndarray:
    """The mean log spectrum in 24 bands, without its level."""
    frames = np.lib.stride_tricks.sliding_window_view(piece, 512)[::160] * np.hanning(512)
    power = np.square(np.abs(np.fft.rfft(frames, axis=1)))
    edges = np.unique(np.geomspace(3, 257, 25).astype(int))
    bands = 10 * np.log10(np.add.reduceat(power, edges[:-1], axis=1) + 1e-8).mean(axis=0)
    return bands - bands.mean()


def cluster(features: np.ndarray) -> np.ndarray:
    """A label for each piece."""
    from scipy.cluster.hierarchy import fcluster, linkage

    return fcluster(linkage(features, "average"), APART, "distance") if len(features) > 1 else np.ones(1, int)


def write_meetings(librispeech: Path, out: Path) -> None:
    """Sixteen meetings, of 48 turns by 40 speakers' clips of 3 to 7 s; a speaker may be in two meetings."""
    speakers = sorted((librispeech / "test-clean").iterdir())
    order = np.random.default_rng(0).permutation(np.tile(np.arange(len(speakers)), 2))
    about = []
    for number, meeting in enumerate(TEST_MEETINGS):
        group = [speakers[place] for place in order[3 * number : 3 * number + 3]]
        chosen = [clips_of(speaker, number) for speaker in group]
        turns = [(agent, *chosen[agent][turn]) for turn in (0, 1) for agent in range(3)]
        write_meeting(out, meeting, turns)
        rows = "".join(
            f'<speaker nxt_agent="{"ABC"[place]}" global_name="M{speaker.name}" channel="{place}"/>'
            for place, speaker in enumerate(group)
        )
        about.append(f'<meeting observation="{meeting}">{rows}</meeting>')
    write(out / "corpusResources" / "meetings.xml", f'<root xmlns:nite="{NITE}">{"".join(about)}</root>')


def clips_of(speaker: Path, number: int) -> list[tuple[Clip, str]]:
    """Two clips of a speaker."""
    found = []
    for listing in sorted(speaker.glob("*/*.trans.txt")):
        for line in listing.read_text().splitlines():
            clip, _, text = line.partition(" ")
            path = listing.with_name(f"{clip}.flac")
            if 3 <= soundfile.info(path).duration <= 7:
                found.append((path, text.lower()))
    first = 2 * number % (len(found) - 1)
    return [(soundfile.read(path, dtype="float32")[0], text) for path, text in found[first : first + 2]]


def write_meeting(out: Path, meeting: str, turns: list[tuple[int, Clip, str]]) -> None:
    """One meeting's room recording and annotations."""
    audio, end = np.zeros(0, np.float32), 0
    words: dict[int, list[str]] = {0: [], 1: [], 2: []}
    segments: dict[int, list[str]] = {0: [], 1: [], 2: []}
    for place, (agent, clip, text) in enumerate(turns):
        start = max(0, end + (-RATE // 2 if place % 2 else RATE // 2))
        end = start + len(clip)
        audio = np.pad(audio, (0, max(0, end - len(audio))))
        audio[start:end] += clip
        first, name = len(words[agent]), "ABC"[agent]
        words[agent] += [f'<w nite:id="{name}{first + i}">{word}</w>' for i, word in enumerate(text.split())]
        span = f"{meeting}.{name}.words.xml#id({name}{first})..id({name}{len(words[agent]) - 1})"
        times = f'transcriber_start="{start / RATE:.3f}" transcriber_end="{end / RATE:.3f}"'
        segments[agent].append(f'<segment nite:id="s{name}{first}" {times}><nite:child href="{span}"/></segment>')
    (out / meeting / "audio").mkdir(parents=True, exist_ok=True)
    soundfile.write(out / meeting / "audio" / f"{meeting}.Array1-01.wav", audio.clip(-1, 1), RATE)
    for agent, name in enumerate("ABC"):
        for kind, rows in (("words", words), ("segments", segments)):
            content = f'<root xmlns:nite="{NITE}">{"".join(rows[agent])}</root>'
            write(out / kind / f"{meeting}.{name}.{kind}.xml", content)


def write(path: Path, content: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--librispeech", type=Path, required=True)
    parser.add_argument("--to", type=Path, required=True)
    given = parser.parse_args()
    write_meetings(given.librispeech, given.to)
