"""Multilingual LibriSpeech (Pratap et al., 2020; openslr.org/94): `mls_<language>/test/`.

`test/transcripts.txt` has a line `<id> <tab> <text>` per clip, and the clip `<speaker>_<book>_<n>` is
`test/audio/<speaker>/<book>/<id>.flac` (or .opus). `metainfo.txt`, beside the splits, is a table with `|` between
columns: SPEAKER, GENDER, PARTITION, ...
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder, gender

LANGUAGES = {
    "de": "german",
    "en": "english",
    "es": "spanish",
    "fr": "french",
    "it": "italian",
    "nl": "dutch",
    "pl": "polish",
    "pt": "portuguese",
}
INFO = CorpusInfo(
    name="mls",
    title="Multilingual LibriSpeech test",
    licence="CC-BY-4.0",
    url="https://www.openslr.org/94",
    citation="Pratap, Xu, Sriram, Synnaeve, Collobert: MLS: A Large-Scale Multilingual Dataset for Speech Research. "
    "Interspeech 2020.",
    get="download and unpack mls_<language>.tar.gz from https://www.openslr.org/94",
    hub="hf:facebook/multilingual_librispeech:{mls}:test",
)
LAYOUT = "mls_<language>/test/transcripts.txt and test/audio/<speaker>/<book>/"
_SUFFIXES = (".flac", ".opus", ".wav")


def read(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
    """A split, from `mls_<language>`, a folder above several of them, or a split itself."""
    release = f"mls_{LANGUAGES.get(language, language)}"

    def is_split(folder: Path) -> bool:
        # Above several languages only this one's counts; a folder that was renamed is taken as it is.
        named = folder.parent.name if folder.name == split else folder.name
        foreign = named.startswith("mls_") and named.removesuffix("_opus") != release
        other = folder.name in {"train", "dev", "test"} - {split} and folder != root
        return not other and not foreign and (folder / "transcripts.txt").is_file()

    for test in find_folder(root, is_split):
        genders = _genders(test)
        recordings = {path.stem: path for path in (test / "audio").rglob("*") if path.suffix in _SUFFIXES}
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


def _genders(test: Path) -> dict[str, str | None]:
    table = next((path for path in (test / "metainfo.txt", test.parent / "metainfo.txt") if path.is_file()), None)
    if table is None:
        return {}
    rows = (line.split("|") for line in table.read_text(encoding="utf-8").splitlines())
    return {row[0].strip(): gender(row[1]) for row in rows if len(row) > 1 and row[0].strip().isdigit()}
