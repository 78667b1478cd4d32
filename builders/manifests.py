"""What a built folder says of itself: the `_manifest.json` of each config, `srb check`, and the dataset card.

A manifest says what a config was made from and proves its content. `srb check` decodes every clip and computes every
hash again. The card is README.md. Its YAML header lists every config with its data files, which is what
`load_dataset("srb", "en_noise_sev3")` reads. It has no `dataset_info`: with hundreds of configs that makes loading
several times slower.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

import pyarrow as pa
import soundfile

from speech_robust_bench.builders.row_generator import SCHEMA
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core import BIBTEX
from speech_robust_bench.core.categories import CATEGORIES
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError, did_you_mean, for_markdown
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.records import Manifest, decode
from speech_robust_bench.core.rows import content_digest, row_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.core.untrusted_files import count_rows, damage_named, row_groups

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
    try:
        for table in row_groups(path, ["id", "text", "audio", "sha256"]):
            for row in table.to_pylist():
                yield row["id"], row["text"], row["audio"]["bytes"], row["sha256"]
    except (pa.ArrowException, KeyError, TypeError) as error:
        raise UserError(str(error)) from None


def _pcm(data: bytes):

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


TITLE = "Speech Robust Bench"
SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))


def write_card(out: Path) -> None:
    """Write the card of the configs that are complete in `out`."""
    complete = list(manifests(out).values())
    if complete:
        with replacing(out / "README.md") as part:
            part.write_text(make_card(complete), encoding="utf-8")


def check_card_place(out: Path) -> None:
    """Refuse to write the card over a README.md that is somebody's own."""
    path = out / "README.md"
    if path.exists() and not _is_card(path):
        raise UserError(f"{path}: is not a dataset card that `srb build` wrote; use another --out, or move it away")


def _is_card(path: Path) -> bool:
    try:
        with path.open(encoding="utf-8") as file:
            return file.readline() == "---\n" and file.readline() == f"pretty_name: {TITLE}\n"
    except (OSError, UnicodeDecodeError):
        return False


def _parquet_of(manifest: Manifest) -> str:
    return f"{manifest.config}/test-*.parquet"


def make_card(manifests: list[Manifest], files_of: Callable[[Manifest], str] = _parquet_of) -> str:
    """The card's text; `files_of` says where the rows of a config are."""
    import yaml

    header = {
        "pretty_name": TITLE,
        "language": sorted({manifest.language for manifest in manifests}),
        "license": _licence(manifests),
        "task_categories": ["automatic-speech-recognition"],
        "tags": ["robustness", "benchmark", "speech"],
        "size_categories": [_size(sum(manifest.rows for manifest in manifests))],
        "configs": [
            {
                "config_name": manifest.config,
                "data_files": [{"split": "test", "path": files_of(manifest)}],
                "description": f"edition {edition(manifest)}",
            }
            for manifest in manifests
        ],
    }
    parts = [
        f"---\n{yaml.safe_dump(header, sort_keys=False, allow_unicode=True)}---\n",
        f"# {TITLE}\n",
        "How much accuracy does a speech recogniser lose when the world is not clean? Every config is one scenario at "
        "one severity, made from (or compared with) a clean config.\n",
        "```python\nfrom datasets import load_dataset\n\n"
        f'load_dataset("srb", "{manifests[-1].config}", split="test")\n```\n'
        "\nReading a row decodes its audio, which needs `torchcodec` (the extra `[audio]`). The light way is "
        '`.cast_column("audio", datasets.Audio(decode=False))`: each row then has the bytes of a FLAC file, which '
        "`soundfile` reads.\n",
        f"## Sources\n\n{_sources(manifests)}\n",
        f"## Configs\n\n{_configs(manifests)}\n",
        "## How it was made\n\n"
        "Each clip is decoded to mono at 16 kHz, put under the scenario by a pure function, clipped to [-1, 1] and "
        "stored as 16-bit FLAC. The random stream of a clip is a function of the benchmark version "
        f"({manifests[0].benchmark_version}), corpus, clip id, scenario and severity, so anyone can make the same "
        "samples again; the column `sha256` and the manifests' `content_sha256` prove it. A row tells what was drawn "
        "(`parameters`), the SNR reached and how many samples were clipped.\n",
        f"## Citation\n\n```bibtex\n{BIBTEX}```\n",
    ]
    return "\n".join(parts)


def _licence(manifests: list[Manifest]) -> str:
    """The Hub knows one licence or `other`; the table of sources says which is whose."""
    licences = {(manifest.corpus.licence or "").lower() for manifest in manifests}
    only = licences.pop()
    return only if not licences and only and " " not in only else "other"


def _size(rows: int) -> str:
    return next((name for limit, name in SIZES if rows < limit), "n>1M")


def _sources(manifests: list[Manifest]) -> str:
    corpora = {manifest.corpus.name: manifest.corpus for manifest in manifests}
    lines = ["| corpus | licence | where | note |", "|---|---|---|---|"]
    for corpus in corpora.values():
        note = corpus.note or ("" if corpus.derivatives_allowed else "no derivatives: not to be published")
        cells = (corpus.title, corpus.licence, corpus.url, note)
        lines.append(f"| {' | '.join(for_markdown(str(cell)) for cell in cells)} |")
    banks = sorted({for_markdown(manifest.bank) for manifest in manifests if manifest.bank})
    return "\n".join(lines) + (f"\n\nNoises and rooms: {'; '.join(banks)}." if banks else "")


def _configs(manifests: list[Manifest]) -> str:
    lines = ["| config | category | parameters | clips | hours |", "|---|---|---|---|---|"]
    order = list(CATEGORIES)
    for manifest in sorted(manifests, key=lambda item: (order.index(item.category), item.config)):
        value = ", ".join(f"{key} {given}" for key, given in manifest.parameters.items())
        what = value or (SCENARIOS[manifest.scenario].help if manifest.scenario in SCENARIOS else "")
        hours = manifest.seconds / 3600
        lines.append(f"| `{manifest.config}` | {manifest.category} | {what} | {manifest.rows} | {hours:.2f} |")
    return "\n".join(lines)
