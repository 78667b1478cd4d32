"""The predictions of one config: a line of JSON per clip, appended batch by batch to `<config>.jsonl.part`.

When every clip has its line, the file is put in the config's order and renamed to `<config>.jsonl`. After a kill the
whole lines that are there count, and a torn last line is cut off. The keys are those of the Open ASR leaderboard, and a
few more.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders.configs import ClipRow
from speech_robust_bench.core.files import locked, write_atomically
from speech_robust_bench.core.records import Prediction, RunConfig, Told, convert, parse_line, to_json
from speech_robust_bench.models.interface import Clip
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
