"""Put a recogniser in front of dataset configs and keep what it heard.

One JSONL per config, a line per clip, appended batch by batch to `<config>.jsonl.part`; when every clip has its line,
the file is put in the config's order and renamed to `<config>.jsonl`. A run that was killed goes on where it stopped:
the lines that are there count, a torn last line is cut off. The keys are those of the Open ASR leaderboard and some.
"""

from __future__ import annotations

import gc
import hashlib
import json
import math
import os
import platform
import queue
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np

from srb.builders.audio import RATE
from srb.builders.errors import UserError
from srb.models.data import Config, Row, Window
from srb.models.interface import PERFORMANCE_OPTIONS, Clip, Recogniser, SomeFailed, Spec, open_model

T = TypeVar("T")
GIVE_UP_AFTER = 25  # failures with not one success: then the recogniser is broken, not the clip
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
    "faster_whisper": "faster-whisper",
    "ctranslate2": "ctranslate2",
}


@dataclass
class Batch:
    """Clips of one language, of like length; a clip that could not be decoded is an error in its place."""

    rows: list[Row]
    clips: list[Clip | Exception]


@dataclass(frozen=True)
class Outcome:
    """What became of one clip."""

    text: str | None
    error: str | None
    seconds: float


@dataclass
class Listener:
    """Calls a recogniser so that one bad clip or a full memory costs as little as possible."""

    recogniser: Recogniser
    most_seconds: float = float("inf")  # of padded audio in a call; halved whenever memory ran out
    successes: int = 0
    failures: int = 0

    def hear(self, batch: Batch) -> list[Outcome]:
        """One outcome per clip, in order."""
        language = batch.rows[0].language
        outcomes: list[Outcome | None] = [
            Outcome(None, _one_line(clip), 0.0) if isinstance(clip, Exception) else None for clip in batch.clips
        ]
        whole = [index for index, outcome in enumerate(outcomes) if outcome is None]
        clips = [clip for clip in batch.clips if not isinstance(clip, Exception)]
        for index, outcome in zip(whole, self._try(clips, language), strict=True):
            outcomes[index] = outcome
            self.successes += outcome.error is None
            self.failures += outcome.error is not None
            if self.failures >= GIVE_UP_AFTER and not self.successes:
                raise UserError(f"the first {self.failures} clips all failed, the last with: {outcome.error}")
        return [outcome for outcome in outcomes if outcome is not None]

    def _try(self, clips: list[Clip], language: str | None) -> list[Outcome]:
        if len(clips) > 1 and len(clips) * max(map(len, clips)) / RATE > self.most_seconds:
            return self._halves(clips, language)
        start = time.perf_counter()
        try:
            texts = self.recogniser.transcribe(clips, RATE, language) if clips else []
            _check(texts, len(clips))
        except UserError:
            raise
        except SomeFailed as known:
            each = (time.perf_counter() - start) / len(clips)
            return [
                Outcome(None, _one_line(one), each) if isinstance(one, Exception) else Outcome(one.strip(), None, each)
                for one in known.outcomes
            ]
        except Exception as error:
            if len(clips) == 1:
                return [Outcome(None, _one_line(error), time.perf_counter() - start)]
            if not out_of_memory(error):
                return [outcome for clip in clips for outcome in self._try([clip], language)]
            self.most_seconds = len(clips) * max(map(len, clips)) / RATE / 2
            del error
            _free_memory()
            return self._halves(clips, language)
        each = (time.perf_counter() - start) / max(1, len(clips))
        return [Outcome(text.strip(), None, each) for text in texts]

    def _halves(self, clips: list[Clip], language: str | None) -> list[Outcome]:
        middle = (len(clips) + 1) // 2
        return self._try(clips[:middle], language) + self._try(clips[middle:], language)


def _check(texts: Any, count: int) -> None:
    if not isinstance(texts, list) or len(texts) != count or not all(isinstance(text, str) for text in texts):
        raise TypeError(f"the recogniser must return a list of {count} texts")


def out_of_memory(error: BaseException) -> bool:
    """Torch, onnxruntime, CTranslate2 and Python each say it in their own way."""
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        return True
    text = str(error).lower()
    return any(
        words in text for words in ("out of memory", "failed to allocate memory", "can't allocate memory", "bad_alloc")
    )


def _free_memory() -> None:
    gc.collect()
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():
        torch.cuda.empty_cache()


def _one_line(error: BaseException) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0][:300]}" if text else type(error).__name__


# ---------------------------------------------------------------------------------------------------------- batches


def plan(rows: list[Row], batch_size: int, batch_seconds: float | None) -> list[list[Row]]:
    """Batches of like length, the longest first: so memory runs out at once if it does, and the estimate only falls.

    `batch_seconds` bounds the padded audio: the number of clips times the longest.
    """
    batches: list[list[Row]] = []
    for row in sorted(rows, key=lambda row: (row.language or "", -row.duration, row.position)):
        last = batches[-1] if batches else []
        fits = last and len(last) < batch_size and last[0].language == row.language
        if fits and (batch_seconds is None or (len(last) + 1) * last[0].duration <= batch_seconds):
            last.append(row)
        else:
            batches.append([row])
    return batches


def read_batches(config: Config, wanted: set[int], batch_size: int, batch_seconds: float | None) -> Iterator[Batch]:
    """Read and decode the wanted clips, batch by batch."""
    for window in config.windows(wanted):
        for rows in plan(window.rows, batch_size, batch_seconds):
            yield Batch(rows, [_decoded(window, row) for row in rows])


def _decoded(window: Window, row: Row) -> Clip | Exception:
    try:
        return window.decode(row)
    except Exception as error:  # any broken file is that clip's failure, not the run's
        return error


def ahead(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """The same items, made in a thread while the caller is busy with the ones before."""
    made: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not stop.is_set():
            try:
                made.put((kind, value), timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def work() -> None:
        try:
            for item in items:
                if not put("item", item):
                    return
            put("end", None)
        except BaseException as error:
            put("error", error)

    thread = threading.Thread(target=work, daemon=True, name="prefetch")
    thread.start()
    try:
        while True:
            kind, value = made.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()


# ------------------------------------------------------------------------------------------------------ predictions


def line_of(config: str, row: Row, outcome: Outcome, clip: Clip | Exception | None = None) -> dict[str, Any]:
    """One prediction, as docs/formats.md lays it out."""
    line: dict[str, Any] = {
        "id": row.id,
        "audio_filepath": f"{config}/{row.id}.flac",
        "duration": round(row.duration, 6),
        "time": round(outcome.seconds, 6),
        "text": row.text,
        "pred_text": outcome.text,
        "speaker": row.speaker,
        "gender": row.gender,
        "age": row.age,
        "accent": row.accent,
        "language": row.language,
        "loudness_dbfs": loudness_dbfs(clip) if isinstance(clip, np.ndarray) else None,
    }
    if outcome.error is not None:
        line["error"] = outcome.error
    return line


def loudness_dbfs(clip: Clip) -> float | None:
    """The RMS level in dB below full scale, to a tenth; digital silence has none."""
    power = float(np.dot(clip, clip)) / len(clip) if len(clip) else 0.0
    return round(10 * math.log10(power), 1) if power > 0 else None


class Predictions:
    """The file of one config while it grows: one run's alone, and whole up to its last line at every moment."""

    def __init__(self, folder: Path, config: str, *, retry_failed: bool = False) -> None:
        self.final = folder / f"{config}.jsonl"
        self.part = folder / f"{config}.jsonl.part"
        self._lock = lock(folder / ".locks" / config, wait=False)
        self._in_part, self._whole_bytes = read_lines(self.part)
        self.lines = {**read_lines(self.final)[0], **self._in_part}
        if retry_failed:
            self.lines = {one: line for one, line in self.lines.items() if b'"error": ' not in line}
        self._file: Any = None

    def __enter__(self) -> Predictions:
        return self

    def add(self, lines: list[dict[str, Any]]) -> None:
        """Append a batch; the operating system has it when this returns, so killing the process loses nothing."""
        if self._file is None:
            self._begin()
        encoded = {line["id"]: json.dumps(line, ensure_ascii=False).encode() for line in lines}
        self.lines.update(encoded)
        self._file.write(b"".join(line + b"\n" for line in encoded.values()))
        self._file.flush()

    def _begin(self) -> None:
        if self.lines != self._in_part:  # a finished file is made longer, or failed clips are tried again
            write_atomically(self.part, b"".join(line + b"\n" for line in self.lines.values()))
        elif self.part.is_file():
            os.truncate(self.part, self._whole_bytes)
        self._file = open(self.part, "ab")  # noqa: SIM115 - closed by __exit__

    def finish(self, order: Iterable[str]) -> None:
        """Put the lines in the config's order and give the file its name."""
        write_atomically(self.final, b"".join(self.lines[one] + b"\n" for one in order if one in self.lines))
        self.part.unlink(missing_ok=True)

    def __exit__(self, *_: Any) -> None:
        if self._file is not None:
            self._file.close()
        self._lock.close()


def read_lines(path: Path) -> tuple[dict[str, bytes], int]:
    """The whole lines of a predictions file by id, and their bytes; the torn end of a killed run is left out."""
    lines: dict[str, bytes] = {}
    whole = 0
    if path.is_file():
        for line in path.read_bytes().split(b"\n")[:-1]:
            try:
                lines[json.loads(line)["id"]] = line
            except (ValueError, KeyError, TypeError):
                break
            whole += len(line) + 1
    return lines, whole


def write_atomically(path: Path, data: bytes) -> None:
    """Write beside the place, then rename: a reader sees the old file or the new one."""
    beside = path.with_name(f".{path.name}.tmp")  # one writer at a time: the locks see to it
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)


def lock(path: Path, *, wait: bool) -> IO[bytes]:
    """Hold a file against other processes until it is closed; the system lets go of it when a process dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    file = path.open("ab")
    try:
        import fcntl
    except ImportError:  # Windows: two runs into one folder at a time are then the user's to avoid
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise UserError(
            f"{path.parent.parent / path.name}: another srb run is writing it; wait for it, or use --name"
        ) from None
    return file


# --------------------------------------------------------------------------------------------------------- run.json


def record_of(config: Config, lines: Iterable[bytes]) -> dict[str, Any]:
    """A config's entry in run.json: what it is, and how fast and how well it went."""
    rows = [json.loads(line) for line in lines]
    seconds = np.array([row["time"] for row in rows], dtype=float)
    durations = np.array([row["duration"] for row in rows], dtype=float)
    heard = np.array([row.get("error") is None for row in rows], dtype=bool)
    timed = heard & (durations > 0)
    factors = seconds[timed] / durations[timed]
    return {
        **config.about,
        "rows": len(rows),
        "of": len(config.rows),
        "failed": int((~heard).sum()),
        "audio_s": round(float(durations.sum()), 3),
        "seconds": round(float(seconds.sum()), 6),
        "rtf": round(float(seconds[timed].sum() / durations[timed].sum()), 6) if timed.any() else None,
        "rtf_quantiles": {f"p{q}": round(float(np.percentile(factors, q)), 6) for q in QUANTILES}
        if timed.any()
        else {},
    }


class RunFile:
    """`run.json`: who was run, on what machine, with which versions, over which configs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "run.json"

    def read(self) -> dict[str, Any]:
        return json.loads(self.path.read_text(encoding="utf-8")) if self.path.is_file() else {}

    def update(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Read, change and rename into place, while no other process does."""
        with lock(self.folder / ".locks" / "run.json", wait=True):
            content = self.read()
            change(content)
            content["updated"] = _now()
            write_atomically(self.path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    def check(self, spec: Spec) -> None:
        """Refuse to mix the predictions of two models, or of one under two settings, in one folder."""
        known = self.read()
        if not known:
            return
        ours = {"adapter": spec.adapter, "target": spec.target, "asked": spec.decisive}
        for key, value in ours.items():
            if known.get(key) != value:
                raise UserError(
                    f"{self.folder} holds a run of {known.get('spec')}, not of this model with these options; "
                    "--name gives this one a folder of its own"
                )

    def check_loaded(self, recogniser: Recogniser) -> None:
        """The same for what only the loaded model knows: its revision, and the options it chose itself."""
        known = self.read()
        if known.get("configs") and known.get("revision", recogniser.revision) != recogniser.revision:
            raise UserError(
                f"{self.folder} holds predictions of revision {known['revision']}, and the model is now "
                f"{recogniser.revision}; --name gives it a folder of its own"
            )
        before, now = (_decisive(options) for options in (known.get("options", {}), recogniser.options))
        if known.get("configs") and before != now:
            raise UserError(f"{self.folder} holds a run with options {before}, now they are {now}; use --name")


def _decisive(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in PERFORMANCE_OPTIONS}


def describe(spec: Spec, text: str, recogniser: Recogniser, where: str) -> dict[str, Any]:
    """The part of run.json that is about the model and the machine."""
    return {
        "model": recogniser.name,
        "spec": text,
        "adapter": spec.adapter,
        "target": spec.target,
        "asked": spec.decisive,
        "revision": recogniser.revision,
        "options": recogniser.options,
        "data": where,
        "versions": {
            "speech-robust-bench": metadata.version("speech-robust-bench"),
            "python": platform.python_version(),
            **{name: _version(name) for name in ALWAYS},
            **{package: _version(package) for name, package in IF_USED.items() if name in sys.modules},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "accelerator": _accelerator(),
        },
    }


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


# -------------------------------------------------------------------------------------------------------------- run


@dataclass
class Runner:
    """One model over any number of configs. The model is loaded when the first clip needs it, and once."""

    spec: Spec
    text: str  # the spec as the user wrote it
    folder: Path
    where: str  # the data, as the user wrote it
    device: str | None = None
    batch_size: int | None = None
    batch_seconds: float | None = None
    limit: int | None = None
    retry_failed: bool = False
    _listener: Listener | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        self.run_file = RunFile(self.folder)
        self.run_file.check(self.spec)

    @property
    def listener(self) -> Listener:
        if self._listener is None:
            recogniser = open_model(self.spec, device=self.device, batch_size=self.batch_size)
            self.run_file.check_loaded(recogniser)
            self._listener = Listener(recogniser)
            about = describe(self.spec, self.text, recogniser, self.where)
            self.run_file.update(lambda content: content.update(about, configs=content.get("configs", {})))
        return self._listener

    def close(self) -> None:
        if self._listener is not None:
            self._listener.recogniser.close()

    def run(self, config: Config, advance: Callable[[float], None] = lambda seconds: None) -> dict[str, Any]:
        """Transcribe what is missing of a config, finish its file, and return its entry of run.json.

        `advance` is told the seconds of audio that are done, those of an earlier run first.
        """
        rows = config.rows[: self.limit]
        with Predictions(self.folder, config.name, retry_failed=self.retry_failed) as predictions:
            if predictions.lines:
                self._check_data(config)
            missing = [row for row in rows if row.id not in predictions.lines]
            advance(sum(row.duration for row in rows) - sum(row.duration for row in missing))
            if missing:
                self._transcribe(config, {row.position for row in missing}, predictions, advance)
            if missing or predictions.part.exists() or not predictions.final.exists():
                predictions.finish(row.id for row in config.rows)
            record = record_of(
                config, (predictions.lines[row.id] for row in config.rows if row.id in predictions.lines)
            )
            record["sha256"] = hashlib.sha256(predictions.final.read_bytes()).hexdigest()
        self._note(config.name, record)
        return record

    def _transcribe(
        self, config: Config, wanted: set[int], predictions: Predictions, advance: Callable[[float], None]
    ) -> None:
        listener = self.listener
        if config.name not in self.run_file.read().get("configs", {}):
            self._note(config.name, {**config.about, "rows": None})  # which data the part file belongs to
        batch_size = self.batch_size or listener.recogniser.batch_size
        for batch in ahead(read_batches(config, wanted, batch_size, self.batch_seconds)):
            outcomes = listener.hear(batch)
            heard = zip(batch.rows, outcomes, batch.clips, strict=True)
            predictions.add([line_of(config.name, *each) for each in heard])
            advance(sum(row.duration for row in batch.rows))

    def _check_data(self, config: Config) -> None:
        known = self.run_file.read().get("configs", {}).get(config.name, {})
        for key in ("content_sha256", "rows_sha256"):
            if known.get(key) and config.about[key] and known[key] != config.about[key]:
                raise UserError(
                    f"{self.folder / config.name}.jsonl was made from other data than {self.where} now holds; "
                    "delete it, or give this run a folder of its own with --name"
                )

    def _note(self, name: str, record: dict[str, Any]) -> None:
        def change(content: dict[str, Any]) -> None:
            content.setdefault("configs", {})[name] = record

        if self.run_file.read().get("configs", {}).get(name) != record:
            self.run_file.update(change)
