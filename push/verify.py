"""`srb verify`: does a submission reproduce? Every score is computed again from the predictions.

Nothing that a submission says about the data is believed: ids, transcripts, durations and speakers are compared with
the benchmark's own hashes (`truth`), and the origin of each config is taken from there. What it says about scores is
compared with what its predictions give. The verdict is a list of reasons, empty if it is accepted; then `verified`
writes what the leaderboard shows, from what was computed here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from srb.builders.errors import UserError
from srb.metrics import results
from srb.metrics.aggregate import ADVERSARIAL
from srb.metrics.runs import Run
from srb.push import packed, strict, submission
from srb.push.strict import Refused, number, shape, shown, text
from srb.push.truth import Expected, people_digest, rows_digest

# What another version of numpy may do: to the last digit of a score, to a bound of an interval, and to a sum of times.
TOLERANCE = 0.00015
INTERVAL_TOLERANCE = 0.002
TIME_TOLERANCE = 2e-6
FASTEST = 20_000.0  # seconds of audio in a second; the fastest published recognisers reach some thousands
SAME_ERRORS = 20  # so many wrong transcripts that are the same to the letter are not chance
MOST_REASONS = 50
Json = dict[str, Any]

_MODEL = {
    "name": text(80, submission.MODEL_NAME),
    "id": text(140, r"[\w.-]+/[\w.-]+", null=True),
    "params_m": number(0, 10_000_000, null=True),
    "licence": text(60, r"[A-Za-z0-9 .+()-]*", null=True),
    "url": text(300, r"https://[\w./~%#?=&:+-]+", null=True),
    "training_data": text(300, r"[^<>]*", null=True),
}


@dataclass
class Verdict:
    """What came of it."""

    reasons: list[str] = field(default_factory=list)
    results: Json | None = None
    facts: Json | None = None
    run: Run | None = None
    scratch: TemporaryDirectory | None = None  # what was unpacked, for as long as `run` is read

    @property
    def accepted(self) -> bool:
        return not self.reasons

    def refuse(self, reason: str) -> None:
        if len(self.reasons) < MOST_REASONS:
            self.reasons.append(reason)


def verify(folder: str | Path, truth: Mapping[str, Expected]) -> Verdict:
    """Check a submission; each stage is begun only if those before it found nothing."""
    folder, verdict = Path(folder), Verdict()
    configs, verdict.reasons = strict.survey(folder)
    verdict.reasons = verdict.reasons[:MOST_REASONS]
    if not verdict.accepted:
        return verdict
    documents: dict[str, Json] = {}
    for name in strict.DOCUMENTS:
        try:
            documents[name] = strict.read_document(folder / name)
        except Refused as reason:
            verdict.refuse(f"{name}: {reason}")
    if verdict.accepted:
        _check_submission(verdict, folder, documents)
    if verdict.accepted:
        _check_coverage(verdict, configs, truth)
    if verdict.accepted:
        folder = _unpacked(verdict, folder, configs, truth)
    entries: dict[str, Json] = {}
    errors: dict[str, str] = {}
    if verdict.accepted:
        for config in configs:
            try:
                entries[config] = _check_predictions(folder, config, truth[config], errors)
            except Refused as reason:
                verdict.refuse(f"{config}.jsonl: {reason}")
    if verdict.accepted:
        _check_run(verdict, documents["run.json"], entries)
        _check_scores(verdict, folder, documents, entries)
    verdict.facts = documents["submission.json"] if verdict.accepted else None
    return verdict


# --- the parts -------------------------------------------------------------------------------------------------------


def _check_submission(verdict: Verdict, folder: Path, documents: Mapping[str, Json]) -> None:
    made = documents["submission.json"]
    try:
        if made.get("schema") != submission.SCHEMA:
            raise Refused(f"'schema' must be {submission.SCHEMA}")
        kinds = {"schema", "model", "benchmark_version", "software", "reproduce", "files"}
        if odd := sorted(set(made) ^ kinds):
            raise Refused(f"has, or lacks, '{shown(odd[0])}'")
        shape(made["model"], _MODEL, ("name",), "'model'")
        if reason := text(1_000, r"[^<>]*")(made["reproduce"]):
            raise Refused(f"'reproduce' {reason}")
        _check_files(made["files"], folder)
    except Refused as reason:
        verdict.refuse(f"submission.json: {reason}")
        return
    ours, theirs = metadata.version("speech-robust-bench"), _version(made["software"])
    if theirs != ours:
        verdict.refuse(
            f"submission.json: made with srb {shown(str(theirs))}, this is {ours}; make it again with {ours}"
        )
    scored = documents["results.json"]
    if scored.get("schema") != results.SCHEMA:
        verdict.refuse(f"results.json: 'schema' must be {results.SCHEMA}")
    elif _version(scored.get("software")) != ours:
        verdict.refuse(f"results.json: scored with srb {shown(str(_version(scored.get('software'))))}, this is {ours}")
    elif scored.get("options") != asdict(results.Options()):
        verdict.refuse("results.json: not scored with the leaderboard's options; `srb score` without any has them")
    for name in ("run.json", "results.json"):
        if documents[name].get("model") != made["model"]["name"]:
            verdict.refuse(f"{name}: is of another model than submission.json says")


def _version(software: Any) -> Any:
    return software.get("speech-robust-bench") if isinstance(software, dict) else None


def _check_files(listed: Any, folder: Path) -> None:
    if not isinstance(listed, dict):
        raise Refused("'files' must be an object")
    for name in listed:
        if "/" in name or "\\" in name or name in (".", ".."):
            raise Refused(f"'{shown(name)}' leads out of the folder")
    there = {path.name for path in folder.iterdir()} - {submission.NAME}
    if odd := sorted(there ^ set(listed)):
        raise Refused(
            f"'{shown(odd[0])}' is " + ("not listed in 'files'" if odd[0] in there else "listed but not there")
        )
    for name in sorted(there):
        if listed[name] != submission.file_facts(folder / name):
            raise Refused(f"{name} does not have the sha256 and size that 'files' says")


def _check_coverage(verdict: Verdict, configs: list[str], truth: Mapping[str, Expected]) -> None:
    """All that the benchmark has in a language, or nothing: nobody picks the scenarios that suit them."""
    for config in configs:
        if config not in truth:
            verdict.refuse(f"{config}.jsonl: the benchmark has no config of that name")
    languages = {truth[config].language for config in configs if config in truth}
    for name, expected in truth.items():
        wanted = expected.language in languages and expected.category not in ADVERSARIAL
        if wanted and name not in configs:
            verdict.refuse(f"{name}: missing; a submission has every config of its languages")


def _unpacked(verdict: Verdict, folder: Path, configs: list[str], truth: Mapping[str, Expected]) -> Path:
    """A folder with a `.jsonl` of every config: the submission itself if it has no parquet."""
    rows = {config: truth[config].rows for config in configs if (folder / f"{config}{packed.SUFFIX}").exists()}
    if not rows:
        return folder
    verdict.scratch = TemporaryDirectory(prefix="srb-")
    out = Path(verdict.scratch.name)
    for config in set(configs) - set(rows):
        (out / f"{config}.jsonl").symlink_to((folder / f"{config}.jsonl").absolute())
    for config, reason in packed.unpack(folder.absolute(), out, rows).items():
        verdict.refuse(f"{config}{packed.SUFFIX}: {reason}")
    return out


def _check_predictions(folder: Path, config: str, expected: Expected, errors: dict[str, str]) -> Json:
    """Check one file against the truth; returns its entry of run.json as it must be."""
    path = folder / f"{config}.jsonl"
    lines: list[Json] = []
    seen: set[str] = set()
    for line in strict.read_lines(path):
        where = f"line {len(lines) + 1}"
        shape(line, strict.LINE, strict.LINE_NEEDS, where)
        if line["id"] in seen:
            raise Refused(f"{where}: the id '{shown(line['id'])}' occurs twice")
        seen.add(line["id"])
        if line["audio_filepath"] != f"{config}/{line['id']}.flac":
            raise Refused(f"{where}: 'audio_filepath' is '{shown(line['audio_filepath'])}', of another clip or config")
        if (line["pred_text"] is None) != ("error" in line):
            raise Refused(f"{where}: a clip has either a transcript or an 'error'")
        if line["pred_text"] is not None and line["duration"] > 0 and not line["time"] > 0:
            raise Refused(f"{where}: recognised in no time at all")
        lines.append(line)
        if len(lines) > expected.rows:
            raise Refused(f"more lines than the config has clips ({expected.rows})")
    if len(lines) != expected.rows:
        raise Refused(f"{len(lines)} lines, but the config has {expected.rows} clips")
    if rows_digest((line["id"], line["text"]) for line in lines) != expected.rows_sha256:
        raise Refused("ids or references are not those of the benchmark, or not in its order")
    if people_digest(lines) != expected.people_sha256:
        raise Refused("durations or speakers are not those of the benchmark")
    entry = _entry(path, lines, expected)
    heard = [line for line in lines if line["pred_text"] is not None]
    audio_s, seconds = (sum(line[key] for line in heard) for key in ("duration", "time"))
    if audio_s > seconds * FASTEST:
        raise Refused(f"recognised {audio_s / seconds:.0f} times faster than it is spoken, which nothing does")
    wrong = [f"{line['id']}\x1f{line['pred_text']}" for line in lines if line["pred_text"] != line["text"]]
    if len(wrong) >= SAME_ERRORS and len({line["pred_text"] for line in lines}) > 1:
        digest = hashlib.sha256("\x1e".join(wrong).encode()).hexdigest()
        if digest in errors:
            raise Refused(f"the transcripts are those of {errors[digest]}, to the letter")
        errors[digest] = config
    return entry


def _entry(path: Path, lines: list[Json], expected: Expected) -> Json:
    import json

    from srb.models.runner import record_of

    keys = ("language", "corpus", "scenario", "severity", "category", "source", "benchmark_version")
    about = {key: getattr(expected, key) for key in (*keys, "content_sha256", "rows_sha256")}
    config: Any = SimpleNamespace(about=about, rows=lines)
    made = record_of(config, (json.dumps(line).encode() for line in lines))
    return {**made, "sha256": submission.file_facts(path)["sha256"]}


def _check_run(verdict: Verdict, about: Json, entries: Mapping[str, Json]) -> None:
    said = about.get("configs")
    if not isinstance(said, dict) or set(said) != set(entries):
        verdict.refuse("run.json: 'configs' are not those that the submission has predictions of")
        return
    for config, entry in entries.items():
        theirs = said[config] if isinstance(said[config], dict) else {}
        for key, value in entry.items():
            if not close(theirs.get(key), value, TIME_TOLERANCE):
                what = "this benchmark has" if key.endswith(("version", "content_sha256")) else "it is"
                verdict.refuse(f"run.json: {config}.{key} says {_short(theirs[key])}, {what} {_short(value)}")


def _check_scores(verdict: Verdict, folder: Path, documents: Mapping[str, Json], entries: Mapping[str, Json]) -> None:
    said, about = documents["results.json"], documents["run.json"]
    trusted = {**about, "configs": dict(entries)}
    run = Run(folder, documents["submission.json"]["model"]["name"], trusted, tuple(sorted(entries)))
    try:
        made = results.results(run)
    except UserError as error:
        verdict.refuse(f"cannot be scored: {shown(str(error))}")
        return
    skip = ("software",)
    for line in differences({k: v for k, v in said.items() if k not in skip}, made, skip=skip):
        verdict.refuse(f"results.json: {line}")
    verdict.results, verdict.run = made, run


def differences(said: Any, made: Any, where: str = "", skip: tuple[str, ...] = ()) -> list[str]:
    """The lines that differ: what a file says, and what its predictions give."""
    if isinstance(said, dict) and isinstance(made, dict):
        found = []
        for key in [*made, *(key for key in said if key not in made)]:
            if key not in skip:
                place = f"{where}.{shown(str(key))}" if where else shown(str(key))
                missing = "nothing"
                found += differences(said.get(key, missing), made.get(key, missing), place)
        return found
    if close(said, made, INTERVAL_TOLERANCE if where.endswith(".interval") else TOLERANCE):
        return []
    return [f"{where} says {_short(said)}, the predictions give {_short(made)}"]


def close(one: Any, other: Any, tolerance: float) -> bool:
    """Equal, but for what rounding may do to a number."""
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other)]
    if all(numbers):
        return abs(one - other) <= tolerance
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(close(a, b, tolerance) for a, b in zip(one, other, strict=True))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key], tolerance) for key in one)
    return type(one) is type(other) and bool(one == other)


def _short(value: Any) -> str:
    return shown(value if isinstance(value, str) else repr(value))
