"""The random stream of one clip in one config.

It is a pure function of (benchmark version, corpus, clip id, scenario, severity), so a config has the same bytes on
every machine, with any number of workers, on any engine, whatever else is built beside it.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError

# Part of every stream: raise it only together with a new edition of the benchmark data.
BENCHMARK_VERSION = "1"
SECRET_BYTES = 16
FIRST_VERSION = "1"  # of a scenario
PRIVATE = "-private-"  # between a scenario's version and the name of a private edition


def clip_rng(corpus: str, clip_id: str, scenario: str, severity: float, seed: str = "") -> np.random.Generator:
    """The stream of one clip under one scenario and severity; `seed` sets apart a user's own variations."""
    level = f"{severity:g}"  # 3 and 3.0 are one severity
    key = "\x1f".join((BENCHMARK_VERSION, corpus, clip_id, scenario, level, seed))
    digest = hashlib.blake2b(key.encode(), digest_size=16).digest()
    return np.random.Generator(np.random.SFC64(int.from_bytes(digest, "little")))


def later_version(version: str) -> str | None:
    """What a manifest or a record says of a scenario's version: nothing of the first, so that old files stay valid."""
    return None if version == FIRST_VERSION else version


def secret_seed(secret: bytes) -> str:
    """The `seed` of a private edition: without the secret nobody can draw the same, and it does not show the secret."""
    if not secret:
        return ""
    return hashlib.blake2b(b"srb private edition 2", key=hashlib.sha512(secret).digest(), digest_size=32).hexdigest()


def edition_version(version: str, seed: str) -> str:
    """A scenario's version in an edition: `1`, or `1-private-3fa1c2d4` with the name that a secret's edition has.

    Whatever keeps versions apart (verification, tables, comparisons, rankings) so keeps editions apart too.
    """
    if not seed:
        return version
    return f"{version}{PRIVATE}{hashlib.blake2b(seed.encode(), digest_size=4).hexdigest()}"


def edition_name(version: str) -> str:
    """The private edition that a scenario's version belongs to; empty for the public one.

    >>> edition_name("1-private-3fa1c2d4"), edition_name("1")
    ('private-3fa1c2d4', '')
    """
    _, private, name = version.partition(PRIVATE)
    return f"{PRIVATE[1:]}{name}" if private else ""


def read_secret(path: Path) -> bytes:
    """The secret of a private edition, from a file; one that could be guessed is refused."""
    try:
        secret = path.read_bytes().strip()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None
    if len(secret) < SECRET_BYTES:
        raise UserError(f"{path}: a secret has at least {SECRET_BYTES} bytes; make one with `openssl rand -hex 32`")
    return secret


def content_id(samples: np.ndarray) -> str:
    """An id for a clip that has no other: the hash of its samples, wherever the file lies."""
    return hashlib.blake2b(np.ascontiguousarray(samples).tobytes(), digest_size=16).hexdigest()
