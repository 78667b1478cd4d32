"""The hashes that prove a config's content: of one row, of all rows, and of the ids and transcripts alone."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np

_NO_TEXT = "\x00"  # what stands for a transcript that is not known; no text of a row has the character


def row_digest(clip_id: str, text: str | None, pcm: np.ndarray) -> str:
    """Hash of what a recogniser and a scorer see: id, transcript and 16-bit samples, however they are encoded."""
    digest = hashlib.sha256(f"{clip_id}\x1f{_NO_TEXT if text is None else text}\x1f".encode())
    digest.update(np.ascontiguousarray(pcm, dtype="<i2").data)
    return digest.hexdigest()


def content_digest(row_digests: Iterable[str]) -> str:
    """Hash of a config (`content_sha256`): of its rows' hashes, in order."""
    return hashlib.sha256("".join(row_digests).encode()).hexdigest()


def transcripts_digest(pairs: Iterable[tuple[str, str | None]]) -> str:
    """Hash over the ids and transcripts of a config's rows, in order (`rows_sha256`): it needs no audio."""
    digest = hashlib.sha256()
    for clip_id, text in pairs:
        digest.update(f"{clip_id}\x1f{_NO_TEXT if text is None else text}\x1e".encode())
    return digest.hexdigest()
