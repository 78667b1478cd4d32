"""The Speech Accent Archive (Weinberger, 2013; accent.gmu.edu): one paragraph, read by people of many first languages.

In the release of 2,140 recordings (kaggle.com/rtatman/speech-accent-archive) `speakers_all.csv` has the columns age,
age_onset, birthplace, filename, native_language, sex, speakerid, country and `file_missing?`; the recordings are
`recordings/<filename>.mp3`, which may lie in a second folder of that name. Everybody reads the same text
(`reading-passage.txt`).
"""

from __future__ import annotations

import csv
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
    known,
)

INFO = CorpusInfo(
    name="accentarchive",
    title="Speech Accent Archive",
    licence="CC-BY-NC-SA-4.0",
    url="https://accent.gmu.edu",
    citation="Weinberger: Speech Accent Archive. George Mason University, 2013.",
    get="download and unpack https://www.kaggle.com/datasets/rtatman/speech-accent-archive",
)
LAYOUT = "speakers_all.csv and recordings/<filename>.mp3"
PASSAGE = (
    "Please call Stella. Ask her to bring these things with her from the store: Six spoons of fresh snow peas, "
    "five thick slabs of blue cheese, and maybe a snack for her brother Bob. We also need a small plastic snake "
    "and a big toy frog for the kids. She can scoop these things into three red bags, and we will go meet her "
    "Wednesday at the train station."
)
_COLUMNS = ("native_language", "birthplace", "country", "age_onset")


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """A clip for every speaker whose recording is there; those that the table calls missing are none."""
    for release in find_folder(root, lambda folder: (folder / "speakers_all.csv").is_file()):
        recordings = {p.stem: p for p in sorted((release / "recordings").rglob("*")) if p.suffix in AUDIO_SUFFIXES}
        with (release / "speakers_all.csv").open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                name = known(row.get("filename"))
                if name is None or (row.get("file_missing?") or "").strip().lower() == "true":
                    continue
                path = recordings.pop(name, None)
                if path is None:
                    yield Problem(name, f"no recording of this speaker ({release / 'speakers_all.csv'})")
                    continue
                sex = (row.get("sex") or "").strip().replace("famale", "female")  # as one row has it
                values = ((column, known(row.get(column))) for column in _COLUMNS)
                yield Utterance(
                    id=name,
                    audio=FileAudio(str(path)),
                    text=PASSAGE,
                    language=language,
                    speaker=known(row.get("speakerid")),
                    gender=gender(sex),
                    age=known(row.get("age")),
                    accent=known(row.get("native_language")),
                    columns=tuple((column, value) for column, value in values if value),
                )
        for path in recordings.values():
            yield Problem(str(path), "audio without a line in speakers_all.csv")
