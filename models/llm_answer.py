"""A language model's answer without the words around the transcript: 'The speech says: "hello"' -> 'hello'.

The rule, in this order:
1. A first line of at most 15 words that names the audio (audio, speech, recording, clip, speaker, transcript,
   transcription) and ends in a colon, alone or before the rest of the line, is dropped. It may begin with a courtesy
   (Sure, Certainly, Of course, Here is).
2. One pair of quotation marks (or a block in three backticks) around all that is left is dropped.
Nothing else is touched: a transcript that holds a colon or quotes keeps them. The answer as it came is stored beside.
"""

from __future__ import annotations

import re

from speech_robust_bench.models.interface import Transcript

PROMPT = "Transcribe the speech word for word, and write nothing else."

_NAMES = r"audio|speech|recording|clip|speaker|transcript|transcription|transcribed"
_LEAD = re.compile(rf"(?=[^:\n]*\b(?:{_NAMES})\b)(?:[^\s:]+[ \t]+){{0,14}}[^\s:]+[ \t]*:\s*", re.IGNORECASE)
_QUOTES = {'"': '"', "“": "”", "«": "»", "'": "'", "‘": "’", "„": "“", "「": "」"}


def unwrap(answer: str) -> str:
    """The transcript in an answer."""
    text = answer.strip()
    if lead := _LEAD.match(text):
        text = text[lead.end() :].strip()
    if text.startswith("```") and text.endswith("```") and len(text) > 6:
        text = text[3:-3].strip()
    if len(text) > 1 and _QUOTES.get(text[0]) == text[-1] and _only_pair(text):
        text = text[1:-1].strip()
    return text


def with_raw(text: str, raw: str) -> str:
    """A transcript with the answer that it was taken from, where that is more."""
    details = text.details if isinstance(text, Transcript) else {}
    return text if text == raw else Transcript(text, **details, raw_text=raw)


def raw_text(text: str) -> str:
    """The answer that a transcript was taken from."""
    return text.details.get("raw_text", text) if isinstance(text, Transcript) else text


def _only_pair(text: str) -> bool:
    """Whether the outer marks belong together: `"a" and "b"` is not one quotation."""
    return text[0] not in text[1:-1] and text[-1] not in text[1:-1]
