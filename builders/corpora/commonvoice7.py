"""Common Voice 7.0 as the OOD-ASR task of SUPERB-SG takes it (Tsai et al., 2022, Section 3.1.2): es, zh and ar.

The release of 2021-07-21, `cv-corpus-7.0-2021-07-21/<locale>/{test.tsv,clips/*.mp3}`; its columns are those of later
releases but for `accent`. The selection and the texts follow s3prl's `common_voice_preprocess.py`: of Spanish the
accent `mexicano` alone; NFKC, capitals, punctuation to spaces; sentences with Latin letters are left out of Chinese and
Arabic, and a few with stray characters out of Spanish and Chinese. A path to `train.tsv` reads that split instead.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import punctuation

from speech_robust_bench.builders.corpora import commonvoice
from speech_robust_bench.builders.corpora.base import CorpusInfo, Problem, Utterance

INFO = CorpusInfo(
    name="cv7",
    title="Common Voice 7.0 test, as selected for OOD-ASR",
    licence="CC0-1.0",
    url="https://commonvoice.mozilla.org",
    citation="Ardila et al.: Common Voice: A Massively-Multilingual Speech Corpus. LREC 2020. Selection: Tsai et al.: "
    "SUPERB-SG. ACL 2022.",
    get="download and unpack cv-corpus-7.0-2021-07-21 in es, zh-CN or ar from https://datacollective.mozillafoundation.org",
)
LAYOUT = "cv-corpus-7.0-2021-07-21/<locale>/test.tsv and clips/*.mp3"
LANGUAGES = ("es", "zh", "ar")
ACCENT = {"es": "mexicano"}
_PUNCTUATION = punctuation.replace("'", "") + "「」、⋯。《》丶–—―‘“”『』〜ー・☭«»،؛؟‐−¡¿ː\u0301·×\u0303\u030c─〈〉"
_SPACED = str.maketrans(dict.fromkeys(_PUNCTUATION, " ") | {"’": "'", "ㄧ": "一"})
# Sentences with one of these are not in the suite.
_STRAY = {"es": set("しらゴミムラ消箱良"), "zh": set("ΜИТオカドヤ䴕")}


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The selected clips of a language, from the release, its folder, or one of its tables."""
    for item in commonvoice.read(root, language):
        if isinstance(item, Problem):
            yield item
        elif ACCENT.get(language) in (None, item.accent) and (text := suite_text(item.text or "", language)):
            yield replace(item, text=text)


def suite_text(sentence: str, language: str) -> str:
    """A sentence as the suite has it; empty where the suite leaves it out.

    >>> suite_text("¿Dónde está?", "es"), suite_text("我 说 OK", "zh")
    ('DÓNDE ESTÁ', '')
    """
    text = unicodedata.normalize("NFKC", sentence).upper().translate(_SPACED)
    text = re.sub(" +", "" if language == "zh" else " ", text).strip()
    if language in ("zh", "ar") and re.search("[A-Z']", text):
        return ""
    return "" if _STRAY.get(language, set()) & set(text) else text
