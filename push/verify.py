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
from typing import Protocol

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.extensions import registered_objects
from speech_robust_bench.core.records import (
    Prediction,
    RunConfig,
    RunRecord,
    Settings,
    SubmissionRecord,
    SubmittedPrediction,
)
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.core.rows import transcripts_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.core.untrusted_files import Refused
from speech_robust_bench.push import expected_rows, submitted_files
from speech_robust_bench.push.evidence import Evidence, Fingerprints
from speech_robust_bench.push.expected_rows import Expected, of_suite, people_digest
from speech_robust_bench.push.submitted_files import SubmittedFiles, check_listed, file_facts, read_lines, shown, survey
from speech_robust_bench.scoring import results
from speech_robust_bench.scoring.runs import Run

# What another version of numpy may do: to the last digit of a score, to a bound of an interval, and to a sum of times.
TOLERANCE = 0.00015
INTERVAL_TOLERANCE = 0.002
TIME_TOLERANCE = 2e-6
FASTEST = 20_000.0  # seconds of audio in a second; the fastest published recognisers reach some thousands
MOST_REASONS = 50
PACKAGE = "speech-robust-bench"
EXTENSION_FIELDS = ("stream",)  # of predictions, that say more than a text


class LineCheck(Protocol):
    """Checks a field of predictions that an extension fills; one for each submission, made with the options of its run.

    An extension registers its check in `LINE_CHECKS` under the name of the field.
    """

    def add(self, config: str, lines: Sequence[Prediction]) -> None:
        """Check the lines of one config; raises `Refused`."""
        ...

    def problems(self, sources: Mapping[str, str | None], places: Sequence[str]) -> list[str]:
        """The problems of the configs together; `sources`: config -> its clean config, `places`: where audio is."""
        ...

    def flags(self) -> list[str]:
        """The findings that a person should look at."""
        ...


@dataclass
class Verdict:
    """Result of the verification. `flags` refuse nothing: they name, with evidence, what a person should look at."""

    reasons: list[str] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    fingerprints: Fingerprints = field(default_factory=Fingerprints)
    results: RunResults | None = None
    facts: SubmissionRecord | None = None
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
    configs, verdict.reasons = survey(folder)
    verdict.reasons = verdict.reasons[:MOST_REASONS]
    if not verdict.accepted:
        return verdict
    try:
        files = SubmittedFiles.read(folder)
    except Refused as reason:
        verdict.refuse(str(reason))
        return verdict
    if verdict.accepted:
        _check_submission(verdict, folder, files, {benchmark[c].benchmark_version for c in configs if c in benchmark})
    if verdict.accepted and (suite := files.results.suite) is not None:
        benchmark = of_suite(benchmark, suite)
        if not benchmark:
            verdict.refuse(f"results.json: the benchmark knows no suite {_short(suite)}")
    if verdict.accepted:
        submitted = expected_rows.Submitted(files.run, tuple(audio))
        own, reasons = expected_rows.own_configs(configs, benchmark, submitted)
        for line in reasons:
            verdict.refuse(line)
        benchmark = {**{c: expected for c, expected in benchmark.items() if not expected_rows.owner_of(c)}, **own}
    if verdict.accepted:
        _check_coverage(verdict, configs, benchmark)
    if verdict.accepted:
        folder = _unpacked(verdict, folder, configs, benchmark)
    entries: dict[str, RunConfig] = {}
    evidence = Evidence()
    checks = _line_checks(files.run.options or {})
    if verdict.accepted:
        for config in configs:
            try:
                entries[config] = _check_predictions(folder, config, benchmark[config], evidence, checks)
            except Refused as reason:
                verdict.refuse(f"{config}.jsonl: {reason}")
    if verdict.accepted:
        sources = {config: benchmark[config].source for config in configs}
        for problem in (line for check in checks.values() for line in check.problems(sources, audio)):
            verdict.refuse(problem)
    if verdict.accepted:
        _check_run(verdict, files.run, entries)
        _check_scores(verdict, folder, files, entries)
        verdict.flags = [*evidence.flags(entries), *(flag for check in checks.values() for flag in check.flags())]
        verdict.fingerprints = Fingerprints(evidence.digests(), evidence.sketches(entries))
    verdict.facts = files.submission if verdict.accepted else None
    return verdict


def _line_checks(options: Settings) -> dict[str, LineCheck]:
    return {name: check(options) for name, check in registered_objects("LINE_CHECKS").items()}


# --- the parts -------------------------------------------------------------------------------------------------------


def _check_submission(verdict: Verdict, folder: Path, files: SubmittedFiles, versions: Collection[str]) -> None:
    about = files.submission
    try:
        check_listed(about.files, folder)
        known = sorted(versions) or [BENCHMARK_VERSION]
        if about.benchmark_version not in known:
            raise Refused(f"'benchmark_version' is {_short(about.benchmark_version)}, the benchmark's is {known[0]}")
    except Refused as reason:
        verdict.refuse(f"submission.json: {reason}")
        return
    ours = metadata.version(PACKAGE)
    if (made_with := about.software.get(PACKAGE)) != ours:
        verdict.refuse(
            f"submission.json: made with srb {shown(str(made_with))}, this is {ours}; make it again with {ours}"
        )
    scored = files.results
    if scored.schema != results.SCHEMA:
        verdict.refuse(f"results.json: 'schema' must be {results.SCHEMA}")
    elif (scored_with := scored.software.get(PACKAGE)) != ours:
        verdict.refuse(f"results.json: scored with srb {shown(str(scored_with))}, this is {ours}")
    elif scored.options != results.ScoreOptions().record.as_json():
        verdict.refuse("results.json: not scored with the leaderboard's options; `srb score` without any has them")
    for name, model in (("run.json", files.run.model), ("results.json", scored.model)):
        if model != about.model.name:
            verdict.refuse(f"{name}: is of another model than submission.json says")


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
        config: benchmark[config].rows for config in configs if (folder / f"{config}{submitted_files.SUFFIX}").exists()
    }
    if not rows:
        return folder
    verdict.scratch = TemporaryDirectory(prefix="srb-")
    out = Path(verdict.scratch.name)
    for config in set(configs) - set(rows):
        (out / f"{config}.jsonl").symlink_to((folder / f"{config}.jsonl").absolute())
    for config, reason in submitted_files.unpack(folder.absolute(), out, rows).items():
        verdict.refuse(f"{config}{submitted_files.SUFFIX}: {reason}")
    return out


def _check_predictions(
    folder: Path, config: str, expected: Expected, evidence: Evidence, checks: Mapping[str, LineCheck]
) -> RunConfig:
    """Check one file against what the benchmark expects; returns its entry of run.json as it must be."""
    path = folder / f"{config}.jsonl"
    lines: list[SubmittedPrediction] = []
    seen: set[str] = set()
    for line in read_lines(path):
        where = f"line {len(lines) + 1}"
        if line.id in seen:
            raise Refused(f"{where}: the id '{shown(line.id)}' occurs twice")
        seen.add(line.id)
        if line.audio_filepath != f"{config}/{line.id}.flac":
            raise Refused(f"{where}: 'audio_filepath' is '{shown(line.audio_filepath)}', of another clip or config")
        if (line.pred_text is None) != (line.error is not None):
            raise Refused(f"{where}: a clip has either a transcript or an 'error'")
        if line.pred_text is not None and line.duration > 0 and not line.time > 0:
            raise Refused(f"{where}: recognised in no time at all")
        lines.append(line)
        if len(lines) > expected.rows:
            raise Refused(f"more lines than the config has clips ({expected.rows})")
    if len(lines) != expected.rows:
        raise Refused(f"{len(lines)} lines, but the config has {expected.rows} clips")
    if transcripts_digest((line.id, line.text) for line in lines) != expected.rows_sha256:
        raise Refused("ids or references are not those of the benchmark, or not in its order")
    if people_digest(lines) != expected.people_sha256:
        raise Refused("durations or speakers are not those of the benchmark")
    for name in EXTENSION_FIELDS:
        if name not in checks and any(getattr(line, name) for line in lines):
            raise Refused(f"no extension is installed that checks '{name}' of a line")
    for check in checks.values():
        check.add(config, lines)
    entry = _entry(path, lines, expected)
    transcribed = [line for line in lines if line.pred_text is not None]
    audio_s, seconds = sum(line.duration for line in transcribed), sum(line.time for line in transcribed)
    if audio_s > seconds * FASTEST:
        raise Refused(f"recognised {audio_s / seconds:.0f} times faster than it is spoken, which nothing does")
    if earlier := evidence.add(config, lines):
        raise Refused(f"the transcripts are those of {earlier}, to the letter")
    return entry


def _entry(path: Path, lines: Sequence[Prediction], expected: Expected) -> RunConfig:
    from speech_robust_bench.models.run_folder import record_of

    record = record_of(expected.config_data, expected.of or len(lines), lines)
    suite = expected.suite if len(lines) < (record.of or 0) else None
    return record.replace(suite=suite, sha256=file_facts(path).sha256)


NOT_CHECKED = ("fingerprint",)  # of the folder that a config was built in: the benchmark does not have it


def _check_run(verdict: Verdict, claimed: RunRecord, entries: Mapping[str, RunConfig]) -> None:
    if set(claimed.configs or {}) != set(entries):
        verdict.refuse("run.json: 'configs' are not those that the submission has predictions of")
        return
    for config, entry in entries.items():
        theirs, ours = (record.replace(scenario_version=record.version) for record in (claimed.config(config), entry))
        for key in entry.__struct_fields__:
            said, value = getattr(theirs, key), getattr(ours, key)
            if key == "content_sha256" and entry.suite and said is None:
                continue  # perturbed while it ran: the hash of the whole config takes the clips that a suite leaves out
            if key not in NOT_CHECKED and not close(said, value, TIME_TOLERANCE):
                what = "this benchmark has" if key.endswith(("version", "content_sha256")) else "it is"
                verdict.refuse(
                    f"run.json: {config}.{key} says {'nothing' if said is None else _short(said)}, {what} "
                    f"{_short(value)}"
                )


def _check_scores(verdict: Verdict, folder: Path, files: SubmittedFiles, entries: Mapping[str, RunConfig]) -> None:
    claimed, trusted = files.scores, files.run.replace(configs=dict(entries))
    run = Run(folder, files.submission.model.name, trusted, tuple(sorted(entries)))
    try:
        recomputed = results.results(run)
    except UserError as error:
        verdict.refuse(f"cannot be scored: {shown(str(error))}")
        return
    skip = ("software",)
    for line in differences({k: v for k, v in claimed.items() if k not in skip}, recomputed.as_json(), skip=skip):
        verdict.refuse(f"results.json: {line}")
    verdict.results, verdict.run = recomputed, run


LATER_KEYS = ("nwer", "measures")  # results of before do not have them


def differences(claimed: object, recomputed: object, where: str = "", skip: tuple[str, ...] = ()) -> list[str]:
    """The lines that differ: what a file says, and what its predictions give."""
    if isinstance(claimed, dict) and isinstance(recomputed, dict):
        lines = []
        for key in [*recomputed, *(key for key in claimed if key not in recomputed)]:
            later = key in LATER_KEYS and key not in claimed
            unknown = (
                where.rpartition(".")[2] == "measures" and key not in recomputed
            )  # of an extension that is not here
            if key not in skip and not later and not unknown:
                place = f"{where}.{shown(str(key))}" if where else shown(str(key))
                missing = "nothing"
                lines += differences(claimed.get(key, missing), recomputed.get(key, missing), place)
        return lines
    if close(claimed, recomputed, INTERVAL_TOLERANCE if where.endswith(".interval") else TOLERANCE):
        return []
    return [f"{where} says {_short(claimed)}, the predictions give {_short(recomputed)}"]


def close(value: object, expected: object, tolerance: float) -> bool:
    """Equal, but for what rounding may do to a number."""
    if isinstance(value, bool) or isinstance(expected, bool):
        return value is expected
    if isinstance(value, int | float) and isinstance(expected, int | float):
        return abs(value - expected) <= tolerance
    if isinstance(value, list) and isinstance(expected, list) and len(value) == len(expected):
        return all(close(a, b, tolerance) for a, b in zip(value, expected, strict=True))
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(close(value[key], expected[key], tolerance) for key in value)
    return type(value) is type(expected) and bool(value == expected)


def _short(value: object) -> str:
    return shown(value if isinstance(value, str) else repr(value))
