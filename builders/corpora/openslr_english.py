"""Two crowdsourced corpora of English accents from OpenSLR: the British Isles (83) and Nigeria (70).

SLR83 (Demirsahin et al., LREC 2020) has a zip per dialect and gender, `midlands_english_female.zip`, and an index of
`<prompt>, <clip>, <text>` lines (`line_index_all.csv`, or `line_index.csv` in each zip). SLR70 has `en_ng_female.zip`
and `en_ng_male.zip`, and indexes of `<clip> <tab> <text>` (`line_index_female.tsv`, or `line_index.tsv` in each zip).
The recordings, 48 kHz, are `<clip>.wav`. A clip is `<code>_<speaker>_<line>`; the code's last letter is the gender:
`mif` is Midlands, female. A speaker's number is unique only together with the code.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, gender

UK_IRELAND = CorpusInfo(
    name="ukireland",
    title="UK and Ireland English Dialect (OpenSLR 83)",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/83",
    citation="Demirsahin, Kjartansson, Gutkin, Rivera: Open-source Multi-speaker Corpora of the English Accents in the "
    "British Isles. LREC 2020.",
    get="download and unpack the zips and line_index_all.csv from https://www.openslr.org/83 into one folder (the "
    "Midlands alone are midlands_english_female.zip and midlands_english_male.zip)",
)
NIGERIA = CorpusInfo(
    name="nigeria",
    title="Nigerian English (OpenSLR 70)",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/70",
    citation="Google: Crowdsourced high-quality Nigerian English speech data set. OpenSLR 70, 2019.",
    get="download and unpack en_ng_female.zip and en_ng_male.zip from https://www.openslr.org/70 into one folder",
)
LAYOUT = "line_index*.csv or line_index*.tsv, and <clip>.wav"
_ACCENTS = {
    "ir": "Irish English",
    "mi": "Midlands English",
    "no": "Northern English",
    "sc": "Scottish English",
    "so": "Southern English",
    "we": "Welsh English",
    "ng": "Nigerian English",
}


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Every clip of an index that is there, in one folder or in one for each zip."""
    recordings = {path.stem: path for path in sorted(root.rglob("*.wav"))}
    texts: dict[str, str] = {}
    for index in sorted(path for path in root.rglob("line_index*") if path.suffix in (".csv", ".tsv")):
        yield from _read_index(index, texts)
    if not texts:
        return
    for clip, path in recordings.items():
        code, _, number = clip.rpartition("_")[0].partition("_")
        if clip not in texts:
            yield Problem(str(path), "audio without a line in a line_index file")
            continue
        yield Utterance(
            id=clip,
            audio=FileAudio(str(path)),
            text=texts[clip],
            language=language,
            speaker=f"{code}_{number}" if number else None,
            gender=gender(code[2:3]) if code[2:3] in ("f", "m") else None,
            accent=_ACCENTS.get(code[:2]),
        )
    there = {path.parent.name for path in recordings.values()}
    for clip in sorted(set(texts) - set(recordings)):
        # The index of all dialects also lists those that nobody asked for.
        if any(other.startswith(clip.partition("_")[0]) for other in recordings):
            yield Problem(clip, f"transcript without audio in {', '.join(sorted(there))}")


def _read_index(index: Path, texts: dict[str, str]) -> Iterator[Problem]:
    separator = "\t" if index.suffix == ".tsv" else ","
    with index.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(
            file,
            delimiter=separator,
            quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE,
            skipinitialspace=True,
        )
        for row in rows:
            cells = [cell.strip() for cell in row if cell.strip()]
            # A comma in a text that is not quoted parts it; the clip is the cell that is named like one.
            place = next((i for i, cell in enumerate(cells[:2]) if cell.count("_") == 2), None)
            if cells and (place is None or len(cells) == place + 1):
                yield Problem(f"{index}:{rows.line_num}", "not a line of an index: clip and text")
            elif place is not None:
                texts[cells[place]] = f"{separator} ".join(cells[place + 1 :])
