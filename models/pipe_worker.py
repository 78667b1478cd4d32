"""The other end of the pipe: opens a recogniser in this process and answers for it. Run by `models.environments`.

A message is four bytes of length, that much JSON, and the blocks of bytes whose sizes the JSON lists. The first
question names the recogniser; every further one is a batch of clips, or a step of a live stream.
"""

from __future__ import annotations

import json
import os
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

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
