"""Adversarial configs on disk: the layout, the columns and the manifest of every other config.

Rows are written batch by batch to `<out>/.attacks/<config>-<fingerprint>/`, so that an attack that was killed goes on
where it was; when all are there they are put in the clean config's order and the config moves to its place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
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

from srb.attacks.clips import Clip, batches, snr_db
from srb.attacks.loop import Attack, Attacked
from srb.builders.audio import RATE, encode_flac, replacing
from srb.builders.build import finish
from srb.builders.card import write_card
from srb.builders.errors import UserError
from srb.builders.manifests import MANIFEST, read_manifest
from srb.builders.names import ConfigName, parse
from srb.builders.rows import SCHEMA, row_digest
from srb.builders.scenarios import SCENARIOS
from srb.builders.seeding import BENCHMARK_VERSION
from srb.builders.shards import shard_name, split
from srb.models.data import Config, Row

Run = Callable[[Iterable[list[Clip]]], Iterator[list[Attacked]]]
Tick = Callable[[int, float], None]  # (clips done, mean success so far)


@dataclass(frozen=True)
class Model:
    """Who a config belongs to; nobody, for attacks that ask no model."""

    name: str | None = None  # as it stands in config names
    spec: str | None = None
    revision: str | None = None
    pads_safely: bool = True
    how: dict[str, Any] = field(default_factory=dict)  # how gradients were taken, where not as usual


@dataclass(frozen=True)
class Made:
    """A config that was made, or was there already."""

    name: str
    rows: int
    success: float
    reused: bool
    problems: list[str]


def export(
    clean: Config,
    attack: Attack,
    model: Model,
    out: Path,
    run: Run,
    *,
    check: Callable[[Clip], None] = lambda clip: None,
    limit: int | None = None,
    batch_size: int = 8,
    skip: bool = False,
    overwrite: bool = False,
    tick: Tick = lambda clips, success: None,
) -> Made:
    """Attack the clips of a clean config and write the adversarial config, or finish one that was cut off."""
    job = _Export(clean, attack, model, out, limit)
    if (made := job.already(overwrite)) is not None:
        return made
    problems = job.problems(check)
    if problems and not skip:
        raise UserError(f"{problems[0]}{_more(problems)}; mend them, or leave them out with --on-error skip")
    if len(problems) == len(job.rows):
        raise UserError(f"{clean.name}: none of its {len(job.rows)} clips can be attacked; the first: {problems[0]}")
    done = job.done()
    successes = list(done.values())
    tick(len(successes), float(np.mean(successes or [0])))
    for group in run(job.remaining(set(done), batch_size)):
        job.write(group)
        successes += [float(one.facts.get("success", 0)) for one in group]
        tick(len(group), float(np.mean(successes)))
    job.finish(problems)
    return Made(str(job.name), len(successes), float(np.mean(successes)), False, problems)


def _more(problems: Sequence[str]) -> str:
    return f" (and {len(problems) - 1} more like it)" if len(problems) > 1 else ""


class _Export:
    """One adversarial config in the making."""

    def __init__(self, clean: Config, attack: Attack, model: Model, out: Path, limit: int | None) -> None:
        source = parse(clean.name)
        self.clean, self.attack, self.model, self.out = clean, attack, model, out
        self.scenario = SCENARIOS[attack.name]
        self.name = ConfigName(source.language, attack.name, attack.severity, source.corpus, model.name)
        self.rows: list[Row] = clean.rows[:limit]
        self.place = out / str(self.name)
        self.bad: set[str] = set()
        inputs = {
            "benchmark_version": BENCHMARK_VERSION,
            "software": metadata.version("speech-robust-bench"),
            "config": str(self.name),
            "attack": attack.describe(),
            "model": [model.spec, model.revision, model.how],
            "clips": [(row.id, row.text) for row in self.rows],
            "source": clean.manifest.get("content_sha256"),
        }
        self.fingerprint = hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
        self.partial = out / ".attacks" / f"{self.name}-{self.fingerprint[:16]}"

    def already(self, overwrite: bool) -> Made | None:
        """The config if it is complete; one that was made otherwise stays unless it may be overwritten."""
        if (self.place / MANIFEST).exists():
            found = read_manifest(self.place)
            if found.get("fingerprint") == self.fingerprint:
                return Made(str(self.name), found["rows"], found["attack"]["success"], True, [])
            if not overwrite:
                raise UserError(f"{self.place}: was made with other clips or settings; --overwrite makes it anew")
        try:
            self.partial.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(f"{self.out}: cannot be written ({error.strerror})") from None
        return None

    def problems(self, check: Callable[[Clip], None]) -> list[str]:
        """One line for each clip that cannot be attacked."""
        found = []
        for clip in self._clips({row.position for row in self.rows}):
            try:
                check(clip)
            except UserError as reason:
                found.append(f"{self.clean.name}/{clip.id}: {reason}")
                self.bad.add(clip.id)
        return found

    def _clips(self, positions: set[int]) -> Iterator[Clip]:
        corpus = self.clean.about["corpus"]
        for window in self.clean.windows(positions):
            for row in window.rows:
                yield Clip(row.id, window.decode(row), row.text, row.language, corpus)

    def remaining(self, done: set[str], batch_size: int) -> Iterator[list[Clip]]:
        """Batches of the clips that are still to be attacked, one stretch of the config after the other."""
        wanted = {row.position for row in self.rows if row.id not in done | self.bad}
        corpus = self.clean.about["corpus"]
        for window in self.clean.windows(wanted):
            clips = [Clip(row.id, window.decode(row), row.text, row.language, corpus) for row in window.rows]
            yield from batches(clips, batch_size, self.model.pads_safely)

    def done(self) -> dict[str, float]:
        """The clips whose rows are written, and how well each attack went."""
        found: dict[str, float] = {}
        for path in self._parts():
            for row in pq.read_table(path, columns=["id", "parameters"]).to_pylist():
                found[row["id"]] = json.loads(row["parameters"]).get("success", 0.0)
        return found

    def _parts(self) -> list[Path]:
        return sorted(self.partial.glob("part-*.parquet"))

    def write(self, group: list[Attacked]) -> None:
        """Keep one batch."""
        table = pa.Table.from_pylist([self._row(one) for one in group], SCHEMA)
        with replacing(self.partial / f"part-{len(self._parts()):06d}.parquet") as part:
            pq.write_table(table, part)

    def _row(self, one: Attacked) -> dict[str, Any]:
        row = self._known[one.clip.id]
        bound = self.attack.bound
        if bound is not None and not bound.holds(one.clip.samples, one.pcm):
            raise RuntimeError(f"{one.clip.id}: the stored perturbation is larger than its bound {bound}")
        parameters = {
            "attack": self.attack.name,
            "model": self.model.spec,
            "revision": self.model.revision,
            **self.model.how,
            **({self.scenario.parameter: self.scenario.value(self.attack.severity)} if self.scenario.parameter else {}),
            **{key: value for key, value in self.attack.describe().items() if value is not None and key != "severity"},
            **one.facts,
        }
        return {
            **row,
            "audio": {"bytes": encode_flac(one.pcm), "path": f"{one.clip.id}.flac"},
            "duration": len(one.pcm) / RATE,
            "source": self.clean.name,
            "scenario": self.attack.name,
            "severity": self.attack.severity,
            "parameters": json.dumps(parameters),
            "snr_db": snr_db(one.clip.samples, one.pcm),
            "clipped": 0,  # the attack itself keeps to [-1, 1]
            "sha256": row_digest(one.clip.id, row["text"], one.pcm),
        }

    @property
    def _known(self) -> dict[str, dict[str, Any]]:
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
                    "corpus": about["corpus"],
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
        written = ds.dataset([str(path) for path in self._parts()], schema=SCHEMA)
        shards = split([row for row in self.rows if row.id not in self.bad])
        for index, rows in enumerate(shards):
            ids = pa.array([row.id for row in rows])
            table = written.to_table(filter=pc.field("id").isin(ids))
            table = table.take(pc.index_in(ids, table.column("id").combine_chunks()))
            with replacing(self.partial / shard_name(index, len(shards))) as part:
                pq.write_table(table, part, row_group_size=100, compression="zstd", use_dictionary=False)
        success = self.done()
        for path in self._parts():
            path.unlink()
        about = {
            "config": str(self.name),
            "language": self.name.language,
            "scenario": self.scenario.name,
            "category": self.scenario.category,
            "severity": self.attack.severity,
            "parameters": (
                {self.scenario.parameter: self.scenario.value(self.attack.severity)} if self.scenario.parameter else {}
            ),
            "source": self.clean.name,
            "bank": None,
            "corpus": self.clean.manifest.get("corpus") or _unknown_corpus(self.clean.about["corpus"]),
            "skipped": problems,
            "fingerprint": self.fingerprint,
            "attack": {
                "model": self.model.spec,
                "revision": self.model.revision,
                **self.model.how,
                "success": round(float(np.mean(list(success.values()))), 4),
                **self.attack.describe(),
            },
        }
        finish(
            self.partial, self.place, len(shards), about, _installed("torch", "transformers") if self.model.name else ()
        )
        shutil.rmtree(self.partial.with_name(f"{self.partial.name}.old"), ignore_errors=True)
        with contextlib.suppress(OSError):  # not empty: another attack is on its way
            self.partial.parent.rmdir()
        write_card(self.out)


def _installed(*packages: str) -> list[str]:
    found = {distribution.name.lower() for distribution in metadata.distributions()}
    return [package for package in packages if package in found]


def _unknown_corpus(name: str) -> dict[str, Any]:
    """For data without a manifest: nothing is known, so nothing is promised."""
    return {
        "name": name,
        "title": name,
        "licence": "unknown",
        "url": "",
        "citation": "",
        "derivatives_allowed": False,
        "note": "",
    }
