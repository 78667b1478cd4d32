"""Parquet and Arrow files: one that is torn, or lacks a column that it should have, is one line, not a traceback."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from srb.core.errors import UserError


@contextmanager
def damage_named(path: Path, way_out: str | None = None) -> Iterator[None]:
    """Whatever pyarrow says while a file is read becomes a `UserError` that names the file and the way out.

    Text in such a file is bytes until it is asked for, so that also half a character is met here.
    """
    import pyarrow as pa

    try:
        yield
    except UserError:
        raise
    except (pa.ArrowException, OSError, StopIteration, UnicodeDecodeError, KeyError) as error:
        reason = " ".join(str(error).split())[:120]
        way_out = way_out or f"build or fetch {path.parent.name} again"
        raise UserError(f"{path}: is damaged ({reason}); {way_out}") from None
