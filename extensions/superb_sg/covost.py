"""CoVoST 2 (Wang et al., 2020): Common Voice's clips with a translation of each sentence, CC0.

Published are `covost_v2.<from>_<to>.tsv` (path, translation, split), Common Voice's own `validated.tsv` (path,
sentence, client_id) and `clips/`; CoVoST's `get_covost_splits.py` joins the two tables to
`covost_v2.<from>_<to>.<split>.tsv`. Both forms are read. Left out is what SUPERB-SG leaves out (s3prl's
`prepare_clean_paired_corpus.py`): sentences with REMOVE, empty ones, and those where one side has more than five times
the words of the other.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.core.audio import Samples, read
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.extensions import LazyModule
from speech_robust_bench.extensions.superb_sg.head_file import Part
from speech_robust_bench.models.interface import need

sacremoses = LazyModule("sacremoses")
RATIO = 5
GET = "get it from https://github.com/facebookresearch/covost"


@dataclass(frozen=True)
class TranslatedClip:
    """A clip with its translation."""

    id: str
    speaker: str | None
    path: Path
    translation: str

    def load(self) -> Samples:
        return read(self.path)


def covost(root: str, part: Part, pair: str = "en_de") -> list[TranslatedClip]:
    """The clips of a part whose audio is there; case is kept, and punctuation normalised as Moses does it."""
    need("sacremoses", "superb", install_hint("superb"))
    normaliser = sacremoses.MosesPunctNormalizer(
        lang=pair.split("_")[-1], pre_replace_unicode_punct=True, post_remove_control_chars=True
    )
    clips = []
    folders = sorted(folder for folder in Path(root).rglob("clips") if folder.is_dir())
    for row in _rows(Path(root), part, pair):
        path = next((folder / row["path"] for folder in folders if (folder / row["path"]).is_file()), None)
        if path is not None and _usable(row["sentence"], row["translation"]):
            translation = _spaced(normaliser.normalize(row["translation"]))
            clips.append(TranslatedClip(path.stem, row.get("client_id") or None, path, translation))
    if not clips:
        raise UserError(f"{root}: holds no clips of CoVoST 2's {pair} {part}; {GET}")
    return clips


def _rows(root: Path, part: Part, pair: str) -> list[dict[str, str]]:
    """The rows of a part, joined with Common Voice's sentences where that was not yet done."""
    if split := next(iter(sorted(root.rglob(f"covost_v2.{pair}.{part}.tsv"))), None):
        return _table(split)
    whole = next(iter(sorted(root.rglob(f"covost_v2.{pair}.tsv"))), None)
    spoken = next(iter(sorted(root.rglob("validated.tsv"))), None)
    if whole is None or spoken is None:
        tables = f"no covost_v2.{pair}.{part}.tsv, nor covost_v2.{pair}.tsv and validated.tsv"
        raise UserError(f"{root}: holds {tables}; {GET}")
    wanted = {"train", "train_covost"} if part == "train" else {part}
    translated = {row["path"]: row["translation"] for row in _table(whole) if row["split"] in wanted}
    rows = [row for row in _table(spoken) if row["path"] in translated]
    return [{**row, "translation": translated[row["path"]]} for row in rows]


def _table(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return [dict(row) for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE, escapechar="\\")]


def _usable(sentence: str, translation: str) -> bool:
    """Whether s3prl keeps a pair."""
    counts = sorted((len(sentence.split()), len(translation.split())))
    return "REMOVE" not in sentence + translation and counts[0] >= 1 and counts[1] <= RATIO * counts[0]


def _spaced(text: str) -> str:
    """No space before punctuation, as s3prl has it."""
    for mark in ".?,'":
        text = text.replace(f" {mark}", mark)
    return text
