"""Speech of one person at a time: LibriSpeech, Multilingual LibriSpeech, Common Voice, TED-LIUM and VoxPopuli.

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

TED-LIUM 3 (Hernandez et al., 2018; openslr.org/51): `legacy/test/{sph,stm}`, in NIST SPHERE and STM.

An STM line is `<talk> <channel> <speaker> <start> <end> <label> <text>`; the label holds the speaker's gender,
`<o,f0,male>` or, in older files, `<F0_M>`. Stretches marked `ignore_time_segment_in_scoring` are not speech to score.
Clips are named as Kaldi's recipe names them, `<talk>-<start>-<end>` in hundredths of a second.

VoxPopuli (Wang et al., ACL 2021): speeches of the European Parliament in 16 languages, the transcribed part.

As `python -m voxpopuli.get_asr_data` leaves it: `transcribed_data/<language>/asr_test.tsv` with the columns id,
raw_text, normalized_text, speaker_id, split and gender, and `<language>/<year>/<id>.ogg`. The text is the normalised
one, which the paper scores; where it is empty, the raw one.
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
    known,
    long_form,
    whole_recordings,
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


TEDLIUM = CorpusInfo(
    name="tedlium",
    title="TED-LIUM 3 test",
    licence="CC-BY-NC-ND-3.0",
    url="https://www.openslr.org/51",
    citation="Hernandez, Nguyen, Ghannay, Tomashenko, Estève: TED-LIUM 3: twice as much data and corpus repartition "
    "for experiments on speaker adaptation. SPECOM 2018.",
    get="download and unpack TEDLIUM_release-3.tgz from https://www.openslr.org/51",
    derivatives_allowed=False,
)
TEDLIUM_LAYOUT = "legacy/test/stm/*.stm and legacy/test/sph/*.sph"
_TEDLIUM_IGNORED = "ignore_time_segment_in_scoring"
_TEDLIUM_GENDER = re.compile(r"<o,[^,>]*,(\w+)>|<F\d_([MF])>", re.IGNORECASE)
# The transcripts write clitics as words of their own ("it 's") and mark what could not be understood with <unk>.
_TEDLIUM_CLITIC = re.compile(r" '(s|t|re|ve|m|ll|d|all|clock)\b", re.IGNORECASE)
_TEDLIUM_MARKUP = re.compile(r"<unk>|<sil>|\{[^}]*\}|\(\d+\)")


def read_tedlium(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
    """The talks of a split, from the release, its `legacy` folder, or a split itself."""
    others = {"train", "dev", "test", "data", "speaker-adaptation"} - {split}

    def is_split(folder: Path) -> bool:
        return (folder.name not in others or folder == root) and (folder / "stm").is_dir()

    # The release has a copy of the split under speaker-adaptation; the legacy one is the benchmark's.
    for test in find_folder(root / "legacy" if (root / "legacy").is_dir() else root, is_split):
        talks = {path.stem: path for path in test.joinpath("sph").glob("*.sph")} if (test / "sph").is_dir() else {}
        for stm in sorted(test.joinpath("stm").glob("*.stm")):
            talk = talks.pop(stm.stem, None)
            if talk is None:
                yield Problem(str(stm), "transcript without audio")
            else:
                yield from _read_stm(stm, talk, language)
        for talk in sorted(talks.values()):
            yield Problem(str(talk), "audio without a transcript")


def read_talks(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The test talks whole, not cut into utterances."""
    return whole_recordings(read_tedlium(root, language))


def _read_stm(stm: Path, talk: Path, language: str) -> Iterator[Utterance | Problem]:
    for number, line in enumerate(stm.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.startswith(";;"):
            continue
        fields = line.split(maxsplit=6)
        try:
            name, _, speaker, start, end, label = fields[:6]
            start_s, end_s = float(start), float(end)
        except ValueError:
            yield Problem(f"{stm}:{number}", "not an STM line: talk, channel, speaker, start, end, label, text")
            continue
        raw = fields[6] if len(fields) > 6 else ""
        if raw.strip().lower() == _TEDLIUM_IGNORED:
            continue
        match = _TEDLIUM_GENDER.fullmatch(label)
        yield Utterance(
            id=f"{name}-{round(start_s * 100):07}-{round(end_s * 100):07}",
            audio=FileAudio(str(talk), start_s, end_s),
            text=clean(raw),
            language=language,
            speaker=speaker,
            gender=gender(match.group(1) or match.group(2)) if match else None,
        )


def clean(text: str) -> str:
    """The spoken words: clitics joined to their word, markup taken out."""
    return " ".join(_TEDLIUM_CLITIC.sub(r"'\1", _TEDLIUM_MARKUP.sub(" ", text)).split())


def amend_tedlium(item: Utterance) -> Utterance | None:
    """A row of a Hub copy, which holds the STM's text as it is."""
    text = item.text or ""
    return None if text.lower() == _TEDLIUM_IGNORED else replace(item, text=clean(text))


VOXPOPULI = CorpusInfo(
    name="voxpopuli",
    title="VoxPopuli test",
    licence="CC0-1.0",
    url="https://github.com/facebookresearch/voxpopuli",
    citation="Wang et al.: VoxPopuli: A Large-Scale Multilingual Speech Corpus for Representation Learning, "
    "Semi-Supervised Learning and Interpretation. ACL 2021.",
    get="python -m voxpopuli.download_audios and voxpopuli.get_asr_data (https://github.com/facebookresearch/voxpopuli)",
    note="the recordings are the European Parliament's, whose legal notice holds beside CC0",
)
VOXPOPULI_LANGUAGES = ("cs", "de", "en", "es", "et", "fi", "fr", "hr", "hu", "it", "lt", "nl", "pl", "ro", "sk", "sl")


def read_voxpopuli(root: Path, language: str) -> Iterator[Utterance | Problem]:
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
    KnownCorpus(TEDLIUM, read_tedlium, TEDLIUM_LAYOUT, ("en",), amend_tedlium),
    KnownCorpus(long_form(TEDLIUM, "talks"), read_talks, TEDLIUM_LAYOUT, ("en",)),
    KnownCorpus(
        VOXPOPULI,
        read_voxpopuli,
        "transcribed_data/<language>/asr_test.tsv and <language>/<year>/<id>.ogg",
        VOXPOPULI_LANGUAGES,
    ),
)
