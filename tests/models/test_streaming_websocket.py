"""Live servers: each protocol against a server on this machine that speaks it, well or badly."""

import itertools
import json
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

server_module = pytest.importorskip("websockets.sync.server")
exceptions = pytest.importorskip("websockets.exceptions")

from srb.cli.main import main  # noqa: E402
from srb.core.errors import UserError  # noqa: E402
from srb.metrics.stream_record import check_stream  # noqa: E402
from srb.models.interface import open_model  # noqa: E402
from srb.models.streaming.replay import Pace, replay  # noqa: E402
from srb.models.streaming.streamed import as_json  # noqa: E402
from srb.models.streaming.websocket import VoskWire, WebSocketSession  # noqa: E402

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


def drops(connection):
    """Breaks the connection in the middle of the audio, without a word."""
    connection.recv()
    connection.socket.close()


def never_final(connection):
    """Goes on with partials after the end of the audio, for ever."""
    for message in connection:
        if isinstance(message, str) and "eof" in message:
            break
    try:
        while True:
            connection.send(json.dumps({"partial": "still thinking"}))
            time.sleep(0.01)
    except exceptions.ConnectionClosed:
        pass


@pytest.mark.parametrize(
    ("handler", "timeout_s", "error", "words"),
    [
        (stalls, 0.3, TimeoutError, "had not finished"),
        (never_final, 0.3, TimeoutError, "had not finished"),
        (closes_early, 60, exceptions.ConnectionClosed, "."),
        (drops, 60, exceptions.ConnectionClosed, "."),
        (talks_nonsense, 60, ValueError, "Expecting"),
        (sends_a_number, 60, ValueError, "no text under"),
        (sends_too_much, 60, exceptions.ConnectionClosed, "too big|1009"),
    ],
)
def test_a_bad_server_is_that_clips_error(handler, timeout_s, error, words):
    with pytest.raises(error, match=words):
        stream(handler, timeout_s=timeout_s)


def test_a_clip_without_samples_is_begun_and_ended():
    with serving(vosk) as url:
        model = open_model(f"ws:{url}")
        timeline = replay(model.stream(RATE, "en"), CLIP[:0], RATE, NOW)
    assert timeline.text == "done after 0"


class Scheduled:
    """A connection on which messages arrive at set times of a clock that only moves when somebody waits."""

    def __init__(self, *messages):
        self.now, self.messages = 0.0, list(messages)

    def send(self, message):
        pass

    def recv(self, timeout):
        if not self.messages or self.messages[0][0] > self.now + timeout:
            self.now += timeout
            raise TimeoutError
        at, message = self.messages.pop(0)
        self.now = max(self.now, at)
        return json.dumps(message)

    def close(self):
        pass

    def sleep(self, seconds):
        self.now += seconds


def test_events_have_the_time_at_which_they_came():
    """After the end of the audio (0.2 s) one by one, not all at the time of the last."""
    connection = Scheduled((0.5, {"partial": "a"}), (1.5, {"partial": "a b"}), (3.0, {"text": "a b c"}))
    session = WebSocketSession(connection, VoskWire(), RATE, timeout_s=1000)
    timeline = replay(session, CLIP, RATE, NOW, timer=lambda: connection.now, sleep=connection.sleep)
    assert [(round(timed.time_s, 6), timed.event.text) for timed in timeline.events] == [
        (0.5, "a"),
        (1.5, "a b"),
        (3.0, "a b c"),
    ]
    check_stream(as_json(timeline), timeline.duration_s)


def test_in_a_run_a_clip_that_failed_has_its_error_and_the_others_their_words(tmp_path):
    """The server says nothing to the first clip."""
    clips = itertools.count()

    def moody(connection):
        (vosk if next(clips) else stalls)(connection)

    with serving(moody) as url:
        words = ["run", "--model", f"ws:{url}?timeout_s=5", "en-demo_silence", "--corpus", "en-demo", "--limit", "2"]
        assert main([*words, "--name", "moody", "--out", str(tmp_path), "--stream", "--realtime", "--quiet"]) == 0
    lines = [json.loads(line) for line in (tmp_path / "moody" / "en-demo_silence.jsonl").read_text().splitlines()]
    assert sorted("error" in line for line in lines) == [False, True]
    (failed,) = (line for line in lines if "error" in line)
    assert "had not finished" in failed["error"]
    assert "stream" not in failed
    assert all(line["stream"]["realtime"] for line in lines if line is not failed)
    assert main(["score", str(tmp_path / "moody")]) == 0
    result = json.loads((tmp_path / "moody" / "results.json").read_text())["reject"]["en-demo_silence"]
    assert result["streaming"]["clips"] == 1
    assert result["streaming"]["invented_words_per_minute"]["value"] > 0  # every word in silence is invented


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
