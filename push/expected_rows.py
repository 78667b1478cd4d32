"""What a config's predictions must agree with, without the audio: `benchmark.json` beside the published data.

For every config: its rows, hours and hashes. `rows_sha256` is over ids and transcripts, as `srb run` records it, and
`people_sha256` over what else a score depends on and a recogniser does not decide: duration, speaker, gender, age,
accent and language of each clip. So a submission can be checked by anyone, with one small file. The same is kept of the
clips that each suite takes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec.structs import asdict

from speech_robust_bench.builders.manifests import MANIFEST
from speech_robust_bench.core import records
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import NULL, ConfigData, ConfigFacts, Prediction, Record, Whole
from speech_robust_bench.core.result_records import always
from speech_robust_bench.core.rows import transcripts_digest
from speech_robust_bench.core.seeding import FIRST_VERSION, later_version

if TYPE_CHECKING:
    from speech_robust_bench.builders.configs import ClipRow, StoredConfig

NAME = "benchmark.json"
PEOPLE = ("duration", "speaker", "gender", "age", "accent", "language")


class ClipHashes(Record, frozen=True, kw_only=True):
    """How many clips, and the hashes of what a recogniser's lines say of them."""

    rows: Whole
    rows_sha256: str
    people_sha256: str


class Expected(ConfigFacts, frozen=True, kw_only=True):
    """A config of the benchmark, as its predictions must have it, with the hashes of `ClipHashes`."""

    rows: Whole
    rows_sha256: str
    people_sha256: str
    benchmark_version: str
    content_sha256: str
    source: str | None = NULL
    bank: str | None = NULL
    stand_in: bool | None = None
    scenario_version: str = FIRST_VERSION
    suites: dict[str, ClipHashes] = msgspec.field(default_factory=dict)  # rows and hashes of the clips that each takes
    suite: str | None = NULL  # whose clips these are, of a whole config with `of` clips
    of: Whole | None = NULL
    of_sha256: str | None = NULL  # over ids and transcripts of the whole config

    @property
    def config_data(self) -> ConfigData:
        """What run.json must say of the config; the hash of its rows is that of the whole config."""
        return ConfigData(
            **self.facts,
            source=self.source,
            bank=self.bank,
            stand_in=self.stand_in,
            benchmark_version=self.benchmark_version,
            content_sha256=self.content_sha256,
            rows_sha256=self.of_sha256 or self.rows_sha256,
            scenario_version=later_version(self.scenario_version),
        )


def people_digest(lines: Iterable[Prediction | ClipRow]) -> str:
    """Over what a line says of its clip beside id and transcript; durations to the microsecond, as lines have them."""
    digest = hashlib.sha256()
    for line in lines:
        fields: list[Any] = [getattr(line, key) for key in PEOPLE]
        fields[0] = f"{float(fields[0] or 0):.6f}"
        digest.update(json.dumps(fields, ensure_ascii=True).encode() + b"\n")
    return digest.hexdigest()


def of_config(folder: Path) -> Expected:
    """Read a built config; the audio is not touched."""
    from speech_robust_bench.builders.config_sources import BuiltFolder

    return expected_of(BuiltFolder(folder.parent).config(folder.name))


def expected_of(config: StoredConfig) -> Expected:
    """What predictions of an opened config must agree with."""
    from speech_robust_bench.builders.suites import SUITES
    from speech_robust_bench.builders.suites import load as load_suite

    about, manifest = config.about, config.manifest
    if manifest is None:
        raise UserError(f"{config.name}: has no manifest; `srb build` writes one")
    level, ids = parse(config.name).level, [row.id for row in config.rows]
    suites = {}
    for suite in map(load_suite, SUITES):
        if suite.takes_clips and level in ("clean", *suite.members):
            chosen = suite.choose(config.name, ids)
            suites[suite.label] = _hashes(row for row in config.rows if row.id in chosen)
    return Expected(
        benchmark_version=manifest.benchmark_version,
        content_sha256=manifest.content_sha256,
        **asdict(_hashes(config.rows)),
        suites=suites,
        scenario_version=manifest.version,
        source=about.source,
        bank=about.bank,
        stand_in=about.stand_in,
        **about.of_config(config.name).facts,
    )


def _hashes(rows: Iterable[ClipRow]) -> ClipHashes:
    listed = list(rows)
    return ClipHashes(
        rows=len(listed),
        rows_sha256=transcripts_digest((row.id, row.text) for row in listed),
        people_sha256=people_digest(listed),
    )


def of_suite(benchmark: Mapping[str, Expected], label: str) -> dict[str, Expected]:
    """What predictions of a suite must agree with: its configs, and its clips of them. None if it is not known."""
    return {
        config: expected.replace(
            **asdict(expected.suites[label]), suite=label, of=expected.rows, of_sha256=expected.rows_sha256
        )
        for config, expected in benchmark.items()
        if label in expected.suites
    }


class Benchmark(Record, frozen=True, kw_only=True):
    """`benchmark.json`: what is known about every config."""

    schema: Whole = always(1)
    configs: dict[str, Expected]


def to_json(configs: Mapping[str, Expected]) -> str:
    """The content of `benchmark.json`."""
    return records.to_json(Benchmark(configs=dict(sorted(configs.items()))), indent=1).decode()


def from_json(data: str | bytes, where: str = NAME) -> dict[str, Expected]:
    """What a `benchmark.json` says of every config; keys that a later version added are passed over."""
    configs = records.decode(data, Benchmark, where).configs
    try:
        for config in configs:
            parse(config)
    except UserError as problem:
        raise UserError(f"{where}: {problem}") from None
    return configs


def load(where: str) -> dict[str, Expected]:
    """The expected rows: from `benchmark.json`, a built folder, or a dataset on the Hub (`ORG/srb[@revision]`)."""
    path = Path(where)
    if path.is_file():
        return from_json(path.read_bytes(), where)
    if path.is_dir():
        folders = sorted(manifest.parent for manifest in path.glob(f"*/{MANIFEST}"))
        if not folders:
            raise UserError(f"--data {where}: no built config in it (<config>/{MANIFEST})")
        return {folder.name: of_config(folder) for folder in folders}
    if re.fullmatch(r"[\w.-]+/[\w.-]+(@[\w.-]+)?", where):
        from speech_robust_bench.push.hub import Hub

        repo, _, revision = where.partition("@")
        return from_json(Hub().read(repo, "dataset", NAME, revision or "main"))
    raise UserError(f"--data {where}: no such folder or file; point to the built data, benchmark.json, or ORG/srb")
