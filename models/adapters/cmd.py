"""A shell command: `cmd:my-recogniser --quiet {}` is run with the path of a WAV file, and prints the text.

`{}` is the path of one 16-bit WAV, quoted. `{list}` instead is the path of a text file that lists the WAVs of a batch,
one per line: then one process hears them all and prints one line for each, in order. `{language}` is the code of the
clip's language. What the command prints on stderr is only looked at when it fails.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srb.builders.audio import to_pcm16
from srb.builders.errors import UserError
from srb.models.interface import Clip, Described, Recogniser, SomeFailed


@dataclass
class Command(Described):
    """One process per clip, `workers` at a time, or one per batch."""

    command: str = ""
    timeout_s: float = 600.0
    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        with tempfile.TemporaryDirectory(prefix="srb-") as place:
            paths = [_write(Path(place) / f"{index:05d}.wav", clip, rate) for index, clip in enumerate(clips)]
            if "{list}" in self.command:
                listing = Path(place) / "list.txt"
                listing.write_text("".join(f"{path}\n" for path in paths))
                lines = self._run("{list}", listing, language).splitlines()
                if len(lines) != len(clips):
                    raise RuntimeError(f"the command printed {len(lines)} lines for {len(clips)} files")
                return [line.strip() for line in lines]
            return SomeFailed.unless_all_well(list(self.pool.map(lambda path: self._one(path, language), paths)))

    def _one(self, path: Path, language: str | None) -> str | Exception:
        try:
            return " ".join(self._run("{}", path, language).split())
        except Exception as error:
            return error

    def _run(self, mark: str, path: Path, language: str | None) -> str:
        command = self.command.replace(mark, shlex.quote(str(path))).replace("{language}", language or "")
        process = subprocess.Popen(
            command, shell=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            heard, said = process.communicate(timeout=self.timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            raise RuntimeError(f"no answer within {self.timeout_s:g} s") from None
        if process.returncode:
            last = said.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
            raise RuntimeError(f"exit code {process.returncode}: {last[0]}".rstrip(": "))
        return heard.decode("utf-8", "replace")

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def _write(path: Path, clip: Clip, rate: int) -> Path:
    import soundfile

    soundfile.write(path, to_pcm16(clip.clip(-1, 1)), rate, subtype="PCM_16")
    return path


def load(target: str, *, workers: int = 1, batch_size: int = 16, timeout_s: float = 600.0) -> Recogniser:
    """`cmd:<shell command>` with `{}` or `{list}` in it."""
    if "{}" not in target and "{list}" not in target:
        raise UserError(f"cmd:{target}: write {{}} where the path of the WAV file goes, as in cmd:my-recogniser {{}}")
    return Command(
        name=target,
        revision=None,
        options={"workers": workers, "batch_size": batch_size, "timeout_s": timeout_s},
        batch_size=batch_size,
        command=target,
        timeout_s=timeout_s,
        pool=ThreadPoolExecutor(workers, thread_name_prefix="cmd"),
    )
