"""TED-LIUM 3 (Hernandez et al., 2018; openslr.org/51): `legacy/test/{sph,stm}`, in NIST SPHERE and STM.

An STM line is `<talk> <channel> <speaker> <start> <end> <label> <text>`; the label holds the speaker's gender,
`<o,f0,male>` or, in older files, `<F0_M>`. Stretches marked `ignore_time_segment_in_scoring` are not speech to score.
Clips are named as Kaldi's recipe names them, `<talk>-<start>-<end>` in hundredths of a second.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder, gender
from speech_robust_bench.builders.corpora.long_form import whole_recordings

INFO = CorpusInfo(
    name="tedlium",
    title="TED-LIUM 3 test",
    licence="CC-BY-NC-ND-3.0",
    url="https://www.openslr.org/51",
    citation="Hernandez, Nguyen, Ghannay, Tomashenko, Estève: TED-LIUM 3: twice as much data and corpus repartition "
    "for experiments on speaker adaptation. SPECOM 2018.",
    get="download and unpack TEDLIUM_release-3.tgz from https://www.openslr.org/51",
    derivatives_allowed=False,
)
LAYOUT = "legacy/test/stm/*.stm and legacy/test/sph/*.sph"
_IGNORED = "ignore_time_segment_in_scoring"
_GENDER = re.compile(r"<o,[^,>]*,(\w+)>|<F\d_([MF])>", re.IGNORECASE)
# The transcripts write clitics as words of their own ("it 's") and mark what could not be understood with <unk>.
_CLITIC = re.compile(r" '(s|t|re|ve|m|ll|d|all|clock)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<unk>|<sil>|\{[^}]*\}|\(\d+\)")


def read(root: Path, language: str, split: str = "test") -> Iterator[Utterance | Problem]:
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
    return whole_recordings(read(root, language))


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
        if raw.strip().lower() == _IGNORED:
            continue
        match = _GENDER.fullmatch(label)
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
    return " ".join(_CLITIC.sub(r"'\1", _MARKUP.sub(" ", text)).split())


def amend(item: Utterance) -> Utterance | None:
    """A row of a Hub copy, which holds the STM's text as it is."""
    text = item.text or ""
    return None if text.lower() == _IGNORED else replace(item, text=clean(text))
