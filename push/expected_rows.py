"""What a config's predictions must agree with: `benchmark.json` beside the published data.

For every config: its rows, hours and hashes. `rows_sha256` is over ids and transcripts, as `srb run` records it, and
`people_sha256` over what else a score depends on and a recogniser does not decide: duration, speaker, gender, age,
accent and language of each clip. So a submission can be checked by anyone, with one small file and no audio. The same
is kept of the clips that each suite takes.

An adversarial config, whose name carries a model, belongs to that model alone: nobody else's may stand in for it, and
nobody else has to have it. What it is follows from its audio, not from what is said about it: every row must be the
clean clip of the benchmark plus a perturbation inside the scenario's bound, and the hash that the predictions name must
be that of this audio. How it was made (attack, steps, model, revision) is what its manifest says; an attack milder than
the standard one, or one that leaves most of its bound unused, is refused.
"""

from __future__ import annotations

import hashlib
import json
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
import pyarrow.parquet as pq
from msgspec.structs import asdict

from speech_robust_bench.attacks.registry import standard_attacks, weakness
from speech_robust_bench.builders.config_sources import StoredSource, open_data
from speech_robust_bench.builders.configs import StoredConfig, frames_of
from speech_robust_bench.builders.manifests import MANIFEST
from speech_robust_bench.builders.perturb.environment import snr_db
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core import records
from speech_robust_bench.core.audio import read, to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.records import (
    NULL,
    ConfigData,
    ConfigFacts,
    Prediction,
    Record,
    RunRecord,
    Settings,
    Whole,
)
from speech_robust_bench.core.result_records import always
from speech_robust_bench.core.rows import content_digest, row_digest, transcripts_digest
from speech_robust_bench.core.secrets import without_folders
from speech_robust_bench.core.seeding import FIRST_VERSION, later_version
from speech_robust_bench.core.untrusted_files import Refused, count_rows, row_groups
from speech_robust_bench.models.interface import parse_spec
from speech_robust_bench.push.submitted_files import shown

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


UNUSED_DB = 3.0  # the median SNR of the standard attacks is at the bound; this far above it is another attack
LEFT_OUT = 0.02  # share of clips that may be missing: silent, or longer than the model takes
ROUNDING_DB = 1e-6
AUDIO_BYTES = 50_000_000  # of one clip


@dataclass(frozen=True)
class Submitted:
    """What the checks need of a submission: its run.json, and where its adversarial audio is."""

    run: RunRecord
    places: tuple[str, ...]  # of built folders or datasets, searched in this order

    def find(self, config: str) -> StoredConfig:
        """A config by name, from the first place that has it."""
        for place in self.places:
            try:
                data: StoredSource = open_data(place)
            except UserError:
                continue
            if config in data.names():
                return data.config(config)
        where = ", ".join(shown(place) for place in self.places) or "nowhere"
        raise Refused(f"its audio was looked for in {where}; say where it is with --adversarial")


def owner_of(config: str) -> str | None:
    """The model in a config's name."""
    return parse(config).model


def own_configs(
    configs: Sequence[str], benchmark: Mapping[str, Expected], submitted: Submitted
) -> tuple[dict[str, Expected], list[str]]:
    """What the predictions of a submission's own adversarial configs must agree with, and why some are refused."""
    owned = [config for config in configs if owner_of(config)]
    reasons = _incomplete(owned, configs)
    expected: dict[str, Expected] = {}
    for config in owned if not reasons else []:
        try:
            expected[config] = _check(config, benchmark, submitted)
        except (Refused, UserError) as reason:
            reasons.append(f"{config}: {reason}")
    return expected, reasons


def _incomplete(owned: Sequence[str], configs: Sequence[str]) -> list[str]:
    """Equal attacks are compared: every severity, on every clean config of the language, under one model's name."""
    names = [parse(config) for config in owned]
    reasons = []
    if len({name.model for name in names}) > 1:
        models = ", ".join(sorted({name.model or "" for name in names}))
        reasons.append(f"adversarial configs of several models ({models}); a submission has those of its own model")
    clean = [parse(config) for config in configs if parse(config).scenario == "clean"]
    for language, scenario, model in sorted({(n.language, n.scenario, n.model or "") for n in names}):
        if scenario not in standard_attacks():
            reasons.append(f"'{scenario}' is no attack of the leaderboard; those are {', '.join(standard_attacks())}")
            continue
        corpora = {name.corpus for name in clean if name.language == language}
        for corpus in sorted(corpora, key=str):
            for severity in SCENARIOS[scenario].levels:
                wanted = str(ConfigName(language, scenario, severity, corpus, model))
                if wanted not in owned:
                    reasons.append(f"{wanted}: missing; an attack is submitted at every severity on every clean config")
    return reasons


def _check(config: str, benchmark: Mapping[str, Expected], submitted: Submitted) -> Expected:
    """Check one config from its audio; returns what its predictions must agree with."""
    attacked = submitted.find(config)
    name = parse(config)
    source = str(name.clean)
    if source not in benchmark:
        raise Refused(f"made from {source}, which the benchmark does not have")
    manifest = attacked.manifest
    settings = manifest.attack if manifest else None
    if manifest is None or settings is None or manifest.config != config:
        raise Refused("has no manifest that says how it was made; `srb attack` writes one")
    if reason := weakness(name.scenario, settings):
        raise Refused(f"not the standard attack: {reason}")
    _check_model(settings, submitted.run)
    bound_db = SCENARIOS[name.scenario].value(name.severity)
    assert bound_db is not None
    content = _check_audio(attacked, submitted.find(source), benchmark[source], bound_db)
    expected = expected_of(attacked)
    facts = (expected.content_sha256, expected.scenario, expected.severity, expected.source)
    if facts != (content, name.scenario, name.severity, source):
        raise Refused("its manifest does not describe its audio")
    return expected


def _check_model(settings: Settings, run: RunRecord) -> None:
    """The attacked model is the submitted one: the same weights, with the same options."""
    ours, theirs = (_decisive(spec) for spec in (settings.get("model"), run.spec))
    if ours is None or ours != theirs:
        raise Refused(f"attacks {shown(str(settings.get('model')))}, the submission is of {shown(str(run.spec))}")
    if settings.get("revision") is None or settings.get("revision") != run.revision:
        raise Refused(
            f"attacks revision {shown(str(settings.get('revision')))} of the model, the submission is of "
            f"{shown(str(run.revision))}"
        )


def _decisive(spec: object) -> tuple[str, str, Settings] | None:
    if not isinstance(spec, str):
        return None
    parsed = parse_spec(without_folders(spec))
    return parsed.adapter, parsed.target, parsed.decisive


def _check_audio(attacked: StoredConfig, clean: StoredConfig, expected: Expected, bound_db: float) -> str:
    """Compare every clip with its clean clip; returns the content hash of the attacked audio."""
    left = expected.rows - sum(map(count_rows, attacked.files))
    if not 0 <= left <= LEFT_OUT * expected.rows:
        raise Refused(f"{left} of {expected.rows} clips left out; {LEFT_OUT:.0%} may be")
    digests, clean_digests, reached = [], [], []
    perturbed = _clips(attacked)
    waiting = next(perturbed, None)
    for clip, text, samples in _clips(clean):
        clean_digests.append(row_digest(clip, text, to_pcm16(samples)))
        if waiting is None or waiting[0] != clip:
            continue
        _, its_text, changed = waiting
        if its_text != text or len(changed) != len(samples):
            raise Refused(f"{shown(clip)}: has another transcript or length than its clean clip")
        snr = snr_db(samples, changed)
        if snr is not None and snr < bound_db - ROUNDING_DB:
            raise Refused(f"{shown(clip)}: is at {snr:.2f} dB of its clean clip, the bound is {bound_db:g} dB")
        reached.append(float("inf") if snr is None else snr)
        digests.append(row_digest(clip, text, to_pcm16(changed)))
        waiting = next(perturbed, None)
    if waiting is not None:
        raise Refused(f"{shown(waiting[0])}: is no clip of {clean.name}, or not in its order")
    if content_digest(clean_digests) != expected.content_sha256:
        raise Refused(f"the clean clips it was compared with ({clean.name}) are not the benchmark's")
    if statistics.median(reached) > bound_db + UNUSED_DB:
        raise Refused(
            f"half of its clips are above {statistics.median(reached):.1f} dB; the attack may go to {bound_db:g} dB"
        )
    return content_digest(digests)


def _clips(config: StoredConfig) -> Iterator[tuple[str, str, np.ndarray]]:
    """Id, transcript and samples of every row. A file path in place of audio is not followed."""
    for path in config.files:
        columns = ["id", "text", "audio"]
        parquet = path.suffix == ".parquet"
        for batch in pq.ParquetFile(path).iter_batches(50, columns=columns) if parquet else row_groups(path, columns):
            for row in batch.to_pylist():
                data = (row["audio"] or {}).get("bytes")
                if not data or len(data) > AUDIO_BYTES:
                    raise Refused(f"{shown(str(row['id']))}: no audio, or more than {AUDIO_BYTES} bytes of it")
                yield str(row["id"]), row["text"] or "", _samples(data, f"{config.name}/{shown(str(row['id']))}")


def _samples(data: bytes, name: str) -> np.ndarray:
    if frames_of(data) > 16_000 * 3_600:  # before it is decoded
        raise Refused(f"{name}: longer than an hour")
    return read(data, name=name)


def places(data: str, adversarial: str | None) -> tuple[str, ...]:
    """Where to look for audio: where the user says, then where the benchmark's data is, if that holds audio."""
    candidates = (adversarial, None if Path(data).is_file() else data)
    return tuple(place for place in candidates if place)
