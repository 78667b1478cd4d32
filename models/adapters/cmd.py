"""A shell command: `cmd:my-recogniser --quiet {}` is run with the path of a WAV file, and prints the text.

`{}` is the path of one 16-bit WAV. `{list}` instead is the path of a text file that lists the WAVs of a batch, one per
line: then one process transcribes them all and prints one line for each, in order. `{language}` is the code of the
clip's language. Each is quoted for the shell, so write no quotes around it. What the command prints on stderr is only
looked at when it fails.
"""

from __future__ import annotations

import os
import re
import selectors
import shlex
import signal
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.audio import to_pcm16
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import is_language_code
from speech_robust_bench.core.secrets import mask_secrets
from speech_robust_bench.models.interface import Clip, Described, Recogniser, SomeFailed, spec_traits

MOST_BYTES = 4 * 2**20  # of what a command prints for one clip or one list of clips
LAST_BYTES = 1 << 16  # of stderr are kept
SHELL_SIGNS = frozenset("$`;&|<>()'\"\\\n*?!")  # quoted, but not where a command has quotes of its own around `{}`
NOT_RUNNABLE = {126, 127}  # a shell's exit codes for a program that may not be run, or is not there


@dataclass
class Command(Described):
    """One process per clip, `workers` at a time, or one per batch."""

    command: str = ""
    timeout_s: float = 600.0
    pool: Any = None
    _ran: bool = False  # whether it has ever worked

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        with tempfile.TemporaryDirectory(prefix="srb-") as place:
            if set(place) & SHELL_SIGNS:
                raise UserError(f"{tempfile.gettempdir()}: a shell would read signs in its name; set TMPDIR to another")
            paths = [_write(Path(place) / f"{index:05d}.wav", clip, rate) for index, clip in enumerate(clips)]
            if "{list}" in self.command:
                listing = Path(place) / "list.txt"
                listing.write_text("".join(f"{path}\n" for path in paths))
                lines = self._run("{list}", listing, language).splitlines()
                if len(lines) != len(clips):
                    raise RuntimeError(f"the command printed {len(lines)} lines for {len(clips)} files")
                return [line.strip() for line in lines]
            return SomeFailed.raise_if_failed(list(self.pool.map(lambda path: self._one(path, language), paths)))

    def _one(self, path: Path, language: str | None) -> str | Exception:
        try:
            return " ".join(self._run("{}", path, language).split())
        except Exception as error:
            return error

    def _run(self, mark: str, path: Path, language: str | None) -> str:
        if language is not None and not is_language_code(language):
            raise RuntimeError("the clip's language is not a language code, and may not enter a command")
        values = {mark: str(path), "{language}": language or ""}
        pattern = "|".join(map(re.escape, values))
        command = re.sub(pattern, lambda match: shlex.quote(values[match[0]]), self.command)
        code, output, errors = run_bounded(command, self.timeout_s)
        last = errors.decode("utf-8", "replace").strip().splitlines()[-1:] or [""]
        if code in NOT_RUNNABLE and not self._ran:
            raise UserError(f"cmd:{mask_secrets(self.command)}: cannot be run ({last[0]})")
        if code:
            raise RuntimeError(f"exit code {code}: {last[0]}".rstrip(": "))
        self._ran = True
        return output.decode("utf-8", "replace")

    def close(self) -> None:
        self.pool.shutdown(wait=False, cancel_futures=True)


def run_bounded(command: str, timeout_s: float) -> tuple[int, bytes, bytes]:
    """Run a shell command: its exit code, what it printed, and the end of what it printed on stderr.

    It is killed, with all that it started, when it has not finished in time or prints more than MOST_BYTES.
    """
    if os.name == "nt":  # no process groups to kill, and no select() on pipes
        raise UserError("shell commands of recognisers need Linux or macOS; on Windows use python: or http:")
    deadline = time.monotonic() + timeout_s
    process = subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout
    assert process.stderr
    output, errors = bytearray(), bytearray()
    try:
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ, output)
            selector.register(process.stderr, selectors.EVENT_READ, errors)
            while selector.get_map():
                ready = selector.select(max(0.0, deadline - time.monotonic()))
                if not ready:
                    raise RuntimeError(f"no answer within {timeout_s:g} s")
                for key, _ in ready:
                    block = os.read(key.fd, 1 << 16)
                    key.data.extend(block)
                    if not block:
                        selector.unregister(key.fileobj)
                del errors[:-LAST_BYTES]
                if len(output) > MOST_BYTES:
                    raise RuntimeError(f"the command printed more than {MOST_BYTES // 2**20} MiB")
        code = process.wait(max(0.0, deadline - time.monotonic()))
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        if isinstance(error, subprocess.TimeoutExpired):
            raise RuntimeError(f"no answer within {timeout_s:g} s") from None
        raise
    finally:
        process.stdout.close()
        process.stderr.close()
    return code, bytes(output), bytes(errors)


def _write(path: Path, clip: Clip, rate: int) -> Path:
    import soundfile

    soundfile.write(path, to_pcm16(clip.clip(-1, 1)), rate, subtype="PCM_16")
    return path


@spec_traits(holds_keys=True)
def load(target: str, *, workers: int = 1, batch_size: int = 16, timeout_s: float = 600.0) -> Recogniser:
    """`cmd:<shell command>` with `{}` or `{list}` in it."""
    if "{}" not in target and "{list}" not in target:
        raise UserError(
            f"cmd:{mask_secrets(target)}: write {{}} where the path of the WAV file goes, as in cmd:my-recogniser {{}}"
        )
    return Command(
        name=mask_secrets(target),
        revision=None,
        options={"workers": workers, "batch_size": batch_size, "timeout_s": timeout_s},
        batch_size=batch_size,
        command=target,
        timeout_s=timeout_s,
        pool=ThreadPoolExecutor(workers, thread_name_prefix="cmd"),
    )
