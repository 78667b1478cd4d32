"""A finished config's `_manifest.json`: what it was made from, and the hash that proves its content."""

from __future__ import annotations

import hashlib
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Manifest, decode
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.core.table_files import count_rows, damage_named

CACHE_MARKER = ".datasets-cache"  # in a folder whose configs `build` keeps as the cache of `datasets` does
MANIFEST = "_manifest.json"  # with the underscore pandas and pyarrow read the folder as the parquet files in it


def read_manifest(config: Path) -> Manifest:
    """The manifest in a config's folder, with all that readers rely on."""
    path = config / MANIFEST
    try:
        return parse_manifest(path.read_bytes(), config.name)
    except (OSError, UserError):
        raise UserError(f"{path}: is damaged; remove {config} and build it again") from None


def parse_manifest(data: bytes, config: str) -> Manifest:
    """The manifest of a config from the bytes of its file."""
    manifest = decode(data, Manifest, f"{config}/{MANIFEST}")
    if manifest.config != config or any(Path(name).name != name for name in manifest.files):
        raise UserError(f"{config}/{MANIFEST}: is not the manifest of that config")
    return manifest


def manifests(out: Path) -> dict[str, Manifest]:
    """The manifests of the complete configs in a folder, by config name."""
    return {path.parent.name: read_manifest(path.parent) for path in sorted(out.glob(f"*/{MANIFEST}"))}


def shard_paths(config: Path, manifest: Manifest, again: str | None = None) -> list[Path]:
    """The files of a config, after a look at each: all there, readable, and with the manifest's rows in total.

    Reads the files' footers alone; `srb check` reads and hashes everything. `again` says how to make it anew.
    """
    paths = arrow_paths(config, manifest) or [config / name for name in manifest.files]
    again = again or f"`srb build {config.name} --out {config.parent}` with the options of the first time makes it anew"
    rows = sum(_rows_in(path, again) for path in paths)
    if rows != manifest.rows:
        raise UserError(f"{config}: holds {rows} rows where its manifest says {manifest.rows}; {again}")
    return paths


def _rows_in(path: Path, again: str) -> int:
    if not path.is_file():
        raise UserError(f"{path}: is missing; {again}")
    with damage_named(path, again):
        return count_rows(path)


def parquet_paths(config: Path, manifest: Manifest) -> list[Path]:
    """The parquet files of a config, for what can work with nothing else."""
    paths = shard_paths(config, manifest)
    if paths[0].suffix == ".arrow":
        raise UserError(
            f"{config}: is in the cache of `datasets` alone, as Arrow; `srb build {config.name} --out FOLDER` with the "
            "options of the first time makes parquet"
        )
    return paths


def edition(manifest: Manifest) -> str:
    """A short hash of a config's rows and columns, for caches: `datasets` keys its cache by what the card says.

    Without it, `load_dataset` would go on serving what it cached before a config was built anew.
    """
    from speech_robust_bench.builders.row_generator import SCHEMA

    columns = manifest.columns or SCHEMA.names
    return hashlib.sha256(f"{manifest.content_sha256} {columns}".encode()).hexdigest()[:16]


def edition_folder(manifest: Manifest) -> str:
    """Where in a config's folder the `datasets` cache keeps this edition of it."""
    return f"{BENCHMARK_VERSION}.0.0/{edition(manifest)}"


def arrow_paths(config: Path, manifest: Manifest) -> list[Path]:
    """The Arrow files of a config in the `datasets` cache; none where the config is parquet."""
    if (config / manifest.files[0]).exists():
        return []
    return sorted((config / edition_folder(manifest)).glob("*-test*.arrow"))
