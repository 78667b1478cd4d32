"""Verified results files, which `push.verified` writes: how to read them, and the hash that shows an edit."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import DAMAGED_ARRAYS
from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.core.records import convert, decode
from speech_robust_bench.core.result_records import VerifiedResults, digest
from speech_robust_bench.core.seeding import edition_name

SCHEMA = 2


class VersionedConfig(Protocol):
    """A config's entry in results.json or in a verified file."""

    @property
    def version(self) -> str: ...


def edition_of(configs: Mapping[str, VersionedConfig]) -> str:
    """The private edition that results are of, by the versions of their configs; empty for the public one."""
    names = {edition_name(entry.version) for entry in configs.values()}
    if len(names) > 1:
        raise UserError(f"has configs of several editions: {', '.join(sorted(name or 'public' for name in names))}")
    return names.pop() if names else ""


def read(path: Path) -> VerifiedResults:
    """Read a verified file; one that was edited, or is something else, is a UserError."""
    try:
        data = path.read_bytes() if path.is_file() else b""  # no pipe, which would never end
    except OSError:
        data = b""
    return parse(data, path.name)


def parse(data: bytes, name: str) -> VerifiedResults:
    """The content of a verified file, checked when it is read and before it is written."""
    try:
        content = decode(data, dict, name)
    except UserError:
        content = {}
    if content.get("schema") != SCHEMA or content.get("sha256") != digest(content):
        raise UserError(f"{name}: not a verified results file, or changed since; `srb verify --out` writes them")
    try:
        verified = convert(content, VerifiedResults)
    except ValueError as problem:
        raise UserError(f"{name}: lacks what the leaderboard shows ({problem})") from None
    if odd := next((code for code in verified.languages if not is_language_code(code)), None):  # a page is named so
        raise UserError(f"{name}: lacks what the leaderboard shows ('languages' has '{odd[:40]}')")
    return verified


def draws_path(path: Path, verified: VerifiedResults) -> Path:
    """Where the replicates of a verified file are: under their hash, so that a new version never replaces them.

    The first verified files had them under the model's name alone.
    """
    own = path.with_name(f"{path.stem}--{verified.draws_sha256[:16]}.npz")
    return own if own.is_file() else path.with_suffix(".npz")


def read_draws(path: Path, verified: VerifiedResults) -> dict[str, np.ndarray]:
    """The bootstrap replicates that belong to a verified file."""
    place = draws_path(path, verified)
    try:
        if not place.is_file():
            raise FileNotFoundError
        data = place.read_bytes()
    except OSError:
        raise UserError(f"{place.name}: missing; {path.stem} cannot be compared") from None
    if hashlib.sha256(data).hexdigest() != verified.draws_sha256:
        raise UserError(f"{place.name}: does not belong to {path.name}")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            draws = dict(arrays)
        sound = all(key.count("/") == 2 and _are_draws(values) for key, values in draws.items())
    except DAMAGED_ARRAYS:
        sound = False
    if not sound:
        raise UserError(f"{place.name}: is damaged; {path.stem} cannot be compared")
    return draws


def _are_draws(values: np.ndarray) -> bool:
    return values.ndim == 1 and len(values) > 0 and values.dtype.kind == "f" and bool(np.isfinite(values).all())
