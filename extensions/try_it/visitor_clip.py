"""A visitor's clip under one scenario, made in a process of its own with bounded memory and time.

Whatever a file does to the decoder (a crash, gigabytes out of kilobytes, an endless loop), it costs one clear line.
"""

from __future__ import annotations

import multiprocessing
import multiprocessing.connection
import multiprocessing.forkserver
import resource
from dataclasses import dataclass
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path

import numpy as np
import soundfile

import speech_robust_bench as srb
from speech_robust_bench.builders.gallery import spectrogram_png
from speech_robust_bench.core.audio import RATE, read
from speech_robust_bench.core.errors import UserError

MOST_BYTES = 10_000_000
MOST_CLIP_S = 30.0
MEMORY_BYTES = 2_000_000_000
CPU_S = 20
SECONDS = 60.0  # by the clock, on a machine that is busy with others


@dataclass(frozen=True)
class VisitorClip:
    """The clip before and after: 16-bit samples at 16 kHz and a spectrogram (PNG) of each, and what was done."""

    before: np.ndarray
    after: np.ndarray
    before_png: bytes
    after_png: bytes
    told: str


def scenarios() -> dict[str, tuple[int, ...]]:
    """The scenarios that change a clip with nothing but the package itself, and their severities."""
    return {row.name: tuple(row.levels) for row in srb.scenarios() if row.perturbs and not row.package}


def perturbed(path: str | Path, scenario: str, severity: int) -> VisitorClip:
    """The clip in a file under a scenario; a `UserError` says in one line why there is none."""
    size = Path(path).stat().st_size
    if size > MOST_BYTES:
        raise UserError(f"the file has {size / 1e6:.1f} MB; at most {MOST_BYTES / 1e6:.0f} MB can be tried")
    receiver, sender = multiprocessing.Pipe(duplex=False)
    process = _context().Process(target=_answer, args=(sender, str(path), scenario, severity), daemon=True)
    process.start()
    sender.close()
    try:
        answer = receiver.recv() if receiver.poll(SECONDS) else None
    except EOFError:  # it died
        answer = None
    finally:
        process.kill()
        process.join()
        receiver.close()
    if isinstance(answer, VisitorClip):
        return answer
    raise UserError(answer or "the file cannot be read within the memory and time that a clip may take")


def start() -> None:
    """Start the process that clips are copied from, before the first visitor waits for it."""
    _context()
    multiprocessing.forkserver.ensure_running()


@cache
def _context() -> ForkServerContext:
    """New processes are copies of one that has imported what is needed, so that a clip takes no second to start."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["speech_robust_bench.builders.forkserver_preload", __name__])
    return context


def _answer(sender: multiprocessing.connection.Connection, path: str, scenario: str, severity: int) -> None:
    for kind, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_S), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
    try:
        sender.send(_make(path, scenario, severity))
    except UserError as problem:
        sender.send(str(problem).replace(path, "the file"))
    except MemoryError:
        sender.send("the file takes more memory than a clip may")


def _make(path: str, scenario: str, severity: int) -> VisitorClip:
    try:
        seconds = soundfile.info(path).duration
    except soundfile.LibsndfileError:
        raise UserError("the file is not audio that can be read; WAV, FLAC, MP3 and Ogg can") from None
    clip = np.clip(read(path, end_s=MOST_CLIP_S if seconds > MOST_CLIP_S else None), -1, 1)
    if not len(clip):
        raise UserError("the file has no audio in it")
    made = srb.perturb(clip, RATE, scenario, severity)
    facts = [f"{key} {value}" for key, value in made.parameters.items()]
    facts += [f"SNR {made.snr_db:.1f} dB"] if made.snr_db is not None else []
    facts += [f"the first {MOST_CLIP_S:g} s of the clip"] if seconds > MOST_CLIP_S else []
    named = f"{scenario}, severity {severity}" if severity else scenario
    before, after = ((np.asarray(samples) * 32_767).round().astype(np.int16) for samples in (clip, made.samples))
    return VisitorClip(before, after, spectrogram_png(clip), spectrogram_png(made.samples), "; ".join([named, *facts]))
