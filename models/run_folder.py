"""The files of a run folder: the predictions of each config, and `run.json` about model, machine and data.

Predictions are a line of JSON per clip, appended batch by batch to `<config>.jsonl.part`. When every clip has its line,
the file is put in the order of the config and renamed to `<config>.jsonl`. After a kill the whole lines that are there
count, and a torn last line is cut off. The keys are those of the Open ASR leaderboard, and a few more.
"""

from __future__ import annotations

import math
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import structs

from speech_robust_bench.builders.configs import ClipRow
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked, write_atomically
from speech_robust_bench.core.records import (
    ConfigData,
    Prediction,
    RunConfig,
    RunRecord,
    Settings,
    Told,
    convert,
    parse_line,
    read_run_record,
    to_json,
)
from speech_robust_bench.core.secrets import redacted
from speech_robust_bench.models.interface import PERFORMANCE_OPTIONS, Clip, Recogniser, Spec
from speech_robust_bench.models.transcriber import Transcription


def line_of(config: str, row: ClipRow, outcome: Transcription, clip: Clip | Exception | None = None) -> Prediction:
    """One prediction, as docs/concepts/files.md lays it out."""
    told = convert(outcome.details, Told)
    return Prediction(
        id=row.id,
        audio_filepath=f"{config}/{row.id}.flac",
        duration=round(row.duration, 6),
        time=round(outcome.seconds, 6),
        text=row.text,
        pred_text=outcome.text,
        speaker=row.speaker,
        gender=row.gender,
        age=row.age,
        accent=row.accent,
        language=row.language,
        loudness_dbfs=loudness_dbfs(clip) if isinstance(clip, np.ndarray) else None,
        columns=dict(row.columns) or None,
        word_confidences=told.word_confidences,
        alternatives=told.alternatives,
        pred_turns=told.pred_turns,
        raw_text=told.raw_text,
        stream=told.stream,
        details={key: value for key, value in outcome.details.items() if key not in Told.__struct_fields__} or None,
        error=outcome.error,
        **row.facts,
    )


def loudness_dbfs(clip: Clip) -> float | None:
    """The RMS level in dB below full scale, to a tenth; digital silence has none."""
    power = float(np.dot(clip, clip)) / len(clip) if len(clip) else 0.0
    return round(10 * math.log10(power), 1) if power > 0 else None


class PredictionsFile:
    """The predictions of one config while it is being run: locked for this run, and readable at any moment."""

    def __init__(self, folder: Path, config: str, *, retry_failed: bool = False) -> None:
        self.final = folder / f"{config}.jsonl"
        self.part = folder / f"{config}.jsonl.part"
        self._open = ExitStack()
        new_folders = [path for path in (folder, *folder.parents) if not path.exists()]
        busy = f"{folder / config}: another srb run is writing it; wait for it, or use --name"
        self._open.enter_context(locked(folder / ".locks" / config, busy))
        self._open.callback(self._leave_no_trace, new_folders)
        self._in_part, self._whole_bytes = read_lines(self.part)
        self.lines = {**read_lines(self.final)[0], **self._in_part}
        if retry_failed:
            self.lines = {clip_id: line for clip_id, line in self.lines.items() if b'"error": ' not in line}
        self._file: Any = None

    def __enter__(self) -> PredictionsFile:
        return self

    def add(self, lines: list[Prediction]) -> None:
        """Append a batch; the operating system has it when this returns, so killing the process loses nothing."""
        if self._file is None:
            self._begin()
        encoded = {line.id: to_json(line) for line in lines}
        self.lines.update({clip_id: line[:-1] for clip_id, line in encoded.items()})
        self._file.write(b"".join(encoded.values()))
        self._file.flush()

    def _begin(self) -> None:
        if self.lines != self._in_part:  # a finished file is made longer, or failed clips are tried again
            write_atomically(self.part, b"".join(line + b"\n" for line in self.lines.values()))
        elif self.part.is_file():
            os.truncate(self.part, self._whole_bytes)
        self._file = self._open.enter_context(self.part.open("ab"))

    def finish(self, order: Iterable[str]) -> None:
        """Put the lines in the config's order and give the file its name."""
        write_atomically(
            self.final, b"".join(self.lines[clip_id] + b"\n" for clip_id in order if clip_id in self.lines)
        )
        self.part.unlink(missing_ok=True)

    def __exit__(self, *_: Any) -> None:
        self._open.close()

    def _leave_no_trace(self, new_folders: list[Path]) -> None:
        """Remove the folders that were made for this file if they hold nothing but locks: no model was loaded."""
        locks = self.final.parent / ".locks"
        if new_folders and os.listdir(new_folders[0]) == [locks.name]:
            (locks / self.final.stem).unlink(missing_ok=True)
            with suppress(OSError):  # others have locks there
                for folder in (locks, *new_folders):
                    folder.rmdir()


def first_error(path: Path) -> str | None:
    """The error of the first clip of a predictions file that has one."""
    errors = (parse_line(line).error for line in read_lines(path)[0].values())
    return next(filter(None, errors), None)


def error_of_all(folder: Path, records: Mapping[str, RunConfig]) -> str | None:
    """The first error of a run in which there were clips and not one of them has a transcript."""
    if any((record.failed or 0) < (record.rows or 0) for record in records.values()):
        return None
    errors = (first_error(folder / f"{name}.jsonl") for name, record in records.items() if record.failed)
    return next(errors, None)


def read_lines(path: Path) -> tuple[dict[str, bytes], int]:
    """The lines of a predictions file by id, and their bytes, up to the first invalid one: the end of a killed run."""
    lines: dict[str, bytes] = {}
    whole = 0
    if path.is_file():
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                lines[parse_line(line).id] = line
            except ValueError:
                break
            whole += len(line) + 1
    return lines, whole


QUANTILES = (5, 25, 50, 75, 95, 99)
# packages whose versions go into run.json
ALWAYS = ("numpy", "pyarrow", "soundfile")
IF_USED = {
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "onnxruntime": "onnxruntime",
    "pocketsphinx": "pocketsphinx",
    "vosk": "vosk",
    "nemo": "nemo_toolkit",
    "mistral_common": "mistral-common",
    "speechbrain": "speechbrain",
    "faster_whisper": "faster-whisper",
    "ctranslate2": "ctranslate2",
}


def record_of(data: ConfigData, clips: int, lines: Iterable[Prediction]) -> RunConfig:
    """A config's entry in run.json; `clips` is how many the whole config has."""
    rows = list(lines)
    seconds, durations = np.array([(row.time or 0, row.seconds) for row in rows], float).reshape(-1, 2).T
    transcribed = np.array([row.error is None for row in rows], dtype=bool)
    timed = transcribed & (durations > 0)
    factors = seconds[timed] / durations[timed]
    return RunConfig(
        **structs.asdict(data),
        rows=len(rows),
        of=clips,
        failed=int((~transcribed).sum()),
        audio_s=round(float(durations.sum()), 3),
        seconds=round(float(seconds.sum()), 6),
        rtf=round(float(seconds[timed].sum() / durations[timed].sum()), 6) if timed.any() else None,
        rtf_quantiles={f"p{q}": round(float(np.percentile(factors, q)), 6) for q in QUANTILES} if timed.any() else {},
    )


class RunFile:
    """Reads, checks and updates the `run.json` of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "run.json"

    def read(self) -> RunRecord | None:
        """What the file holds; None if there is none yet."""
        return read_run_record(self.path) if self.path.is_file() else None

    def update(self, change: Callable[[RunRecord], RunRecord]) -> None:
        """Read, change and rename into place, while no other process does."""
        with locked(self.folder / ".locks" / "run.json", "", wait=True):
            record = change(self.read() or RunRecord())
            write_atomically(self.path, to_json(record.replace(updated=_now()), indent=2))

    def check(self, spec: Spec, environment: Sequence[str] = ()) -> None:
        """Refuse to mix the predictions of two models, or of one under two settings, in one folder."""
        known = self.read()
        if known is None:
            return
        masked = spec.masked
        if (known.adapter, known.target, known.asked) != (masked.adapter, masked.target, masked.decisive):
            raise UserError(
                f"{self.folder} holds a run of {known.spec}, not of this model with these options; "
                "--name gives this one a folder of its own"
            )
        before, now = (redacted(sorted(e)) for e in ((known.options or {}).get("environment", []), environment))
        if known.configs and before != now:
            raise UserError(
                f"{self.folder} holds a run with --env {before}, now it is {now}; "
                "--name gives this one a folder of its own"
            )

    def check_loaded(self, recogniser: Recogniser) -> None:
        """The same for what only the loaded model knows: its revision, and the options it chose itself."""
        known = self.read()
        if known is None or not known.configs:
            return
        if known.revision != recogniser.revision:
            raise UserError(
                f"{self.folder} holds predictions of revision {known.revision}, and the model is now "
                f"{recogniser.revision}; --name gives it a folder of its own"
            )
        before, now = (_decisive(redacted(options)) for options in (known.options or {}, recogniser.options))
        if before != now:
            raise UserError(f"{self.folder} holds a run with options {before}, now they are {now}; use --name")


def _decisive(options: Settings) -> Settings:
    return {key: value for key, value in options.items() if key not in PERFORMANCE_OPTIONS}


def describe(spec: Spec, recogniser: Recogniser, where: str, name: str | None = None) -> RunRecord:
    """The part of run.json that is about the model and the machine; `name` is what the user calls the model."""
    spec = spec.masked
    return RunRecord(
        model=name or recogniser.name,
        spec=str(spec),
        adapter=spec.adapter,
        target=spec.target,
        asked=spec.decisive,
        revision=recogniser.revision,
        options=redacted(recogniser.options),
        data=where,
        versions={
            "speech-robust-bench": metadata.version("speech-robust-bench"),
            "python": platform.python_version(),
            **{name: _version(name) for name in ALWAYS},
            **{package: _version(package) for name, package in IF_USED.items() if name in sys.modules},
            **_versions_elsewhere(recogniser),
        },
        machine={
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "accelerator": _accelerator(),
        },
    )


def _versions_elsewhere(recogniser: Recogniser) -> dict[str, str]:
    """Of a recogniser in an environment of its own: the versions there, which are the ones that count."""
    there = getattr(recogniser, "versions", None) or {}
    return {package: there[package] for package in (*ALWAYS, *IF_USED.values()) if package in there}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _accelerator() -> str | None:
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
