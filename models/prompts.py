"""What goes into a prompt, and what comes out of the answer to one.

Terms that a recogniser is told to expect (`?terms=FILE`): names, products, commands, one on each line of a file.

A language model's answer without the words around the transcript: 'The speech says: "hello"' -> 'hello'. In this order:
1. A first line of at most 15 words that names the audio (audio, speech, recording, clip, speaker, transcript,
   transcription) and ends in a colon, alone or before the rest of the line, is dropped. It may begin with a courtesy
   (Sure, Certainly, Of course, Here is).
2. One pair of quotation marks (or a block in three backticks) around all that is left is dropped.
Nothing else is touched: a transcript that holds a colon or quotes keeps them. The answer as it came is stored beside.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Transcript

MOST = 1_000


def read_terms(file: str | Path) -> list[str]:
    """The terms of a file in its order, each once; empty lines and lines that begin with # are passed over."""
    path = Path(file)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as a list of terms, one on each line ({error})") from None
    terms = list(dict.fromkeys(" ".join(line.split()) for line in lines if line.strip() and not line.startswith("#")))
    if not 1 <= len(terms) <= MOST:
        raise UserError(f"{path}: has {len(terms)} terms; a list has 1 to {MOST}, one on each line")
    return terms


def fingerprint(terms: list[str]) -> str:
    """What run.json keeps of the terms of a run: how many there were, and their hash."""
    return f"{len(terms)} terms, sha256:{hashlib.sha256(chr(10).join(terms).encode()).hexdigest()[:16]}"


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
