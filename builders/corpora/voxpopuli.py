"""VoxPopuli (Wang et al., ACL 2021): speeches of the European Parliament in 16 languages, the transcribed part.

As `python -m voxpopuli.get_asr_data` leaves it: `transcribed_data/<language>/asr_test.tsv` with the columns id,
raw_text, normalized_text, speaker_id, split and gender, and `<language>/<year>/<id>.ogg`. The text is the normalised
one, which the paper scores; where it is empty, the raw one.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import (
    CorpusInfo,
    FileAudio,
    Problem,
    Utterance,
    find_folder,
    gender,
    known,
)

INFO = CorpusInfo(
    name="voxpopuli",
    title="VoxPopuli test",
    licence="CC0-1.0",
    url="https://github.com/facebookresearch/voxpopuli",
    citation="Wang et al.: VoxPopuli: A Large-Scale Multilingual Speech Corpus for Representation Learning, "
    "Semi-Supervised Learning and Interpretation. ACL 2021.",
    get="python -m voxpopuli.download_audios and voxpopuli.get_asr_data (https://github.com/facebookresearch/voxpopuli)",
    note="the recordings are the European Parliament's, whose legal notice holds beside CC0",
)
LAYOUT = "transcribed_data/<language>/asr_test.tsv and <language>/<year>/<id>.ogg"
LANGUAGES = ("cs", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "it", "lt", "nl", "pl", "ro", "sk", "sl")


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The clips of the test list."""
    for folder in find_folder(root, lambda place: place.name == language and (place / "asr_test.tsv").is_file()):
        with (folder / "asr_test.tsv").open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                clip = row.get("id") or ""
                path = folder / clip[:4] / f"{clip}.ogg"
                if not clip or not path.is_file():
                    yield Problem(clip or str(folder / "asr_test.tsv"), "no audio beside the list")
                    continue
                yield Utterance(
                    id=clip,
                    audio=FileAudio(str(path)),
                    text=known(row.get("normalized_text")) or row.get("raw_text") or "",
                    language=language,
                    speaker=known(row.get("speaker_id")),
                    gender=gender(row.get("gender")),
                    accent=known(row.get("accent")),
                )
