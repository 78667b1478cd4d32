"""Santa Barbara Corpus of Spoken American English (Du Bois et al., 2000-2005): 60 conversations, spontaneous speech.

`mp3/01.mp3` ... `mp3/60.mp3` (TalkBank) and `trn/SBC001.trn` ... `trn/SBC060.trn` (UC Santa Barbara). A line of a
transcript has a start and an end in seconds, sometimes a speaker, and the words of an intonation unit, with tabs.
Which lines are used, and how they are written, is the OOD-ASR task's of SUPERB-SG (Tsai et al., 2022; the published
script SBCSAE-preprocess): 0.1 to 15 s, no overlap, no uncertain or unknown words; conversations 54 to 60 are the test
set, 47 to 53 the dev set, the others the training set.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder

INFO = CorpusInfo(
    name="sbcsae",
    title="SBCSAE test, as selected for OOD-ASR",
    licence="CC-BY-ND-3.0",
    url="https://www.linguistics.ucsb.edu/research/santa-barbara-corpus",
    citation="Du Bois et al.: Santa Barbara corpus of spoken American English, Parts 1-4. LDC 2000-2005. Selection: "
    "Tsai et al.: SUPERB-SG. ACL 2022.",
    get="get the MP3 files from https://media.talkbank.org/ca/SBCSAE and the .trn files from the corpus' page",
    derivatives_allowed=False,
    note="It may not be changed and passed on (CC BY-ND): what is built from it stays where it is.",
)
DEV_INFO = replace(INFO, name="sbcsaedev", title="SBCSAE dev, as selected for OOD-ASR")
TRAIN_INFO = replace(INFO, name="sbcsaetrain", title="SBCSAE train, as selected for OOD-ASR")
LAYOUT = "mp3/<NN>.mp3 and trn/SBC0<NN>.trn"
TRAIN, DEV, TEST = range(1, 47), range(47, 54), range(54, 61)
SHORTEST_S, LONGEST_S = 0.1, 15.0
_TIMES = re.compile(r"\s*(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)\s*(.*)")
_SPACED = str.maketrans(dict.fromkeys('.,-%?!@+~_*#&"', " ") | {"’": "'"})


@dataclass(frozen=True)
class Unit:
    """One line of a transcript that is used."""

    start_s: float
    end_s: float
    text: str


def read(root: Path, language: str, conversations: range = TEST) -> Iterator[Utterance | Problem]:
    """The units of some conversations, from the folder that has `trn` and `mp3`, or one above it."""
    for folder in find_folder(root, lambda folder: (folder / "trn").is_dir()):
        for number in conversations:
            transcript = folder / "trn" / f"SBC{number:03}.trn"
            names = (f"mp3/{number:02}.mp3", f"wav/SBC{number:03}.wav", f"wav/{number:02}.wav")
            recording = next((folder / name for name in names if (folder / name).is_file()), folder / names[0])
            missing = [path for path in (transcript, recording) if not path.is_file()]
            for path in missing:
                yield Problem(str(path), "no such file")
            if missing:
                continue
            for unit in units(transcript.read_text(encoding="utf-8", errors="ignore")):
                place = f"{int(unit.start_s * 100):06}-{int(unit.end_s * 100):06}"
                audio = FileAudio(str(recording), unit.start_s, unit.end_s)
                yield Utterance(f"SBC{number:03}_{place}", audio, unit.text, language)


def units(transcript: str) -> list[Unit]:
    """The lines of a transcript that the suite uses, in time; of lines that overlap none is."""
    parsed = (_unit(line) for line in transcript.split("\n"))
    kept: list[Unit] = []
    for unit in sorted(filter(None, parsed), key=lambda unit: unit.end_s):
        alone = True
        while kept and unit.start_s < kept[-1].end_s:
            kept.pop()
            alone = False
        if alone:
            kept.append(unit)
    return kept


def _unit(line: str) -> Unit | None:
    fields = line.strip("\t").strip("\r\n").split("\t")
    if len(fields) == 4:  # start, end, speaker, words; or both times first, and a field more
        fields = [fields[0] if " " in fields[0].strip() else f"{fields[0]} {fields[1]}", fields[3]]
    times = _TIMES.fullmatch(fields[0])
    if times is None or len(fields) not in (2, 3) or (len(fields) == 3 and times[3]):
        return None
    start_s, end_s = float(times[1]), float(times[2])
    text = suite_text(fields[-1])
    fits = SHORTEST_S <= end_s - start_s <= LONGEST_S and len(text) > 1
    return Unit(start_s, end_s, text) if fits else None


def suite_text(words: str) -> str:
    """The words of a line as the suite has them; empty where it leaves the line out.

    >>> suite_text("(H) You kno=w, .. it's --"), suite_text("[two at] once"), suite_text("said X")
    ("YOU KNOW IT'S", '', '')
    """
    if re.search(r"[\[\]<>]", words):  # overlap, uncertain words
        return ""
    words = re.sub(r"\([^)]*\)", "", words).replace("=", "")  # sounds that are no words; lengthened vowels
    text = " ".join(words.translate(_SPACED).upper().split())
    unknown = "XX" in text or " X " in f"{text} "  # a first X is kept, as in the published script
    return "" if unknown or not re.fullmatch("[A-Z' ]*", text) else text
