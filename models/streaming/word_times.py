"""Where the words of a clip lie, by forced alignment of its transcript (PocketSphinx, English, offline).

Latencies are counted from the end of a word, so they need to know it. A word that is not in the dictionary is spelled
by a rough letter-to-sound rule: its neighbours hold it in place.
"""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from srb.builders.scenarios import SCENARIOS
from srb.core.audio import RATE, to_pcm16
from srb.core.files import write_atomically
from srb.core.names import parse
from srb.models.config_sources import ClipRow, Config
from srb.models.interface import Clip, need
from srb.models.streaming.session import Word

WordTimes = dict[str, list[list[Any]] | None]  # clip id -> [word, start_s, end_s] of each word, or None if not known
LANGUAGE = "en"  # of the acoustic model that PocketSphinx carries

FRAMES_PER_S = 100
_LETTERS = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        [
            "AE",
            "B",
            "K",
            "D",
            "EH",
            "F",
            "G",
            "HH",
            "IH",
            "JH",
            "K",
            "L",
            "M",
            "N",
            "AO",
            "P",
            "K",
            "R",
            "S",
            "T",
            "AH",
            "V",
            "W",
            "K",
            "Y",
            "Z",
        ],
        strict=True,
    )
)


def word_times_of(config: Config, clean: Config, wanted: set[int], store: Path) -> WordTimes:
    """Where the words of the wanted clips of a config lie, in seconds of that config's own audio.

    The clean clips are aligned once and kept in `store`. A scenario that stretches a clip moves its words in
    proportion; under all others they stay where they were.
    """
    if parse(config.name).language != LANGUAGE:
        return {}
    ids = {row.id for row in config.rows if row.position in wanted}
    rows = {row.id: row for row in clean.rows if row.id in ids}
    known = _aligned(clean, list(rows.values()), store / f"{clean.name}.json")
    scenario = SCENARIOS.get(parse(config.name).scenario)
    stretches = scenario is not None and scenario.stretches
    if scenario is not None and not scenario.keeps_start:  # nobody knows by how much the words moved
        return {row.id: None for row in config.rows}
    times: WordTimes = {}
    for row in config.rows:
        words = known.get(row.id) if row.id in rows and row.text == rows[row.id].text else None
        factor = row.duration / rows[row.id].duration if words and stretches else 1.0
        times[row.id] = [[text, round(s * factor, 3), round(e * factor, 3)] for text, s, e in words] if words else None
    return times


def _aligned(clean: Config, rows: list[ClipRow], path: Path) -> WordTimes:
    """The word times of clean clips: those in the file, and the missing ones, which are added to it."""
    edition = clean.about["content_sha256"] or clean.about["rows_sha256"]
    known = _stored(path, edition)
    missing = {row.position for row in rows if row.id not in known}
    for window in clean.windows(missing):
        for row in window.rows:
            words = align(window.decode(row), row.text or "")
            known[row.id] = [[word.text, word.start_s, word.end_s] for word in words] if words else None
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, json.dumps({"edition": edition, "words": known}) + "\n")
    return known


def _stored(path: Path, edition: str) -> WordTimes:
    """What the file holds of this edition of the clips; a torn or foreign file holds nothing, and is made anew."""
    try:
        stored = json.loads(path.read_text("utf-8"))
        return dict(stored["words"]) if stored["edition"] == edition else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}


def align(clip: Clip, text: str) -> list[Word] | None:
    """The words of a transcript with their times in a clip at 16 kHz; None where they cannot be found in it."""
    words = spoken_words(text)
    decoder = _aligner()
    if not words or not len(clip):
        return None
    for word in words:
        if decoder.lookup_word(word) is None:
            decoder.add_word(word, " ".join(_LETTERS[letter] for letter in word if letter in _LETTERS), True)
    try:
        decoder.set_align_text(" ".join(words))
        decoder.reinit_feat()
        decoder.start_utt()
        decoder.process_raw(to_pcm16(clip).tobytes(), False, True)
        decoder.end_utt()
        segments = [segment for segment in decoder.seg() or () if not segment.word.startswith(("<", "["))]
    except RuntimeError:  # the transcript does not fit the audio
        return None
    if len(segments) != len(words):
        return None
    return [
        Word(word, segment.start_frame / FRAMES_PER_S, (segment.end_frame + 1) / FRAMES_PER_S)
        for word, segment in zip(words, segments, strict=True)
    ]


def spoken_words(text: str) -> list[str]:
    """The words of an English transcript as the dictionary has them.

    >>> spoken_words("It wasn't -- so!")
    ['it', "wasn't", 'so']
    """
    return re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower())


@cache
def _aligner() -> Any:
    pocketsphinx = need("pocketsphinx", "forced alignment", 'pip install -e ".[demo]"')
    return pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", lm=None)
