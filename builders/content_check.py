"""`srb check`: is a built folder still what its manifests say? Every clip is decoded and every hash computed again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from speech_robust_bench.builders.manifests import read_manifest, shard_paths
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.rows import content_digest, row_digest
from speech_robust_bench.core.table_files import row_groups

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
    import io

    import soundfile

    try:
        return soundfile.read(io.BytesIO(data), dtype="int16")[0]
    except soundfile.LibsndfileError as error:
        raise UserError(str(error.error_string)) from None


def matching_configs(root: Path, patterns: Iterable[str]) -> list[str]:
    """The built configs of a folder that names and globs mean; all of them where there is no pattern."""
    from fnmatch import fnmatchcase

    from speech_robust_bench.core.errors import did_you_mean

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
    from speech_robust_bench.builders.manifests import MANIFEST

    return root.glob(f"*/{MANIFEST}")
