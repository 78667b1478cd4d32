"""A virtual environment for each model that needs one: transformers 4 beside 5, NeMo, vLLM.

An environment is made once, with uv if it is there and venv and pip otherwise, and found again by its requirements. The
recogniser then runs in a process of that environment, behind a pipe, and gives the same transcripts as in this one.

`python -m speech_robust_bench.models.environments` is the other end of the pipe: it opens a recogniser and answers for
it. A message is four bytes of length, that much JSON, and the blocks of bytes whose sizes the JSON lists. The first
question names the recogniser; every further one is a batch of clips, or a step of a live stream.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked, write_atomically
from speech_robust_bench.core.secrets import mask_secrets, redacted
from speech_robust_bench.models.interface import Clip, Described, Event, Recogniser, SomeFailed, Spec, Transcript, Word

# What the adapters themselves use, in the versions that are used here
BASE = ("numpy", "soundfile", "soxr", "httpx", "filelock")
PACKAGE = "speech_robust_bench"
ROOMS = ("core", "scoring", "models", "extensions")  # what adapters import
LAST_LINES = 20  # of what the process writes to stderr are kept for the error message


def environments_folder() -> Path:
    """Where environments are kept: `$SRB_ENVIRONMENTS`, or the user's cache."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("SRB_ENVIRONMENTS") or Path(cache) / "srb" / "environments")


def base_requirements() -> list[str]:
    return [f"{name}=={metadata.version(name)}" for name in BASE]


def environment_key(requirements: Sequence[str]) -> str:
    """The same for the same requirements in any order, with the same Python."""
    content = json.dumps([sys.version_info[:2], sorted(requirements), base_requirements()])
    return hashlib.sha256(content.encode()).hexdigest()[:16]


def make_environment(requirements: Sequence[str]) -> Path:
    """The Python of the environment that has these requirements; it is made if it is not there yet."""
    for requirement in requirements:
        if requirement.startswith("-"):
            shown = redacted(requirement)
            raise UserError(f"--env {shown}: a requirement such as 'transformers==4.57', not an option of pip")
    folder = environments_folder() / environment_key(requirements)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    ready = folder / "ready.json"
    if not ready.is_file():
        with locked(folder.with_suffix(".lock"), "", wait=True):
            if not ready.is_file():
                shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed while it made it
                _install(folder, python, [*base_requirements(), *requirements])
                write_atomically(ready, json.dumps({"requirements": redacted(sorted(requirements))}))
    return python


def _install(folder: Path, python: Path, requirements: list[str]) -> None:
    uv = shutil.which("uv")
    print(f"making an environment with {', '.join(redacted(requirements))} ...", file=sys.stderr)
    if uv:
        commands = [[uv, "venv", "-q", "--python", sys.executable, str(folder)]]
        commands += [[uv, "pip", "install", "-q", "--python", str(python), *requirements]] if requirements else []
    else:
        commands = [[sys.executable, "-m", "venv", str(folder)]]
        commands += [[str(python), "-m", "pip", "install", "-q", *requirements]] if requirements else []
    for command in commands:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if folder.is_dir():
            folder.chmod(0o700)  # an installer notes where a package came from, with the token in the address
        if done.returncode:
            shutil.rmtree(folder, ignore_errors=True)
            lines = [line for line in done.stderr.splitlines() if line.strip()] or ["no reason given"]
            problem = next((line for line in lines if line.lower().startswith("error")), lines[-1])
            raise UserError(f"--env: the environment cannot be made: {mask_secrets(problem.strip())[:300]}")


def linked_package(folder: Path) -> Path:
    """A folder with our own code, as it is here: a package of links to the rooms that recognisers use.

    Another clone has a folder of its own, so that nobody changes the code under a process that runs.
    """
    sources = {"__init__.py": _origin(PACKAGE), **{room: _origin(f"{PACKAGE}.{room}").parent for room in ROOMS}}
    key = hashlib.sha256("\n".join(map(str, sources.values())).encode()).hexdigest()[:16]
    place = folder / f"package-{key}"
    if not place.is_dir():
        making = Path(tempfile.mkdtemp(dir=folder))
        (making / PACKAGE).mkdir()
        for name, source in sources.items():
            _link_or_copy(source, making / PACKAGE / name)
        try:
            making.rename(place)
        except OSError:  # another process was faster, with the same content
            shutil.rmtree(making)
    return place


def _origin(module: str) -> Path:
    importlib.import_module(module)
    return Path(sys.modules[module].__file__ or "").resolve()


@dataclass
class PipedRecogniser(Described):
    """A recogniser in another process."""

    process: Any = None
    versions: Any = None
    stderr: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        blocks = [np.ascontiguousarray(clip, dtype="<f4").tobytes() for clip in clips]
        answer = ask(self.process, {"rate": rate, "language": language}, blocks, self.stderr)
        outcomes = [_outcome(item) for item in answer["outcomes"]]
        return SomeFailed.raise_if_failed(outcomes)

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


@dataclass
class PipedLiveRecogniser(PipedRecogniser):
    """One that can be used live: the pipe is a part of what it takes, about a millisecond a chunk."""

    def stream(self, rate: int, language: str | None) -> PipedSession:
        return PipedSession(self, rate, language)


class PipedSession:
    """A session of the other process; it has one at a time."""

    def __init__(self, recogniser: PipedRecogniser, rate: int, language: str | None) -> None:
        self.recogniser = recogniser
        self._ask({"session": "open", "rate": rate, "language": language})

    def accept(self, chunk: Clip) -> list[Event]:
        return self._ask({"session": "accept"}, [np.ascontiguousarray(chunk, dtype="<f4").tobytes()])

    def finish(self) -> list[Event]:
        return self._ask({"session": "finish"})

    def close(self) -> None:
        self._ask({"session": "close"})

    def _ask(self, question: Message, blocks: list[bytes] | None = None) -> list[Event]:
        answer = ask(self.recogniser.process, question, blocks or [], self.recogniser.stderr)
        return [
            Event(text, final, tuple(Word(*word) for word in words), endpoint)
            for text, final, words, endpoint in answer["events"]
        ]


def _outcome(item: Message) -> str | Exception:
    if "error" in item:
        return RuntimeError(item["error"])
    return Transcript(item["text"], **item["details"]) if item.get("details") else item["text"]


def ask(process: Any, question: Message, blocks: list[bytes], stderr: deque[str]) -> Message:
    """One question and its answer; what went wrong there is raised here."""
    try:
        write_message(process.stdin, question, blocks)
        answer, _ = read_message(process.stdout)
    except (EOFError, BrokenPipeError):
        code = process.wait()
        last = stderr[-1] if stderr else "it wrote nothing"
        raise UserError(f"--env: the recogniser's process ended with code {code}: {mask_secrets(last)[:300]}") from None
    if "mistake" in answer:
        raise UserError(answer["mistake"])
    if "failure" in answer:
        raise RuntimeError(answer["failure"])
    return answer


def open_in_environment(spec: Spec, requirements: Sequence[str], **defaults: Any) -> Recogniser:
    """Load the recogniser that a spec names in an environment with these requirements."""
    python = make_environment(requirements)
    path = [str(linked_package(python.parents[1])), str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])]
    process = subprocess.Popen(
        [str(python), "-P", "-m", "speech_robust_bench.models.environments"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path)},
    )
    _widen(process.stdin)
    stderr: deque[str] = deque(maxlen=LAST_LINES)
    threading.Thread(target=_collect, args=(process.stderr, stderr), daemon=True).start()
    given = {key: value for key, value in defaults.items() if value is not None}
    about = ask(process, {"spec": str(spec), "defaults": given}, [], stderr)
    kind = PipedLiveRecogniser if about["streams"] else PipedRecogniser
    return kind(
        name=about["name"],
        revision=about["revision"],
        options={**about["options"], "environment": redacted(sorted(requirements))},
        batch_size=about["batch_size"],
        process=process,
        versions=about["versions"],
        stderr=stderr,
    )


def _link_or_copy(source: Path, place: Path) -> None:
    try:
        place.symlink_to(source, target_is_directory=source.is_dir())
    except OSError:  # Windows, without the right to make links
        (shutil.copytree if source.is_dir() else shutil.copy)(source, place)


def _widen(pipe: Any) -> None:
    """A clip at a time fits into the pipe, where the system allows it: fewer changes between the processes."""
    set_size = 1031  # F_SETPIPE_SZ of Linux
    if sys.platform == "linux":
        import fcntl

        with suppress(OSError):
            fcntl.fcntl(pipe.fileno(), set_size, 1 << 20)


def _collect(stream: Any, lines: deque[str]) -> None:
    for line in stream:
        lines.append(line.decode("utf-8", "replace").rstrip())


Message = dict[str, Any]  # the JSON of a question or an answer; an environment has no package to decode records
Work = Callable[[Any, Message, list[Any]], Message]
LONGEST_HEADER = 1 << 26  # a corrupt length must not ask for gigabytes


def write_message(stream: BinaryIO, content: Message, blocks: list[bytes] | None = None) -> None:
    """Send a message."""
    header = json.dumps({**content, "sizes": [len(block) for block in blocks or []]}).encode()
    stream.write(struct.pack("<I", len(header)) + header)
    for block in blocks or []:
        stream.write(block)
    stream.flush()


def read_message(stream: BinaryIO) -> tuple[Message, list[bytes]]:
    """Receive one; EOFError when the other side is gone."""
    (length,) = struct.unpack("<I", _exactly(stream, 4))
    if length > LONGEST_HEADER:
        raise EOFError
    content = json.loads(_exactly(stream, length))
    return content, [_exactly(stream, size) for size in content["sizes"]]


def _exactly(stream: BinaryIO, count: int) -> bytes:
    data = stream.read(count)
    if len(data) < count:
        raise EOFError
    return data


def main() -> None:
    """Answer until the other side closes the pipe."""
    # what libraries print must not get between the answers
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    questions = sys.stdin.buffer
    live = LiveStream()
    try:
        question, _ = read_message(questions)
        recogniser = _open(question, answers)
        while recogniser is not None:
            question, blocks = read_message(questions)
            work = live.step if "session" in question else _transcribed
            write_message(answers, _answered(work, recogniser, question, blocks))
    except EOFError:
        pass


def _open(question: Message, answers: BinaryIO) -> Any:
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.models.interface import open_model

    try:
        recogniser = open_model(question["spec"], **question["defaults"])
    except UserError as mistake:
        write_message(answers, {"mistake": str(mistake)})
        return None
    about = {name: getattr(recogniser, name) for name in ("name", "revision", "options", "batch_size")}
    streams = hasattr(recogniser, "stream") and not getattr(recogniser, "needs_realtime", False)
    write_message(answers, {**about, "versions": _versions(), "streams": streams})
    return recogniser


def _answered(work: Work, recogniser: Any, question: Message, blocks: list[bytes]) -> Message:
    import numpy as np

    from speech_robust_bench.core.errors import UserError

    try:
        return work(recogniser, question, [np.frombuffer(block, "<f4").copy() for block in blocks])
    except UserError as mistake:
        return {"mistake": str(mistake)}
    except Exception as error:
        return {"failure": f"{type(error).__name__}: {error}"}


def _transcribed(recogniser: Any, question: Message, clips: list[Any]) -> Message:
    from speech_robust_bench.models.interface import SomeFailed

    try:
        outcomes: list[Any] = recogniser.transcribe(clips, question["rate"], question["language"])
    except SomeFailed as failed:
        outcomes = failed.outcomes
    return {"outcomes": [_sent(outcome) for outcome in outcomes]}


class LiveStream:
    """The stream that is under way, if any."""

    session: Any = None

    def step(self, recogniser: Any, question: Message, clips: list[Any]) -> Message:
        """Open a session, feed it, or end it."""
        events: Any = ()
        if question["session"] == "open":
            self.session = recogniser.stream(question["rate"], question["language"])
        elif question["session"] == "accept":
            events = self.session.accept(clips[0])
        elif question["session"] == "finish":
            events = self.session.finish()
        elif close := getattr(self.session, "close", None):
            close()
        return {"events": [_event(event) for event in events]}


def _event(event: Any) -> list[Any]:
    words = [[word.text, word.start_s, word.end_s] for word in event.words]
    return [event.text, event.final, words, event.endpoint]


def _sent(outcome: Any) -> Message:
    if isinstance(outcome, str):
        return {"text": str(outcome), "details": getattr(outcome, "details", {})}
    return {"error": f"{type(outcome).__name__}: {outcome}"}


def _versions() -> dict[str, str]:
    from importlib import metadata

    names = sorted({name.split(".")[0] for name in list(sys.modules)})
    known = metadata.packages_distributions()
    packages = {package for name in names for package in known.get(name, ())}
    return {package: metadata.version(package) for package in sorted(packages)}


if __name__ == "__main__":
    main()
