"""Verified results files, which `srb.push.verified` writes: how to read them, and the hash that shows an edit."""

from __future__ import annotations

import hashlib
import io
import json
from pathlib import Path
from typing import Any

import numpy as np

from srb.core.errors import UserError
from srb.metrics.integrity import digest

SCHEMA = 2
Json = dict[str, Any]


def name_of(content: Json) -> str:
    """A model's full name: `owner/name`."""
    return f"{content['model']['owner']}/{content['model']['name']}"


def read(path: Path) -> Json:
    """Read a verified file; one that was edited, or is something else, is a UserError."""
    try:
        content = json.loads(path.read_text("utf-8"))
        whole = content.get("schema") == SCHEMA and content.get("sha256") == digest(content)
    except (OSError, ValueError, AttributeError, RecursionError):
        whole = False
    if not whole:
        raise UserError(f"{path.name}: not a verified results file, or changed since; `srb verify --out` writes them")
    return content


def read_draws(path: Path, made: Json) -> dict[str, np.ndarray]:
    """The bootstrap replicates that belong to a verified file."""
    try:
        data = path.with_suffix(".npz").read_bytes()
    except OSError:
        raise UserError(f"{path.with_suffix('.npz').name}: missing; {path.stem} cannot be compared") from None
    if hashlib.sha256(data).hexdigest() != made["draws_sha256"]:
        raise UserError(f"{path.with_suffix('.npz').name}: does not belong to {path.name}")
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
        return dict(arrays)
