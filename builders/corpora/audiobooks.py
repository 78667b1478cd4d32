"""LibriSpeech (Panayotov et al., 2015; openslr.org/12): `<split>/<speaker>/<chapter>/<speaker>-<chapter>-<n>.flac`.

Each chapter folder has one `<speaker>-<chapter>.trans.txt` with a line `<id> <TEXT>` per clip. SPEAKERS.TXT, at the top
of the release, gives each reader's sex, `1089 | M | test-clean | 8.03 | Peter Bobbe`; its comments start with `;`.

Multilingual LibriSpeech (Pratap et al., 2020; openslr.org/94): `mls_<language>/test/`.

`test/transcripts.txt` has a line `<id> <tab> <text>` per clip, and the clip `<speaker>_<book>_<n>` is
`test/audio/<speaker>/<book>/<id>.flac` (or .opus). `metainfo.txt`, beside the splits, is a table with `|` between
columns: SPEAKER, GENDER, PARTITION, ...
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

LIBRISPEECH = CorpusInfo(
    name="librispeech",
    title="LibriSpeech test-clean",
    licence="CC-BY-4.0",
    url="https://www.openslr.org/12",
    citation="Panayotov, Chen, Povey, Khudanpur: Librispeech: an ASR corpus based on public domain audio books. "
    "ICASSP 2015.",
    get="download and unpack test-clean.tar.gz from https://www.openslr.org/12",
    hub="hf:openslr/librispeech_asr:clean:test",
)
LIBRISPEECH_LAYOUT = "test-clean/<speaker>/<chapter>/*.trans.txt"


def read_librispeech(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
    """Test-clean, from the release, a folder above it, or the split itself; another split only if it alone is given."""
    splits = find_folder(root, lambda folder: folder.name == f"{split}-clean") or [root]
    genders = _librispeech_genders(splits[0])
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


def _librispeech_genders(split: Path) -> dict[str, str | None]:
    """Speaker -> gender, from the SPEAKERS.TXT in or above the split; without one the genders stay unknown."""
    table = next((path for path in (split / "SPEAKERS.TXT", split.parent / "SPEAKERS.TXT") if path.is_file()), None)
    if table is None:
        return {}
    rows = (line.split("|") for line in table.read_text(encoding="utf-8").splitlines() if not line.startswith(";"))
    return {row[0].strip(): gender(row[1]) for row in rows if len(row) > 1}


MLS_LANGUAGES = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
}
MLS = CorpusInfo(
    name="mls",
    title="Multilingual LibriSpeech test",
    licence="CC-BY-4.0",
    url="https://www.openslr.org/94",
    citation="Pratap, Xu, Sriram, Synnaeve, Collobert: MLS: A Large-Scale Multilingual Dataset for Speech Research. "
    "Interspeech 2020.",
    get="download and unpack mls_<language>.tar.gz from https://www.openslr.org/94",
    hub="hf:facebook/multilingual_librispeech:{mls}:test",
)
MLS_LAYOUT = "mls_<language>/test/transcripts.txt and test/audio/<speaker>/<book>/"
_MLS_SUFFIXES = (".flac", ".opus", ".wav")


def read_mls(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
    """A split, from `mls_<language>`, a folder above several of them, or a split itself."""
    release = f"mls_{MLS_LANGUAGES.get(language, language)}"

    def is_split(folder: Path) -> bool:
        # Above several languages only this one's counts; a folder that was renamed is taken as it is.
        named = folder.parent.name if folder.name == split else folder.name
        foreign = named.startswith("mls_") and named.removesuffix("_opus") != release
        other = folder.name in {"train", "dev", "test"} - {split} and folder != root
        return not other and not foreign and (folder / "transcripts.txt").is_file()

    for test in find_folder(root, is_split):
        genders = _mls_genders(test)
        recordings = {path.stem: path for path in (test / "audio").rglob("*") if path.suffix in _MLS_SUFFIXES}
        for line in (test / "transcripts.txt").read_text(encoding="utf-8").splitlines():
            clip_id, _, text = line.partition("\t")
            path = recordings.pop(clip_id, None)
            if path is not None:
                speaker = clip_id.partition("_")[0]
                yield Utterance(clip_id, FileAudio(str(path)), text.strip(), language, speaker, genders.get(speaker))
            elif clip_id:
                yield Problem(clip_id, f"transcript without audio ({test / 'transcripts.txt'})")
        for path in sorted(recordings.values()):
            yield Problem(str(path), "audio without a transcript in transcripts.txt")


def _mls_genders(test: Path) -> dict[str, str | None]:
    table = next((path for path in (test / "metainfo.txt", test.parent / "metainfo.txt") if path.is_file()), None)
    if table is None:
        return {}
    rows = (line.split("|") for line in table.read_text(encoding="utf-8").splitlines())
    return {row[0].strip(): gender(row[1]) for row in rows if len(row) > 1 and row[0].strip().isdigit()}
