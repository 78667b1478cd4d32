"""Live servers: each protocol against a server on this machine that speaks it, well or badly."""

import json
import threading
from contextlib import contextmanager

import numpy as np
import pytest

server_module = pytest.importorskip("websockets.sync.server")

from srb.core.errors import UserError  # noqa: E402
from srb.models.interface import open_model  # noqa: E402
from srb.models.streaming.replay import Pace, replay  # noqa: E402

RATE = 16_000
CLIP = np.full(3200, 0.1, np.float32)  # 0.2 s, two chunks
NOW = Pace(realtime=True)


@contextmanager
def serving(handler):
    """A WebSocket server on the loopback interface; its address."""
    server = server_module.serve(handler, "127.0.0.1", 0)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
    finally:
        server.shutdown()
        thread.join()


def stream(handler, protocol="vosk", timeout_s=60):
    with serving(handler) as url:
        model = open_model(f"ws:{url}?protocol={protocol}&timeout_s={timeout_s}")
        return replay(model.stream(RATE, "en"), CLIP, RATE, NOW)


def vosk(connection):
    """As vosk-server behaves: an answer to every message, the text at the end."""
    samples = 0
    for message in connection:
        if isinstance(message, bytes):
            samples += len(message) // 2
            connection.send(json.dumps({"partial": f"{samples} samples"}))
        elif "eof" in json.loads(message):
            words = [{"word": "done", "start": 0.1, "end": 0.2, "conf": 1.0}]
            connection.send(json.dumps({"result": words, "text": f"done after {samples}"}))
            return


def test_vosk():
    timeline = stream(vosk)
    assert timeline.text == "done after 3200"
    assert timeline.events[-1].event.final
    assert timeline.events[-1].event.words[0].end_s == 0.2


def test_deepgram_results_replace_each_other_until_they_are_final_and_never_go_back():
    def result(text, start, final, speech_final=False):
        return json.dumps(
            {
                "type": "Results",
                "start": start,
                "duration": 0.1,
                "is_final": final,
                "speech_final": speech_final,
                "channel": {"alternatives": [{"transcript": text, "words": []}]},
            }
        )

    def deepgram(connection):
        for message in connection:
            if isinstance(message, str) and json.loads(message)["type"] == "CloseStream":
                connection.send(result("hello wor", 0.0, False))
                connection.send(result("hello world", 0.0, True, True))
                connection.send(result("hell", 0.0, False))  # late, and behind what is final
                connection.send(result("again", 0.1, True))
                connection.send(json.dumps({"type": "Metadata"}))
                return

    timeline = stream(deepgram, "deepgram")
    assert timeline.text == "hello world again"
    assert [timed.event.endpoint for timed in timeline.events] == [False, True, False]


def test_the_realtime_api_adds_deltas_up():
    def realtime(connection):
        kinds = []
        for message in connection:
            kinds.append(json.loads(message)["type"])
            if kinds[-1].endswith("commit"):
                assert kinds == ["session.update", *["input_audio_buffer.append"] * 2, "input_audio_buffer.commit"]
                for part in ("good ", "morning"):
                    connection.send(json.dumps({"type": "transcription.delta", "delta": part}))
                connection.send(json.dumps({"type": "transcription.done", "text": "Good morning."}))
                return

    timeline = stream(realtime, "openai")
    assert [timed.event.text for timed in timeline.events] == ["good ", "good morning", "Good morning."]
    assert timeline.text == "Good morning."


def stalls(connection):
    for _ in connection:
        pass


def closes_early(connection):
    connection.recv()


def talks_nonsense(connection):
    for message in connection:
        if not isinstance(message, bytes):
            connection.send("[1, 2")


def sends_a_number(connection):
    for message in connection:
        if isinstance(message, str) and "eof" in message:
            connection.send(json.dumps({"text": 7}))


def sends_too_much(connection):
    for message in connection:
        if isinstance(message, str) and "eof" in message:
            connection.send(json.dumps({"text": "x" * (2 << 20)}))


@pytest.mark.parametrize("handler", [stalls, closes_early, talks_nonsense, sends_a_number, sends_too_much])
def test_a_bad_server_is_that_clips_error(handler):
    with pytest.raises(Exception) as failure:  # noqa: PT011 - whatever it is, it is an error of the clip
        stream(handler, timeout_s=0.3)
    assert not isinstance(failure.value, (UserError, AssertionError))


def test_a_server_is_not_measured_on_the_virtual_clock():
    with serving(vosk) as url, pytest.raises(UserError, match="--realtime"):
        replay(open_model(f"ws:{url}").stream(RATE, "en"), CLIP, RATE)


@pytest.mark.parametrize(
    ("spec", "word"),
    [("ws:http://x", "ws://"), ("ws:ws://x?protocol=soap", "protocol"), ("ws:ws://x?key_env=NO_SUCH_KEY", "NO_SUCH")],
)
def test_a_wrong_address_is_one_line(spec, word):
    with pytest.raises(UserError, match=word):
        open_model(spec)
