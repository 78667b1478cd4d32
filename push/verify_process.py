"""Check one submission in a process of its own, with bounded memory and time, and write its verified files there.

Whatever a stranger's files do to the checker, a crash or an endless loop, costs that one submission: it is refused with
the reason, and the next one is checked.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.push import expected_rows
from speech_robust_bench.push.expected_rows import Expected
from speech_robust_bench.push.submitted_files import shown

MEMORY_BYTES = 12_000_000_000
CPU_SECONDS = 1_800
SECONDS = 3_600.0


@dataclass(frozen=True)
class Task:
    """What to check, against what, and where the verified files go (nowhere if `out` is None)."""

    folder: str
    benchmark: str
    audio: Sequence[str] = ()
    out: str | None = None
    predictions_url: str | None = None
    author: str | None = None


@dataclass(frozen=True)
class Outcome:
    """Result of the verification: reasons for a refusal, flags, and the verified file that was written."""

    reasons: list[str]
    flags: list[str] = field(default_factory=list)
    written: str | None = None

    @property
    def accepted(self) -> bool:
        return not self.reasons


def check(
    folder: str | Path,
    benchmark: Mapping[str, Expected],
    *,
    audio: Sequence[str] = (),
    out: str | Path | None = None,
    predictions_url: str | None = None,
    author: str | None = None,
) -> Outcome:
    """Check a submission; `audio` is where its own adversarial configs are, `author` who sent it: the model's owner."""
    if os.name == "nt":
        raise UserError("submissions are verified on Linux or macOS: Windows cannot bound the memory of the checker")
    with tempfile.TemporaryDirectory(prefix="srb-") as scratch:
        expected = Path(scratch) / expected_rows.NAME
        expected.write_text(expected_rows.to_json(benchmark), encoding="utf-8")
        task = Task(
            str(Path(folder).absolute()), str(expected), list(audio), str(out) if out else None, predictions_url, author
        )
        command = [sys.executable, "-m", "speech_robust_bench.push.verify_process"]
        try:
            done = subprocess.run(
                command, input=json.dumps(asdict(task)), capture_output=True, text=True, timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return Outcome([f"takes longer to check than {SECONDS:g} s"])
    try:
        return Outcome(**json.loads(done.stdout.splitlines()[-1]))
    except (IndexError, ValueError, TypeError):
        lines = done.stderr.strip().splitlines()
        last = f": {shown(lines[-1])}" if lines else ""
        return Outcome([f"breaks the checker (exit code {done.returncode}){last}"])


def _check(task: Task) -> Outcome:
    from speech_robust_bench.push import verified
    from speech_robust_bench.push.leaderboard import verified_files
    from speech_robust_bench.push.verify import verify

    verdict = verify(task.folder, expected_rows.load(task.benchmark), task.audio)
    if not verdict.accepted or verdict.facts is None:
        return Outcome(verdict.reasons)
    owner = verdict.facts.model.owner
    if task.author and task.author.lower() != owner.lower():
        return Outcome([f"submission.json: the model belongs to '{shown(owner)}', but {shown(task.author)} sent it"])
    if task.out is None:
        return Outcome([], verdict.flags)
    try:
        written = verified.write(verdict, Path(task.out), task.predictions_url)
    except UserError as problem:  # a full disk, or a value that no page can show; the version before stays
        return Outcome([str(problem)])
    return Outcome([], verified_files.read(written).flags or [], str(written))


def _main() -> None:
    import resource

    for kind, most in ((resource.RLIMIT_AS, MEMORY_BYTES), (resource.RLIMIT_CPU, CPU_SECONDS)):
        resource.setrlimit(kind, (most, most))
    print(json.dumps(asdict(_check(Task(**json.load(sys.stdin))))))


if __name__ == "__main__":
    _main()
