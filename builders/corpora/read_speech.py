"""Speech that is read aloud: LibriSpeech, Multilingual LibriSpeech and Common Voice.

LibriSpeech (Panayotov et al., 2015; openslr.org/12): `<split>/<speaker>/<chapter>/<speaker>-<chapter>-<n>.flac`. Each
chapter folder has one `<speaker>-<chapter>.trans.txt` with a line `<id> <TEXT>` per clip. SPEAKERS.TXT, at the top of
the release, gives each reader's sex, `1089 | M | test-clean | 8.03 | Peter Bobbe`; its comments start with `;`.

Multilingual LibriSpeech (Pratap et al., 2020; openslr.org/94): `mls_<language>/test/`. `test/transcripts.txt` has a
line `<id> <tab> <text>` per clip, and the clip `<speaker>_<book>_<n>` is `test/audio/<speaker>/<book>/<id>.flac` (or
.opus). `metainfo.txt`, beside the splits, is a table with `|` between columns: SPEAKER, GENDER, PARTITION, ...

Common Voice 17 and later (Ardila et al., 2020; commonvoice.mozilla.org): `<locale>/{test.tsv,clips/*.mp3}`. test.tsv
has no quoting and the columns client_id, path, sentence, age, gender, accents and locale; others, such as
sentence_domain (stored as `domain`), go along.

Common Voice 7.0 as the OOD-ASR task of SUPERB-SG takes it (Tsai et al., 2022, Section 3.1.2): es, zh and ar. The
release of 2021-07-21; its columns are those of later releases but for `accent`. The selection and the texts follow
s3prl's `common_voice_preprocess.py`: of Spanish the accent `mexicano` alone; NFKC, capitals, punctuation to spaces;
sentences with Latin letters are left out of Chinese and Arabic, and a few with stray characters out of Spanish and
Chinese. A path to `train.tsv` reads that split instead.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from string import punctuation

from speech_robust_bench.builders.corpora.base import (
    AUDIO_SUFFIXES,
    CorpusInfo,
    FileAudio,
    KnownCorpus,
    Problem,
    Utterance,
    find_folder,
    gender,
)
from speech_robust_bench.builders.corpora.folder import other_columns, pick_columns, utterance
from speech_robust_bench.core.rows import column_values

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


COMMON_VOICE = CorpusInfo(
    name="commonvoice",
    title="Common Voice test",
    licence="CC0-1.0",
    url="https://commonvoice.mozilla.org",
    citation="Ardila et al.: Common Voice: A Massively-Multilingual Speech Corpus. LREC 2020.",
    # It has left the Hub: since October 2025 Mozilla publishes it on its own site alone.
    get="download and unpack release 17.0 or later of the language from https://datacollective.mozillafoundation.org",
)
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


CORPORA = (
    KnownCorpus(LIBRISPEECH, read_librispeech, "test-clean/<speaker>/<chapter>/*.trans.txt", ("en",)),
    KnownCorpus(
        MLS, read_mls, "mls_<language>/test/transcripts.txt and test/audio/<speaker>/<book>/", tuple(MLS_LANGUAGES)
    ),
    KnownCorpus(COMMON_VOICE, read_common_voice, "<locale>/test.tsv and <locale>/clips/*.mp3"),
    KnownCorpus(
        COMMON_VOICE_7,
        read_common_voice_7,
        "cv-corpus-7.0-2021-07-21/<locale>/test.tsv and clips/*.mp3",
        ("es", "zh", "ar"),
    ),
)
