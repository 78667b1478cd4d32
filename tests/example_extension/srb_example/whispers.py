"""A corpus: WAV files named after their speaker and their words, `anna__good_morning.wav`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora import KnownCorpus
from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Utterance

INFO = CorpusInfo(
    name="whispers",
    title="Whispers",
    licence="CC0-1.0",
    url="https://example.org",
    citation="nobody",
    get="record it yourself",
)


def read(root: Path, language: str) -> Iterator[Utterance]:
    """An utterance for each file."""
    for path in sorted(root.glob("*__*.wav")):
        speaker, _, words = path.stem.partition("__")
        yield Utterance(
            id=path.stem,
            audio=FileAudio(str(path)),
            text=words.replace("_", " "),
            language=language,
            speaker=speaker,
        )


WHISPERS = KnownCorpus(INFO, read, "<speaker>__<words>.wav")
