"""`srb verify`: does a submission reproduce? Every score is computed again from the predictions.

Nothing that a submission says about the data is believed: ids, transcripts, durations and speakers are compared with
the benchmark's own hashes (`expected_rows`), and the origin of each config is taken from there. What it says about
scores is compared with what its predictions give. The verdict is a list of reasons, empty if it is accepted; then
`verified` writes what the leaderboard shows, from what was computed here.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.row_hashes import transcripts_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, FIRST_VERSION, later_version
from speech_robust_bench.push import adversarial, parquet_predictions, submission, untrusted_json
from speech_robust_bench.push.evidence import Evidence, Fingerprints
from speech_robust_bench.push.expected_rows import Expected, of_suite, people_digest
from speech_robust_bench.push.streamed_lines import StreamedLines
from speech_robust_bench.push.untrusted_json import Refused, number, shape, shown, text
from speech_robust_bench.scoring import results
from speech_robust_bench.scoring.runs import Run

# What another version of numpy may do: to the last digit of a score, to a bound of an interval, and to a sum of times.
TOLERANCE = 0.00015
INTERVAL_TOLERANCE = 0.002
TIME_TOLERANCE = 2e-6
FASTEST = 20_000.0  # seconds of audio in a second; the fastest published recognisers reach some thousands
MOST_REASONS = 50
Json = dict[str, Any]

_MODEL = {
    "owner": text(96, submission.OWNER_NAME),
    "name": text(80, submission.MODEL_NAME),
    "id": text(140, r"[\w.-]+/[\w.-]+", null=True),
    "params_m": number(0, 10_000_000, null=True),
    "licence": text(60, r"[A-Za-z0-9 .+()-]*", null=True),
    "url": text(300, r"https://[\w./~%#?=&:+-]+", null=True),
    "training_data": text(300, r"[^<>]*", null=True),
}


@dataclass
class Verdict:
    """What came of it. `flags` refuse nothing: they say, with the evidence, what a person should look at."""

    reasons: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
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


def verify(folder: str | Path, benchmark: Mapping[str, Expected], audio: Sequence[str] = ()) -> Verdict:
    """Check a submission; each stage is begun only if those before it found nothing.

    `audio` are the places (built folders, datasets) where the audio of its own adversarial configs is looked for.
    """
    folder, verdict = Path(folder), Verdict()
    configs, verdict.reasons = untrusted_json.survey(folder)
    verdict.reasons = verdict.reasons[:MOST_REASONS]
    if not verdict.accepted:
        return verdict
    documents: dict[str, Json] = {}
    for name in untrusted_json.DOCUMENTS:
        try:
            documents[name] = untrusted_json.read_document(folder / name)
        except Refused as reason:
            verdict.refuse(f"{name}: {reason}")
    if verdict.accepted:
        _check_submission(
            verdict, folder, documents, {benchmark[c].benchmark_version for c in configs if c in benchmark}
        )
    if verdict.accepted and (suite := documents["results.json"].get("suite")) is not None:
        benchmark = of_suite(benchmark, suite) if isinstance(suite, str) else {}
        if not benchmark:
            verdict.refuse(f"results.json: the benchmark knows no suite {_short(suite)}")
    if verdict.accepted:
        submitted = adversarial.Submitted(documents["run.json"], tuple(audio))
        own, reasons = adversarial.own_configs(configs, benchmark, submitted)
        for line in reasons:
            verdict.refuse(line)
        benchmark = {**{c: expected for c, expected in benchmark.items() if not adversarial.owner_of(c)}, **own}
    if verdict.accepted:
        _check_coverage(verdict, configs, benchmark)
    if verdict.accepted:
        folder = _unpacked(verdict, folder, configs, benchmark)
    entries: dict[str, Json] = {}
    evidence = Evidence()
    options = documents.get("run.json", {}).get("options")
    streams = StreamedLines(options if isinstance(options, dict) else {})
    if verdict.accepted:
        for config in configs:
            try:
                entries[config] = _check_predictions(folder, config, benchmark[config], evidence, streams)
            except Refused as reason:
                verdict.refuse(f"{config}.jsonl: {reason}")
    if verdict.accepted:
        for problem in streams.problems({config: benchmark[config].source for config in configs}, audio):
            verdict.refuse(problem)
    if verdict.accepted:
        _check_run(verdict, documents["run.json"], entries)
        _check_scores(verdict, folder, documents, entries)
        verdict.flags = [*evidence.flags(entries), *streams.flags()]
        verdict.fingerprints = Fingerprints(evidence.digests(), evidence.sketches(entries))
    verdict.facts = documents["submission.json"] if verdict.accepted else None
    return verdict


# --- the parts -------------------------------------------------------------------------------------------------------


def _check_submission(verdict: Verdict, folder: Path, documents: Mapping[str, Json], versions: Collection[str]) -> None:
    about = documents["submission.json"]
    try:
        if about.get("schema") != submission.SCHEMA:
            raise Refused(f"'schema' must be {submission.SCHEMA}")
        kinds = {"schema", "model", "benchmark_version", "software", "reproduce", "files"}
        if odd := sorted(set(about) ^ kinds):
            raise Refused(f"has, or lacks, '{shown(odd[0])}'")
        shape(about["model"], _MODEL, ("owner", "name"), "'model'")
        if reason := text(1_000, r"[^<>]*")(about["reproduce"]):
            raise Refused(f"'reproduce' {reason}")
        _check_files(about["files"], folder)
        known = sorted(versions) or [BENCHMARK_VERSION]
        if about["benchmark_version"] not in known:
            raise Refused(f"'benchmark_version' is {_short(about['benchmark_version'])}, the benchmark's is {known[0]}")
    except Refused as reason:
        verdict.refuse(f"submission.json: {reason}")
        return
    ours, theirs = metadata.version("speech-robust-bench"), _version(about["software"])
    if theirs != ours:
        verdict.refuse(
            f"submission.json: made with srb {shown(str(theirs))}, this is {ours}; make it again with {ours}"
        )
    scored = documents["results.json"]
    if scored.get("schema") != results.SCHEMA:
        verdict.refuse(f"results.json: 'schema' must be {results.SCHEMA}")
    elif _version(scored.get("software")) != ours:
        verdict.refuse(f"results.json: scored with srb {shown(str(_version(scored.get('software'))))}, this is {ours}")
    elif scored.get("options") != results.Options().as_json():
        verdict.refuse("results.json: not scored with the leaderboard's options; `srb score` without any has them")
    for name in ("run.json", "results.json"):
        if documents[name].get("model") != about["model"]["name"]:
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


def _check_coverage(verdict: Verdict, configs: list[str], benchmark: Mapping[str, Expected]) -> None:
    """All that the benchmark has in a language, or nothing: nobody picks the scenarios that suit them."""
    for config in configs:
        if config not in benchmark:
            verdict.refuse(f"{config}.jsonl: the benchmark has no config of that name")
    languages = {benchmark[config].language for config in configs if config in benchmark}
    for name, expected in benchmark.items():
        if expected.language in languages and name not in configs:
            verdict.refuse(f"{name}: missing; a submission has every config of its languages")


def _unpacked(verdict: Verdict, folder: Path, configs: list[str], benchmark: Mapping[str, Expected]) -> Path:
    """A folder with a `.jsonl` of every config: the submission itself if it has no parquet."""
    rows = {
        config: benchmark[config].rows
        for config in configs
        if (folder / f"{config}{parquet_predictions.SUFFIX}").exists()
    }
    if not rows:
        return folder
    verdict.scratch = TemporaryDirectory(prefix="srb-")
    out = Path(verdict.scratch.name)
    for config in set(configs) - set(rows):
        (out / f"{config}.jsonl").symlink_to((folder / f"{config}.jsonl").absolute())
    for config, reason in parquet_predictions.unpack(folder.absolute(), out, rows).items():
        verdict.refuse(f"{config}{parquet_predictions.SUFFIX}: {reason}")
    return out


def _check_predictions(
    folder: Path, config: str, expected: Expected, evidence: Evidence, streams: StreamedLines
) -> Json:
    """Check one file against what the benchmark expects; returns its entry of run.json as it must be."""
    path = folder / f"{config}.jsonl"
    lines: list[Json] = []
    seen: set[str] = set()
    for line in untrusted_json.read_lines(path):
        where = f"line {len(lines) + 1}"
        shape(line, untrusted_json.LINE, untrusted_json.LINE_NEEDS, where)
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
    if transcripts_digest((line["id"], line["text"]) for line in lines) != expected.rows_sha256:
        raise Refused("ids or references are not those of the benchmark, or not in its order")
    if people_digest(lines) != expected.people_sha256:
        raise Refused("durations or speakers are not those of the benchmark")
    streams.add(config, lines)
    entry = _entry(path, lines, expected)
    transcribed = [line for line in lines if line["pred_text"] is not None]
    audio_s, seconds = (sum(line[key] for line in transcribed) for key in ("duration", "time"))
    if audio_s > seconds * FASTEST:
        raise Refused(f"recognised {audio_s / seconds:.0f} times faster than it is spoken, which nothing does")
    if earlier := evidence.add(config, lines):
        raise Refused(f"the transcripts are those of {earlier}, to the letter")
    return entry


def _entry(path: Path, lines: list[Json], expected: Expected) -> Json:
    import json

    from speech_robust_bench.models.run_file import record_of

    keys = ("language", "corpus", "scenario", "severity", "category", "source", "bank", "benchmark_version")
    about = {key: getattr(expected, key) for key in (*keys, "content_sha256")}
    about["rows_sha256"] = expected.of_sha256 or expected.rows_sha256
    about |= later_version(expected.scenario_version)
    config: Any = SimpleNamespace(about=about, rows=range(expected.of or len(lines)))
    record = record_of(config, (json.dumps(line).encode() for line in lines))
    record |= {"suite": expected.suite} if record["rows"] < record["of"] else {}
    return {**record, "sha256": submission.file_facts(path)["sha256"]}


def _check_run(verdict: Verdict, about: Json, entries: Mapping[str, Json]) -> None:
    claimed = about.get("configs")
    if not isinstance(claimed, dict) or set(claimed) != set(entries):
        verdict.refuse("run.json: 'configs' are not those that the submission has predictions of")
        return
    for config, entry in entries.items():
        theirs = claimed[config] if isinstance(claimed[config], dict) else {}
        version = {"scenario_version": FIRST_VERSION}
        theirs = {**version, **theirs}
        for key, value in {**version, **entry}.items():
            if key == "content_sha256" and "suite" in entry and theirs.get(key) is None:
                continue  # perturbed while it ran: the hash of the whole config takes the clips that a suite leaves out
            if not close(theirs.get(key), value, TIME_TOLERANCE):
                what = "this benchmark has" if key.endswith(("version", "content_sha256")) else "it is"
                verdict.refuse(
                    f"run.json: {config}.{key} says {_short(theirs.get(key, 'nothing'))}, {what} {_short(value)}"
                )


def _check_scores(verdict: Verdict, folder: Path, documents: Mapping[str, Json], entries: Mapping[str, Json]) -> None:
    claimed, about = documents["results.json"], documents["run.json"]
    trusted = {**about, "configs": dict(entries)}
    run = Run(folder, documents["submission.json"]["model"]["name"], trusted, tuple(sorted(entries)))
    try:
        recomputed = results.results(run)
    except UserError as error:
        verdict.refuse(f"cannot be scored: {shown(str(error))}")
        return
    skip = ("software",)
    for line in differences({k: v for k, v in claimed.items() if k not in skip}, recomputed, skip=skip):
        verdict.refuse(f"results.json: {line}")
    verdict.results, verdict.run = recomputed, run


LATER_KEYS = ("wer_lenient", "confidence")  # of a config; results of before do not have them


def differences(claimed: Any, recomputed: Any, where: str = "", skip: tuple[str, ...] = ()) -> list[str]:
    """The lines that differ: what a file says, and what its predictions give."""
    if isinstance(claimed, dict) and isinstance(recomputed, dict):
        lines = []
        for key in [*recomputed, *(key for key in claimed if key not in recomputed)]:
            if key not in skip and not (key in LATER_KEYS and key not in claimed):
                place = f"{where}.{shown(str(key))}" if where else shown(str(key))
                missing = "nothing"
                lines += differences(claimed.get(key, missing), recomputed.get(key, missing), place)
        return lines
    if close(claimed, recomputed, INTERVAL_TOLERANCE if where.endswith(".interval") else TOLERANCE):
        return []
    return [f"{where} says {_short(claimed)}, the predictions give {_short(recomputed)}"]


def close(value: Any, expected: Any, tolerance: float) -> bool:
    """Equal, but for what rounding may do to a number."""
    numbers = [isinstance(v, int | float) and not isinstance(v, bool) for v in (value, expected)]
    if all(numbers):
        return abs(value - expected) <= tolerance
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        return all(close(a, b, tolerance) for a, b in zip(value, expected, strict=True))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(close(value[key], expected[key], tolerance) for key in value)
    return type(value) is type(expected) and bool(value == expected)


def _short(value: Any) -> str:
    return shown(value if isinstance(value, str) else repr(value))
