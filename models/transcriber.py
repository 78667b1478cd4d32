"""The clips of a config in batches of like length, read and decoded while the recogniser works.

Call a recogniser so that one bad clip or a full memory costs as little as possible.
"""

from __future__ import annotations

import gc
import json
import queue
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from speech_robust_bench.builders.configs import ClipRow, Config, Window
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Told, convert
from speech_robust_bench.core.rows import LONGEST
from speech_robust_bench.core.secrets import mask_secrets
from speech_robust_bench.models.interface import Clip, Recogniser, SomeFailed, Transcript, out_of_memory

T = TypeVar("T")


@dataclass
class Batch:
    """Clips of one language, of like length; a clip that could not be decoded is an error in its place."""

    rows: list[ClipRow]
    clips: list[Clip | Exception]


def plan(rows: Sequence[ClipRow], batch_size: int, batch_seconds: float | None) -> list[list[ClipRow]]:
    """Batches of like length, the longest first: so memory runs out at once if it does, and the estimate only falls.

    `batch_seconds` bounds the padded audio: the number of clips times the longest.
    """
    batches: list[list[ClipRow]] = []
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


def _decoded(window: Window, row: ClipRow) -> Clip | Exception:
    try:
        return window.decode(row)
    except Exception as error:  # any broken file is that clip's failure, not the run's
        return error


def prefetch(items: Iterable[T], depth: int = 2) -> Iterator[T]:
    """Iterate in a background thread, `depth` items ahead of the caller."""
    ready: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(kind: str, value: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put((kind, value), timeout=0.1)
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
            kind, value = ready.get()
            if kind == "end":
                return
            if kind == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()


MOST_CHARACTERS = LONGEST["text"]  # of one clip's text, as of a reference: what is stored can be submitted
GIVE_UP_AFTER = 25  # failures with not one success: then the recogniser is broken, not the clip


@dataclass(frozen=True)
class Transcription:
    """One clip's text, or the error in its place, and the time it took."""

    text: str | None
    error: str | None
    seconds: float
    details: Mapping[str, Any] = field(default_factory=dict)  # what the recogniser told besides the text


@dataclass
class Transcriber:
    """Calls a recogniser so that one bad clip or a full memory costs as little as possible."""

    recogniser: Recogniser
    most_seconds: float = float("inf")  # of padded audio in a call; halved whenever memory ran out
    successes: int = 0
    failures: int = 0

    def transcribe(self, batch: Batch) -> list[Transcription]:
        """One outcome per clip, in order."""
        language = batch.rows[0].language
        outcomes: list[Transcription | None] = [
            Transcription(None, one_line(clip), 0.0) if isinstance(clip, Exception) else None for clip in batch.clips
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

    def _try(self, clips: list[Clip], language: str | None) -> list[Transcription]:
        if len(clips) > 1 and len(clips) * max(map(len, clips)) / RATE > self.most_seconds:
            return self._halves(clips, language)
        start = time.perf_counter()
        try:
            results: Sequence[Any] = self.recogniser.transcribe(clips, RATE, language) if clips else []
            _check_count(results, len(clips))
        except UserError:
            raise
        except SomeFailed as known:
            results = known.outcomes
        except (Exception, SystemExit) as error:  # somebody else's code may end the program
            if len(clips) == 1:
                return [Transcription(None, one_line(error), time.perf_counter() - start)]
            if isinstance(error, SystemExit) or not out_of_memory(error):
                return [outcome for clip in clips for outcome in self._try([clip], language)]
            self.most_seconds = len(clips) * max(map(len, clips)) / RATE / 2
            del error
            _free_memory()
            return self._halves(clips, language)
        each = (time.perf_counter() - start) / max(1, len(clips))
        return [transcription_of(result, each) for result in results]

    def _halves(self, clips: list[Clip], language: str | None) -> list[Transcription]:
        middle = (len(clips) + 1) // 2
        return self._try(clips[:middle], language) + self._try(clips[middle:], language)


def transcription_of(result: Any, seconds: float) -> Transcription:
    """What a recogniser gave for one clip: a text that can be stored, or else the clip's error."""
    if isinstance(result, BaseException):
        return Transcription(None, one_line(result), seconds)
    if not isinstance(result, str):
        return Transcription(None, f"TypeError: the recogniser returned {type(result).__name__}, not a text", seconds)
    if len(result) > MOST_CHARACTERS:
        return Transcription(None, f"ValueError: a text of {len(result)} characters", seconds)
    details = result.details if isinstance(result, Transcript) else {}
    try:
        result.encode()
        text = json.dumps(details, ensure_ascii=False)
        text.encode()
        details = json.loads(text)  # with Python's own numbers and lists
        convert(details, Told)
    except UnicodeEncodeError as error:
        lone = f"U+{ord(error.object[error.start]):04X}"
        return Transcription(None, f"UnicodeEncodeError: half of a character ({lone}) at {error.start}", seconds)
    except ValueError as error:
        return Transcription(None, f"ValueError: the recogniser told something odd, {error}", seconds)
    return Transcription(result.strip(), None, seconds, details)


def _check_count(results: Any, count: int) -> None:
    if not isinstance(results, list) or len(results) != count:
        raise TypeError(f"the recogniser must return a list of {count} texts")


def _free_memory() -> None:
    gc.collect()
    if (torch := sys.modules.get("torch")) and torch.cuda.is_available():
        torch.cuda.empty_cache()


def one_line(error: BaseException) -> str:
    """An exception in one short line that can be stored and shown: no control characters, no key that it repeats."""
    try:
        lines = str(error).strip().splitlines()
    except Exception:  # its __str__ is somebody else's code
        lines = []
    if not lines:
        return type(error).__name__
    printable = "".join(letter if letter.isprintable() else "?" for letter in lines[0][:300])
    return mask_secrets(f"{type(error).__name__}: {printable}")
