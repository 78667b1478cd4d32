"""Adversarial configs on disk: the layout, the columns and the manifest of every other config.

Rows are written batch by batch to `<out>/.attacks/<config>-<fingerprint>/`, so that an attack that was killed
continues; when all are there they are put in the clean config's order and the config moves to its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from speech_robust_bench.attacks.clips import (
    AttackClip,
    above_threshold,
    batches,
    clips_of,
    snr_db,
    to_float,
    window_clips,
)
from speech_robust_bench.attacks.pgd import Attack, Attacked
from speech_robust_bench.builders.build import complete_folder, finish
from speech_robust_bench.builders.configs import ClipRow, StoredConfig
from speech_robust_bench.builders.manifests import MANIFEST, read_manifest
from speech_robust_bench.builders.row_generator import digest_path, is_whole, schema_with, shard_name, split
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.audio import RATE, encode_flac
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import file_digest, locked, replacing, write_atomically
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.records import ConfigOrigin, CorpusFacts
from speech_robust_bench.core.rows import RowDict, row_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION

Run = Callable[[Iterable[list[AttackClip]]], Iterator[list[Attacked]]]
Tick = Callable[[int, float], None]  # (clips done, mean success so far)


@dataclass(frozen=True)
class ConfigOwner:
    """The model that a config belongs to; nobody, for attacks that ask no model."""

    name: str | None = None  # as it stands in config names
    spec: str | None = None
    revision: str | None = None
    pads_safely: bool = True
    gradients: Settings = field(default_factory=dict)  # how they were taken, where not as usual


@dataclass(frozen=True)
class ExportOptions:
    """Which clips are attacked, how many at a time, and what happens to those that cannot be."""

    limit: int | None = None
    batch_size: int = 8
    skip_bad_clips: bool = False
    overwrite: bool = False
    check: Callable[[AttackClip], None] = lambda clip: None


@dataclass(frozen=True)
class ExportedConfig:
    """A config that was written, or was there already; `success` is None where no model was asked."""

    name: str
    rows: int
    success: float | None
    reused: bool
    problems: list[str]
    masking: dict[str, float] = field(default_factory=dict)  # signs of gradient masking -> share of the clips


def export(
    clean: StoredConfig,
    attack: Attack,
    owner: ConfigOwner,
    out: Path,
    run: Run,
    options: ExportOptions = ExportOptions(),
    tick: Tick = lambda clips, success: None,
) -> ExportedConfig:
    """Attack the clips of a clean config and write the adversarial config, or finish one that was cut off."""
    job = _Export(clean, attack, owner, out, options.limit)
    if (existing := job.existing(options.overwrite)) is not None:
        return existing
    with job.partial_folder():
        return _attack_and_write(job, run, options, tick)


def _attack_and_write(job: _Export, run: Run, options: ExportOptions, tick: Tick) -> ExportedConfig:
    problems = job.problems(options.check)
    if problems and not options.skip_bad_clips:
        raise UserError(f"{problems[0]}{_more(problems)}; correct them, or leave them out with --on-error skip")
    if len(problems) == len(job.rows):
        told = f"none of its {len(job.rows)} clips can be attacked; the first: {problems[0]}"
        raise UserError(f"{job.clean.name}: {told}")
    done = job.done()
    successes = list(done.values())
    tick(len(successes), float(np.mean(successes or [0])))
    for batch in run(job.remaining(set(done), options.batch_size)):
        job.write(batch)
        successes += [float(attacked.facts.get("success", 0)) for attacked in batch]
        tick(len(batch), float(np.mean(successes)))
    job.finish(problems)
    return job.exported(len(successes), float(np.mean(successes)), problems)


def _more(problems: Sequence[str]) -> str:
    return f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""


class _Export:
    """One adversarial config in the making."""

    def __init__(self, clean: StoredConfig, attack: Attack, owner: ConfigOwner, out: Path, limit: int | None) -> None:
        source = parse(clean.name)
        self.clean, self.attack, self.owner, self.out = clean, attack, owner, out
        self.scenario = SCENARIOS[attack.name]
        self.name = ConfigName(source.language, attack.name, attack.severity, source.corpus, owner.name)
        self.rows: list[ClipRow] = clean.rows[:limit]
        self.schema = schema_with(dict.fromkeys(name for row in self.rows for name, _ in row.columns))
        self.place = out / str(self.name)
        self.bad: set[str] = set()
        inputs = {
            "benchmark_version": BENCHMARK_VERSION,
            "software": metadata.version("speech-robust-bench"),
            "config": str(self.name),
            "attack": attack.describe(),
            "model": [owner.spec, owner.revision, owner.gradients],
            "clips": [(row.id, row.text) for row in self.rows],
            "source": clean.manifest and clean.manifest.content_sha256,
        }
        self.fingerprint = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
        self.partial = out / ".attacks" / f"{self.name}-{self.fingerprint[:16]}"

    def existing(self, overwrite: bool) -> ExportedConfig | None:
        """The config if it is complete; one that was made otherwise stays unless it may be overwritten."""
        if (self.place / MANIFEST).exists():
            manifest = read_manifest(self.place)
            if manifest.fingerprint == self.fingerprint:
                return self.exported(manifest.rows, (manifest.attack or {})["success"], [], reused=True)
            if not overwrite:
                raise UserError(f"{self.place}: was made with other clips or settings; --overwrite makes it anew")
        return None

    @contextlib.contextmanager
    def partial_folder(self) -> Iterator[None]:
        """Hold the folder of unfinished work against other commands; it is removed again when nothing is in it."""
        lock = self.partial.with_name(f"{self.partial.name}.lock")
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.out}: cannot be written ({error.strerror})") from None
        with locked(lock, f"{self.place}: another command is making it; wait for it, or use another --out"):
            self._drop_damaged()
            self._next_part = 1 + max((int(path.stem.rpartition("-")[2]) for path in self._parts()), default=-1)
            try:
                yield
            finally:
                lock.unlink(missing_ok=True)
                for folder in (self.partial, self.partial.parent):
                    with contextlib.suppress(OSError):  # not there any more, or not empty
                        folder.rmdir()

    def exported(self, rows: int, success: float, problems: list[str], reused: bool = False) -> ExportedConfig:
        """What there is to say about the config that was written."""
        masking = (read_manifest(self.place).attack or {}).get("gradient_masking", {})
        return ExportedConfig(str(self.name), rows, success if self.owner.name else None, reused, problems, masking)

    def problems(self, check: Callable[[AttackClip], None]) -> list[str]:
        """One line for each clip that cannot be attacked."""
        lines = []
        for clip in clips_of(self.clean, positions={row.position for row in self.rows}):
            try:
                check(clip)
            except UserError as reason:
                lines.append(f"{self.clean.name}/{clip.id}: {reason}")
                self.bad.add(clip.id)
        return lines

    def remaining(self, done: set[str], batch_size: int) -> Iterator[list[AttackClip]]:
        """Batches of the clips that are still to be attacked, one stretch of the config after the other."""
        wanted = {row.position for row in self.rows if row.id not in done | self.bad}
        for window in self.clean.windows(wanted):
            yield from batches(list(window_clips(self.clean, window)), batch_size, self.owner.pads_safely)

    def done(self) -> dict[str, float]:
        """The clips whose rows are written, and how well each attack went."""
        facts = {clip: known for path in self._parts() for clip, known in self._facts(path).items()}
        return {clip: float(known.get("success", 0.0)) for clip, known in facts.items()}

    def _drop_damaged(self) -> None:
        """Remove the parts that are not what was written, so that their clips are attacked again."""
        for path in self._parts():
            if not is_whole(path) or not self._facts(path):
                path.unlink()
                digest_path(path).unlink(missing_ok=True)

    def _facts(self, part: Path) -> dict[str, RowDict]:
        """The clips of a part, and what their attacks left in `parameters`; nothing if it is no part of this config."""
        try:
            table = pq.read_table(part)
            facts = {row["id"]: json.loads(row["parameters"]) for row in table.select(["id", "parameters"]).to_pylist()}
            float(sum(known.get("success", 0.0) for known in facts.values()))
        except (pa.ArrowException, OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return {}
        return facts if table.schema.equals(self.schema) and facts.keys() <= self._known.keys() else {}

    def _masking(self) -> dict[str, float]:
        """The signs of gradient masking that an attack noticed, and in which share of the clips."""
        facts = [known for path in self._parts() for known in self._facts(path).values()]
        signs = Counter(sign for known in facts for sign in known.get("gradient_masking", []))
        return {sign: round(count / len(facts), 4) for sign, count in sorted(signs.items())}

    def _parts(self) -> list[Path]:
        return sorted(self.partial.glob(f"part-{'[0-9]' * 6}.parquet"))

    def write(self, batch: list[Attacked]) -> None:
        """Write the clips of one batch to the disk, so that an interrupted attack goes on after them."""
        table = pa.Table.from_pylist([self._row(attacked) for attacked in batch], self.schema)
        path = self.partial / f"part-{self._next_part:06d}.parquet"
        with replacing(path) as part:
            pq.write_table(table, part)
        write_atomically(digest_path(path), file_digest(path))
        self._next_part += 1

    def _row(self, attacked: Attacked) -> RowDict:
        row = self._known[attacked.clip.id]
        bound = self.attack.bound
        if bound is not None and not bound.holds(attacked.clip.samples, attacked.pcm):
            raise RuntimeError(f"{attacked.clip.id}: the stored perturbation is larger than its bound {bound}")
        parameters = {
            "attack": self.attack.name,
            "model": self.owner.spec,
            "revision": self.owner.revision,
            **self.owner.gradients,
            **self.scenario.parameters_at(self.attack.severity),
            **{key: value for key, value in self.attack.describe().items() if value is not None and key != "severity"},
            **attacked.facts,
            "above_threshold": round(above_threshold(attacked.clip.samples, to_float(attacked.pcm)), 4),
        }
        return {
            **row,
            "audio": {"bytes": encode_flac(attacked.pcm), "path": f"{attacked.clip.id}.flac"},
            "duration": len(attacked.pcm) / RATE,
            "source": self.clean.name,
            "scenario": self.attack.name,
            "severity": self.attack.severity,
            "parameters": json.dumps(parameters),
            "snr_db": snr_db(attacked.clip.samples, attacked.pcm),
            "clipped": 0,  # the attack itself keeps to [-1, 1]
            "sha256": row_digest(attacked.clip.id, row["text"], attacked.pcm),
        }

    @property
    def _known(self) -> dict[str, RowDict]:
        """What a row takes over from its clean clip, by id."""
        if not hasattr(self, "_columns"):
            about = self.clean.about
            licences = self._column("licence")
            self._columns = {
                row.id: {
                    **{
                        name: getattr(row, name)
                        for name in ("id", "text", "language", "speaker", "gender", "age", "accent")
                    },
                    **dict(row.columns),
                    "corpus": about.corpus,
                    "licence": licences[row.position] if licences else None,
                }
                for row in self.rows
            }
        return self._columns

    def _column(self, name: str) -> list[Any]:
        groups = self.clean.groups
        try:
            return [value for group in groups for value in group.read([name]).column(name).to_pylist()]
        except (KeyError, pa.ArrowInvalid):  # data of others may lack it
            return []

    def finish(self, problems: list[str]) -> None:
        """Put the rows in order, write the manifest, and show the config."""
        written = ds.dataset([str(path) for path in self._parts()], schema=self.schema)
        shards = split([row for row in self.rows if row.id not in self.bad])
        for index, rows in enumerate(shards):
            ids = pa.array([row.id for row in rows])
            table = written.to_table(filter=pc.field("id").isin(ids))
            table = table.take(pc.index_in(ids, table.column("id").combine_chunks()))
            with replacing(self.partial / shard_name(index, len(shards))) as part:
                pq.write_table(table, part, row_group_size=100, compression="zstd", use_dictionary=False)
        success, masking = self.done(), self._masking()
        for path in self._parts():
            path.unlink()
            digest_path(path).unlink(missing_ok=True)
        known = self.clean.manifest
        about = ConfigOrigin(
            config=str(self.name),
            language=self.name.language,
            scenario=self.scenario.name,
            category=self.scenario.category,
            severity=self.attack.severity,
            parameters=self.scenario.parameters_at(self.attack.severity),
            source=self.clean.name,
            corpus=known.corpus if known else _unknown_corpus(str(self.clean.about.corpus)),
            skipped=problems,
            fingerprint=self.fingerprint,
            attack={
                "model": self.owner.spec,
                "revision": self.owner.revision,
                **self.owner.gradients,
                "success": round(float(np.mean(list(success.values()))), 4),
                **self.attack.describe(),
                **({"gradient_masking": masking} if masking else {}),
            },
        )
        finish(
            self.partial, self.place, len(shards), about, _installed("torch", "transformers") if self.owner.name else ()
        )
        shutil.rmtree(self.partial.with_name(f"{self.partial.name}.old"), ignore_errors=True)
        complete_folder(self.out)


def _installed(*packages: str) -> list[str]:
    installed = {distribution.name.lower() for distribution in metadata.distributions()}
    return [package for package in packages if package in installed]


def _unknown_corpus(name: str) -> CorpusFacts:
    """For data without a manifest: nothing is known, so nothing is promised."""
    return CorpusFacts(
        name=name, title=name, licence="unknown", url="", citation="", derivatives_allowed=False, note=""
    )
