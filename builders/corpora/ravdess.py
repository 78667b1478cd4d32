"""RAVDESS (Livingstone and Russo, 2018; zenodo.org/record/1188976): 24 actors, eight emotions, two sentences.

`Audio_Speech_Actors_01-24/Actor_12/03-01-06-01-02-01-12.wav`: modality (03 is audio alone), channel (01 speech, 02
song), emotion, intensity, statement, repetition and actor. Actors with an odd number are men. The songs are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance

INFO = CorpusInfo(
    name="ravdess",
    title="RAVDESS speech",
    licence="CC-BY-NC-SA-4.0",
    url="https://zenodo.org/record/1188976",
    citation="Livingstone, Russo: The Ryerson Audio-Visual Database of Emotional Speech and Song (RAVDESS). PLoS ONE "
    "13(5), 2018.",
    get="download and unpack Audio_Speech_Actors_01-24.zip from https://zenodo.org/record/1188976",
)
LAYOUT = "Actor_<nn>/03-01-<emotion>-<intensity>-<statement>-<repetition>-<actor>.wav"
_EMOTIONS = ("neutral", "calm", "happy", "sad", "angry", "fearful", "disgust", "surprised")
_STATEMENTS = {"01": "Kids are talking by the door.", "02": "Dogs are sitting by the door."}
_INTENSITIES = {"01": "normal", "02": "strong"}


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The spoken sentences; songs and video are left out."""
    seen = set()
    for path in sorted(root.rglob("*.wav")):
        parts = path.stem.split("-")
        if len(parts) != 7 or not all(part.isdigit() and len(part) == 2 for part in parts):
            continue
        modality, channel, emotion, intensity, statement, _, actor = parts
        if modality != "03" or channel != "01" or path.stem in seen:  # the archive has a second copy of every folder
            continue
        seen.add(path.stem)
        if statement not in _STATEMENTS or not 1 <= int(emotion) <= len(_EMOTIONS) or intensity not in _INTENSITIES:
            yield Problem(str(path), "its name is of no statement, emotion or intensity that RAVDESS has")
            continue
        yield Utterance(
            id=path.stem,
            audio=FileAudio(str(path)),
            text=_STATEMENTS[statement],
            language=language,
            speaker=actor,
            gender="male" if int(actor) % 2 else "female",
            columns=(("emotion", _EMOTIONS[int(emotion) - 1]), ("intensity", _INTENSITIES[intensity])),
        )
