"""A finished config's `_manifest.json`: what it was made from, and the hash that proves its content."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from srb.core.errors import UserError

MANIFEST = "_manifest.json"  # with the underscore pandas and pyarrow read the folder as the parquet files in it
# What every reader relies on, and what it has to be.
_NEEDED: dict[str, type | tuple[type, ...]] = {
    "config": str,
    "language": str,
    "scenario": str,
    "category": str,
    "severity": int,
    "parameters": dict,
    "corpus": dict,
    "benchmark_version": str,
    "content_sha256": str,
    "rows": int,
    "seconds": (int, float),
    "files": list,
}


def read_manifest(config: Path) -> dict[str, Any]:
    """The manifest in a config's folder, with all that readers rely on."""
    path = config / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        sound = all(isinstance(manifest[key], kind) for key, kind in _NEEDED.items())
        sound = sound and all(isinstance(name, str) and Path(name).name == name for name in manifest["files"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        sound = False
    if not sound or manifest["config"] != config.name:
        raise UserError(f"{path}: is damaged; remove {config} and build it again")
    return manifest


def manifests(out: Path) -> dict[str, dict[str, Any]]:
    """The manifests of the complete configs in a folder, by config name."""
    return {path.parent.name: read_manifest(path.parent) for path in sorted(out.glob(f"*/{MANIFEST}"))}


def shard_paths(config: Path, manifest: dict[str, Any]) -> list[Path]:
    """The parquet files of a config, after a look at each: all there, readable, and with the manifest's rows in total.

    Reads the files' footers alone; `srb check` reads and hashes everything.
    """
    paths = [config / name for name in manifest["files"]]
    again = f"`srb build {config.name} --out {config.parent}` with the options of the first time makes it anew"
    rows = sum(_rows_in(path, again) for path in paths)
    if rows != manifest["rows"]:
        raise UserError(f"{config}: holds {rows} rows where its manifest says {manifest['rows']}; {again}")
    return paths


def _rows_in(path: Path, again: str) -> int:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.read_metadata(path).num_rows
    except FileNotFoundError:
        raise UserError(f"{path}: is missing; {again}") from None
    except (OSError, pa.ArrowException):
        raise UserError(f"{path}: is damaged; {again}") from None
