"""The built-in demo corpus: 48 English and 12 Spanish clips that come with the package (see builders/data/demo)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, Problem, Utterance
from speech_robust_bench.builders.corpora.folder import read_manifest

FOLDER = Path(__file__).parent.parent / "data" / "demo"

INFO = CorpusInfo(
    name="demo",
    title="The demo corpus of Speech Robust Bench",
    licence="Apache-2.0 AND MIT AND MIT-Festival",
    url="",
    citation="",
    get="it comes with this package",
    note="Mostly synthetic: 8 clips are a human reading, 52 are spoken by text-to-speech voices. It is there to show "
    "and to test, not to rank.",
)


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The clips of one language, the first of every voice, then the second, ...: a few of them are a fair sample."""
    lines = list(read_manifest(root / "manifest.csv", language))
    clips = [item for item in lines if isinstance(item, Utterance) and item.language == language]
    yield from (item for item in lines if isinstance(item, Problem))
    for clip in sorted(clips, key=lambda clip: (clip.id.rpartition("-")[2], clip.id)):
        yield replace(clip, columns=())  # the manifest's `kind` is there for those who make the corpus
