"""Verified results files, which `push.verified` writes: how to read them, and the hash that shows an edit."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core import records
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import DAMAGED_ARRAYS
from speech_robust_bench.core.seeding import FIRST_VERSION, edition_name
from speech_robust_bench.push.leaderboard.verified_shape import VERIFIED
from speech_robust_bench.scoring.runs import digest

SCHEMA = 2
Json = dict[str, Any]


def name_of(content: Json) -> str:
    """A model's full name: `owner/name`."""
    return f"{content['model']['owner']}/{content['model']['name']}"


def edition_of(configs: Mapping[str, Mapping[str, Any]]) -> str:
    """The private edition that results are of, by the versions of their configs; empty for the public one."""
    names = {edition_name(str(entry.get("scenario_version") or FIRST_VERSION)) for entry in configs.values()}
    if len(names) > 1:
        raise UserError(f"has configs of several editions: {', '.join(sorted(name or 'public' for name in names))}")
    return names.pop() if names else ""


def read(path: Path) -> Json:
    """Read a verified file; one that was edited, or is something else, is a UserError."""
    try:
        content = records.read(path, dict[str, Any]) if path.is_file() else {}  # no pipe, which would never end
        whole = content.get("schema") == SCHEMA and content.get("sha256") == digest(content)
    except (OSError, UserError):
        whole = False
    if not whole:
        raise UserError(f"{path.name}: not a verified results file, or changed since; `srb verify --out` writes them")
    if problem := VERIFIED(content):
        raise UserError(f"{path.name}: lacks what the leaderboard shows ({problem})")
    return content


def read_draws(path: Path, verified: Json) -> dict[str, np.ndarray]:
    """The bootstrap replicates that belong to a verified file."""
    try:
        if not path.with_suffix(".npz").is_file():
            raise FileNotFoundError
        data = path.with_suffix(".npz").read_bytes()
    except OSError:
        raise UserError(f"{path.with_suffix('.npz').name}: missing; {path.stem} cannot be compared") from None
    if hashlib.sha256(data).hexdigest() != verified["draws_sha256"]:
        raise UserError(f"{path.with_suffix('.npz').name}: does not belong to {path.name}")
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            draws = dict(arrays)
        sound = all(key.count("/") == 2 and _are_draws(values) for key, values in draws.items())
    except DAMAGED_ARRAYS:
        sound = False
    if not sound:
        raise UserError(f"{path.with_suffix('.npz').name}: is damaged; {path.stem} cannot be compared")
    return draws


def _are_draws(values: np.ndarray) -> bool:
    return values.ndim == 1 and len(values) > 0 and values.dtype.kind == "f" and bool(np.isfinite(values).all())
