"""TED-LIUM 3 (Hernandez et al., 2018; openslr.org/51): `legacy/test/{sph,stm}`, in NIST SPHERE and STM.

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
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from speech_robust_bench.builders.corpora.base import (
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
    KnownCorpus(TEDLIUM, read_tedlium, TEDLIUM_LAYOUT, ("en",), amend_tedlium),
    KnownCorpus(long_form(TEDLIUM, "talks"), read_talks, TEDLIUM_LAYOUT, ("en",)),
    KnownCorpus(
        VOXPOPULI,
        read_voxpopuli,
        "transcribed_data/<language>/asr_test.tsv and <language>/<year>/<id>.ogg",
        VOXPOPULI_LANGUAGES,
    ),
)
