"""LibriSpeech (Panayotov et al., 2015; openslr.org/12): `<split>/<speaker>/<chapter>/<speaker>-<chapter>-<n>.flac`.

Each chapter folder has one `<speaker>-<chapter>.trans.txt` with a line `<id> <TEXT>` per clip. SPEAKERS.TXT, at the top
of the release, gives each reader's sex, `1089 | M | test-clean | 8.03 | Peter Bobbe`; its comments start with `;`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import (
    AUDIO_SUFFIXES,
    CorpusInfo,
    FileAudio,
    Problem,
    Utterance,
    find_folder,
    gender,
)

INFO = CorpusInfo(
    name="librispeech",
    title="LibriSpeech test-clean",
    licence="CC-BY-4.0",
    url="https://www.openslr.org/12",
    citation="Panayotov, Chen, Povey, Khudanpur: Librispeech: an ASR corpus based on public domain audio books. "
    "ICASSP 2015.",
    get="download and unpack test-clean.tar.gz from https://www.openslr.org/12",
    hub="hf:openslr/librispeech_asr:clean:test",
)
LAYOUT = "test-clean/<speaker>/<chapter>/*.trans.txt"


def read(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
    """Test-clean, from the release, a folder above it, or the split itself; another split only if it alone is given."""
    splits = find_folder(root, lambda folder: folder.name == f"{split}-clean") or [root]
    genders = _genders(splits[0])
    for transcript in sorted(path for split in splits for path in split.rglob("*.trans.txt")):
        recordings = {path.stem: path for path in transcript.parent.iterdir() if path.suffix in AUDIO_SUFFIXES}
        for line in transcript.read_text(encoding="utf-8").splitlines():
            clip_id, _, text = line.strip().partition(" ")
            path = recordings.pop(clip_id, None)
            if path is not None:
                speaker = clip_id.partition("-")[0]
                yield Utterance(clip_id, FileAudio(str(path)), text.strip(), language, speaker, genders.get(speaker))
            elif clip_id:
                yield Problem(clip_id, f"transcript without audio ({transcript})")
        for path in recordings.values():
            yield Problem(str(path), f"audio without a transcript in {transcript.name}")


def _genders(split: Path) -> dict[str, str | None]:
    """Speaker -> gender, from the SPEAKERS.TXT in or above the split; without one the genders stay unknown."""
    table = next((path for path in (split / "SPEAKERS.TXT", split.parent / "SPEAKERS.TXT") if path.is_file()), None)
    if table is None:
        return {}
    rows = (line.split("|") for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith(";"))
    return {row[0].strip(): gender(row[1]) for row in rows if len(row) > 1}
