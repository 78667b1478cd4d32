"""A finished config's `_manifest.json`: what it was made from, and the hash that proves its content.

`srb check`: is a built folder still what its manifests say? Every clip is decoded and every hash computed again.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from speech_robust_bench.builders.row_generator import SCHEMA
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.records import Manifest, decode
from speech_robust_bench.core.rows import content_digest, row_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.core.table_files import count_rows, damage_named, row_groups

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


Progress = Callable[[str, int], Callable[[int], None]]


def check_configs(root: Path, configs: Sequence[str], engine: Engine, progress: Progress) -> dict[str, str]:
    """The problems of each config that is not as it was built; empty where all are."""
    wrong: dict[str, str] = {}
    work: list[tuple[str, Path]] = []
    expected: dict[str, tuple[int, str]] = {}
    for config in configs:
        try:
            manifest = read_manifest(root / config)
            work += [(config, path.absolute()) for path in shard_paths(root / config, manifest)]
            expected[config] = manifest.rows, manifest.content_sha256
        except UserError as error:
            wrong[config] = str(error)
    rows = sum(count for count, _ in expected.values())
    digests: dict[str, list[str]] = {config: [] for config in expected}
    results = engine.map(_row_digests, [path for _, path in work], progress("checking", rows))
    for (config, path), result in zip(work, results, strict=True):
        if isinstance(result, str):
            wrong.setdefault(config, f"{path}: {result}")
        else:
            digests[config] += result
    for config, (_, content) in expected.items():
        if config not in wrong and content_digest(digests[config]) != content:
            wrong[config] = f"{root / config}: its rows are sound, but not those that its manifest was written for"
    return wrong


def _row_digests(path: Path, tick: Callable[[int], None]) -> list[str] | str:
    """The hash of each row of a shard, computed from its audio; or what is wrong with the first bad row."""
    digests = []
    try:
        for clip_id, text, data, stored in _rows(path):
            digest = row_digest(clip_id, text, _pcm(data))
            if digest != stored:
                return f"clip '{clip_id}' is not as it was built"
            digests.append(digest)
            tick(1)
    except (UserError, ValueError, OSError) as error:
        return f"is damaged ({' '.join(str(error).split())[:120]})"
    return digests


def _rows(path: Path) -> Iterator[tuple[str, str, bytes, str]]:
    """Id, transcript, encoded audio and stored hash of each row, one row group in memory at a time."""
    import pyarrow as pa

    try:
        for table in row_groups(path, ["id", "text", "audio", "sha256"]):
            for row in table.to_pylist():
                yield row["id"], row["text"], row["audio"]["bytes"], row["sha256"]
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise UserError(str(error)) from None


def _pcm(data: bytes):

    import soundfile

    try:
        return soundfile.read(io.BytesIO(data), dtype="int16")[0]
    except soundfile.LibsndfileError as error:
        raise UserError(str(error.error_string)) from None


def matching_configs(root: Path, patterns: Iterable[str]) -> list[str]:
    """The built configs of a folder that names and globs mean; all of them where there is no pattern."""

    built = sorted({path.parent.name for path in root.glob("*/*.parquet")} | {p.parent.name for p in _manifests(root)})
    if not built:
        raise UserError(f"{root} has no built configs; make some with srb build CONFIG --out {root}")
    chosen: dict[str, None] = {}
    for pattern in list(patterns) or ["*"]:
        matching = [config for config in built if fnmatchcase(config, pattern)]
        if not matching:
            raise UserError(f"{root} has no config '{pattern}'; {did_you_mean(pattern, built)}")
        chosen.update(dict.fromkeys(matching))
    return list(chosen)


def _manifests(root: Path) -> Iterable[Path]:

    return root.glob(f"*/{MANIFEST}")
