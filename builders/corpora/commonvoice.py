"""Common Voice 17 and later (Ardila et al., 2020; commonvoice.mozilla.org): `<locale>/{test.tsv,clips/*.mp3}`.

test.tsv has no quoting and the columns client_id, path, sentence, age, gender, accents and locale; others, such as
sentence_domain (stored as `domain`), go along.

Common Voice 7.0 as the OOD-ASR task of SUPERB-SG takes it (Tsai et al., 2022, Section 3.1.2): es, zh and ar.

The release of 2021-07-21, `cv-corpus-7.0-2021-07-21/<locale>/{test.tsv,clips/*.mp3}`; its columns are those of later
releases but for `accent`. The selection and the texts follow s3prl's `common_voice_preprocess.py`: of Spanish the
accent `mexicano` alone; NFKC, capitals, punctuation to spaces; sentences with Latin letters are left out of Chinese and
Arabic, and a few with stray characters out of Spanish and Chinese. A path to `train.tsv` reads that split instead.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import punctuation

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder
from speech_robust_bench.builders.corpora.folder import other_columns, pick_columns, utterance
from speech_robust_bench.core.rows import column_values

COMMON_VOICE = CorpusInfo(
    name="commonvoice",
    title="Common Voice test",
    licence="CC0-1.0",
    url="https://commonvoice.mozilla.org",
    citation="Ardila et al.: Common Voice: A Massively-Multilingual Speech Corpus. LREC 2020.",
    # It has left the Hub: since October 2025 Mozilla publishes it on its own site alone.
    get="download and unpack release 17.0 or later of the language from https://datacollective.mozillafoundation.org",
)
COMMON_VOICE_LAYOUT = "<locale>/test.tsv and <locale>/clips/*.mp3"
MIN_P808 = 3.4
_AMERICAN = "united states english"


def read_common_voice(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The test split of the language, from the release, a folder above it, or the language's own folder.

    The path of another table, such as `es/train.tsv`, reads that split instead.
    """
    table = root.name if root.is_file() else "test.tsv"
    root = root.parent if root.is_file() else root

    def is_language(folder: Path) -> bool:
        if not (folder / table).is_file():
            return False
        locale = folder.name.lower().partition("-")[0]
        return folder == root or locale == language  # a folder that was pointed at may have any name

    for folder in find_folder(root, is_language):
        clips = {path.name for path in (folder / "clips").iterdir()} if (folder / "clips").is_dir() else set()
        with (folder / table).open(newline="", encoding="utf-8") as file:
            rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
            columns = pick_columns(rows.fieldnames or ())
            others = other_columns(rows.fieldnames or (), columns, str(folder / "test.tsv"))
            for row in rows:
                path = row["path"] if row["path"].endswith(".mp3") else row["path"] + ".mp3"
                if path not in clips:
                    yield Problem(path, f"transcript without audio ({folder / table}, line {rows.line_num})")
                    continue
                values = {field: row.get(column) for field, column in columns.items()}
                # The locale may be regional (`es-419`); the benchmark's language is what was asked for.
                source = FileAudio(str(folder / "clips" / path))
                clip_id = path.removesuffix(".mp3")
                values |= {"language": language}
                clip = utterance(values, source, clip_id, language, column_values(row, others))
                # A sentence that is not there is a mistake of this corpus, and reported as one.
                yield clip if clip.text else replace(clip, text="")


def is_accented(item: Utterance) -> bool:
    """Has the speaker named an accent, and for English one other than American?"""
    if item.accent is None:
        return False
    return item.language != "en" or _AMERICAN not in item.accent.lower()


COMMON_VOICE_7 = CorpusInfo(
    name="cv7",
    title="Common Voice 7.0 test, as selected for OOD-ASR",
    licence="CC0-1.0",
    url="https://commonvoice.mozilla.org",
    citation="Ardila et al.: Common Voice: A Massively-Multilingual Speech Corpus. LREC 2020. Selection: Tsai et al.: "
    "SUPERB-SG. ACL 2022.",
    get="download and unpack cv-corpus-7.0-2021-07-21 in es, zh-CN or ar from https://datacollective.mozillafoundation.org",
)
COMMON_VOICE_7_LAYOUT = "cv-corpus-7.0-2021-07-21/<locale>/test.tsv and clips/*.mp3"
COMMON_VOICE_7_LANGUAGES = ("es", "zh", "ar")
_SELECTED_ACCENT = {"es": "mexicano"}
_COMMON_VOICE_7_PUNCTUATION = (
    punctuation.replace("'", "") + "「」、⋯。《》丶–—―‘“”『』〜ー・☭«»،؛؟‐−¡¿ː\u0301·×\u0303\u030c─〈〉"
)
_COMMON_VOICE_7_SPACED = str.maketrans(dict.fromkeys(_COMMON_VOICE_7_PUNCTUATION, " ") | {"’": "'", "ㄧ": "一"})
# Sentences with one of these are not in the suite.
_COMMON_VOICE_7_STRAY = {"es": set("しらゴミムラ消箱良"), "zh": set("ΜИТオカドヤ䴕")}


def read_common_voice_7(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The selected clips of a language, from the release, its folder, or one of its tables."""
    for item in read_common_voice(root, language):
        if isinstance(item, Problem):
            yield item
        elif _SELECTED_ACCENT.get(language) in (None, item.accent) and (text := suite_text(item.text or "", language)):
            yield replace(item, text=text)


def suite_text(sentence: str, language: str) -> str:
    """A sentence as the suite has it; empty where the suite leaves it out.

    >>> suite_text("¿Dónde está?", "es"), suite_text("我 说 OK", "zh")
    ('DÓNDE ESTÁ', '')
    """
    text = unicodedata.normalize("NFKC", sentence).upper().translate(_COMMON_VOICE_7_SPACED)
    text = re.sub(" +", "" if language == "zh" else " ", text).strip()
    if language in ("zh", "ar") and re.search("[A-Z']", text):
        return ""
    return "" if _COMMON_VOICE_7_STRAY.get(language, set()) & set(text) else text
