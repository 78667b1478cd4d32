"""Where the words of a clip lie, by forced alignment of its transcript (PocketSphinx, English, offline).

A word that is not in the dictionary is spelled by a rough letter-to-sound rule: its neighbours hold it in place.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from speech_robust_bench.core.audio import RATE, Samples, to_pcm16
from speech_robust_bench.core.errors import UserError, install_hint

LANGUAGE = "en"  # of the acoustic model that PocketSphinx carries
FRAMES_PER_S = 100
_SOUNDS = "AE B K D EH F G HH IH JH K L M N AO P K R S T AH V W K Y Z"
_LETTERS = dict(zip("abcdefghijklmnopqrstuvwxyz", _SOUNDS.split(), strict=True))


def align(clip: Samples, text: str) -> list[tuple[str, float, float]] | None:
    """Word, start and end in seconds of each word of a transcript in a clip at 16 kHz; None where they do not fit."""
    words = spoken_words(text)
    if not words or not len(clip):
        return None
    # Where a clip ends with its last word, PocketSphinx may leave that word out; faint noise after it helps.
    found = _aligned(clip, words) or _aligned(np.concatenate([clip, _faint_noise()]), words)
    if found is None:
        return None
    seconds = len(clip) / RATE
    return [(word, min(start, seconds), min(end, seconds)) for word, start, end in found]


def _aligned(clip: Samples, words: list[str]) -> list[tuple[str, float, float]] | None:
    decoder = _aligner()
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
        (word, segment.start_frame / FRAMES_PER_S, (segment.end_frame + 1) / FRAMES_PER_S)
        for word, segment in zip(words, segments, strict=True)
    ]


@cache
def _faint_noise() -> Samples:
    """Half a second of white noise at -60 dB, always the same."""
    return (1e-3 * np.random.default_rng(0).standard_normal(RATE // 2)).astype(np.float32)


def spoken_words(text: str) -> list[str]:
    """The words of an English transcript as the dictionary has them.

    >>> spoken_words("It wasn't -- so!")
    ['it', "wasn't", 'so']
    """
    return re.findall(r"[a-z]+(?:'[a-z]+)*", text.lower())


@cache
def _aligner() -> Any:
    try:
        import pocketsphinx
    except ImportError:
        raise UserError(f"forced alignment needs pocketsphinx: {install_hint('demo')}") from None
    return pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", lm=None)
