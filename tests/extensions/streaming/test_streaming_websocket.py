"""Live servers: each protocol against a server on this machine that speaks it, well or badly."""

import base64
import itertools
import json
import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest

server_module = pytest.importorskip("websockets.sync.server")
exceptions = pytest.importorskip("websockets.exceptions")

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.streaming.replay import StreamOptions, replay, stream_of
from speech_robust_bench.extensions.streaming.streams import check_stream
from speech_robust_bench.extensions.streaming.ws import VoskWire, WebSocketSession
from speech_robust_bench.models.interface import open_model

RATE = 16_000
CLIP = np.full(3200, 0.1, np.float32)  # 0.2 s, two chunks
NOW = StreamOptions(realtime=True)


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


def test_deepgram_results_replace_each_other_until_final():
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


def messages(connection, kinds):
    """The messages of a realtime client up to the end of its audio; their kinds are kept."""
    for message in connection:
        content = json.loads(message)
        kinds.append(content["type"])
        yield content
        if kinds[-1] == "input_audio_buffer.commit" and content.get("final"):
            return


def delta(item, text):
    return {"type": "conversation.item.input_audio_transcription.delta", "item_id": item, "delta": text}


def completed(item, text):
    return {"type": "conversation.item.input_audio_transcription.completed", "item_id": item, "transcript": text}


def committed(item, before):
    return {"type": "input_audio_buffer.committed", "item_id": item, "previous_item_id": before}


def realtime(*answers):
    """A server of OpenAI's kind, which says all this when the audio has ended."""

    def handler(connection):
        list(messages(connection, []))
        for answer in answers:
            connection.send(json.dumps(answer))
        for _ in connection:  # it does not close
            pass

    return handler


def test_vllm_is_told_to_start_and_gets_16_khz():
    kinds, samples, texts = [], [], ["good ", "morning"]

    def vllm(connection):
        connection.send(json.dumps({"type": "session.created", "id": "1"}))
        for content in messages(connection, kinds):
            samples.append(len(base64.b64decode(content.get("audio", ""))) // 2)
        for text in texts:
            connection.send(json.dumps({"type": "transcription.delta", "delta": text}))
        connection.send(json.dumps({"type": "transcription.done", "text": "Good morning."}))

    timeline = stream(vllm, "vllm")
    start, send = "input_audio_buffer.commit", "input_audio_buffer.append"
    assert kinds == ["session.update", start, send, send, start]
    assert sum(samples) == len(CLIP)
    assert [timed.event.text for timed in timeline.events] == ["good ", "good morning", "Good morning."]
    assert timeline.text == "Good morning."


def test_openai_is_asked_for_a_transcription_session_at_24_khz():
    asked, samples = [], []

    def openai(connection):
        asked.append(connection.request.path)
        for content in messages(connection, []):
            samples.append(len(base64.b64decode(content.get("audio", ""))) // 2)
            asked.append(content.get("session"))
        connection.send(json.dumps(committed("a", None)))
        connection.send(json.dumps(completed("a", "Good morning.")))

    assert stream(openai, "openai").text == "Good morning."
    path, session = asked[:2]
    assert path == "/?intent=transcription"
    assert session["type"] == "transcription"
    heard_as = session["audio"]["input"]
    assert heard_as == {"format": {"type": "audio/pcm", "rate": 24_000}, "transcription": {"language": "en"}}
    assert sum(samples) == len(CLIP) * 3 // 2


def test_concurrent_items_come_in_the_order_of_their_audio():
    """The second is complete first, and a server may tell of a later one before it tells of an earlier one."""
    timeline = stream(
        realtime(
            committed("a", None),
            delta("a", "one"),
            committed("c", "b"),
            committed("b", "a"),
            delta("c", "fi"),
            delta("b", "three "),
            delta("a", " two"),
            delta("b", "four"),
            completed("b", "three four"),
            completed("a", "one two"),
            delta("a", "late"),
            completed("a", "and twice"),
            completed("c", "five"),
        ),
        "openai",
    )
    assert timeline.text == "one two three four five"
    shown = [(timed.event.text, timed.event.final) for timed in timeline.events]
    assert shown == [
        ("one", False),
        ("one two", False),
        ("one two", True),
        ("three four", True),
        ("fi", False),
        ("five", True),
    ]


def test_an_item_that_is_complete_late_is_not_the_last():
    timeline = stream(
        realtime(committed("a", None), committed("b", "a"), completed("a", "one"), completed("b", "two")), "openai"
    )
    assert timeline.text == "one two"


def test_an_empty_commit_ends_a_stream_cut_by_the_server():
    nothing = {"type": "error", "error": {"code": "input_audio_buffer_commit_empty", "message": "buffer too small"}}
    timeline = stream(realtime(committed("a", None), nothing, completed("a", "all of it")), "openai")
    assert timeline.text == "all of it"


def test_deepgram_is_told_what_it_gets():
    asked = []

    def deepgram(connection):
        asked.append(connection.request.path)
        list(itertools.takewhile(lambda message: isinstance(message, bytes), connection))
        connection.send(json.dumps({"type": "Metadata"}))

    with serving(deepgram) as url:
        model = open_model(f"ws:{url}/v1/listen?channels=2?protocol=deepgram&model=nova-3")
        assert replay(model.stream(RATE, "en"), CLIP, RATE, NOW).text == ""
    said = dict(parse_qsl(urlsplit(asked[0]).query))
    wanted = {"encoding": "linear16", "sample_rate": "16000", "interim_results": "true", "model": "nova-3"}
    assert said == {**wanted, "language": "en", "channels": "2"}  # what the address says itself stays


def test_a_vosk_server_that_is_behind_is_heard_to_the_end():
    """It answers every chunk; the end of a sentence that it finds late is not its last word."""

    def behind(connection):
        messages = list(itertools.takewhile(lambda message: "eof" not in str(message), connection))
        assert len(messages) == 3
        for answer in ({"text": "one two"}, {"partial": "three"}, {"text": "three four"}):
            connection.send(json.dumps(answer))

    assert stream(behind).text == "one two three four"


def test_a_slow_vosk_server_may_end_by_closing():
    def seldom(connection):
        list(itertools.takewhile(lambda message: "eof" not in str(message), connection))
        connection.send(json.dumps({"text": "one two"}))

    assert stream(seldom).text == "one two"


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


def at_the_end(*messages):
    """A server that says this when the audio has ended, and then waits."""

    def handler(connection):
        for message in connection:
            if isinstance(message, str) and "eof" in message:
                for answer in messages:
                    connection.send(answer)

    return handler


def floods(connection):
    """Messages that say nothing, as fast as they go; nobody would notice by counting events."""
    try:
        while True:
            connection.send('{"partial": ""}')
    except exceptions.ConnectionClosed:
        pass


def binary_rubbish(connection):
    for message in connection:
        if isinstance(message, str) and "eof" in message:
            connection.send(b"\xff\xfe\x00")


def broken_text(connection):
    """A text frame that is not UTF-8, past the library that would refuse to send it."""
    connection.recv()
    connection.socket.sendall(b"\x81\x02\xff\xfe")
    stalls(connection)


@pytest.mark.parametrize(
    ("handler", "timeout_s", "error", "words"),
    [
        (at_the_end("[" * 100_000), 60, RecursionError, "."),
        (at_the_end('{"text": "' + "9" * 30_000 + '"}'), 60, ValueError, "20000 characters"),
        (at_the_end('{"text": "a", "result": [{}]}'), 60, ValueError, "not as its protocol says"),
        (at_the_end('{"text": "a", "result": 7}'), 60, ValueError, "not as its protocol says"),
        (at_the_end('{"result": []}'), 60, ValueError, "no text under"),
        (at_the_end("null"), 60, ValueError, "not a JSON object"),
        (floods, 0.3, TimeoutError, "had not finished"),
        (binary_rubbish, 60, ValueError, "decode"),
        (broken_text, 60, exceptions.ConnectionClosed, "1007|UTF-8|utf-8|invalid"),
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


def send_hours(session):
    noise = np.random.default_rng(0).uniform(-1, 1, 10 * RATE).astype(np.float32)
    for _ in range(1000):
        session.accept(noise)


def test_a_server_that_stops_reading_fails_one_clip():
    """Its buffers are full before the audio is over."""
    gone = threading.Event()

    def deaf(connection):
        connection.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        with connection.protocol_mutex:  # nothing is taken from the socket any more
            gone.wait(60)

    with serving(deaf) as url:
        session = open_model(f"ws:{url}?timeout_s=0.5").stream(RATE, "en")
        with pytest.raises(exceptions.ConnectionClosed):
            send_hours(session)
        gone.set()
        session.close()


def test_a_stream_that_fails_closes_its_connection():
    closed = threading.Event()

    def number(connection):
        sends_a_number(connection)
        closed.set()

    with pytest.raises(ValueError, match="no text under"):
        stream(number)
    assert closed.wait(30)


def test_half_a_character_in_a_passing_event_is_the_clips_error(tmp_path):
    """It could not be stored, though the transcript could."""

    def half(connection):
        for message in connection:
            if isinstance(message, bytes):
                connection.send('{"partial": "\\ud800"}')
            elif "eof" in message:
                connection.send('{"text": "whole"}')
                return

    with serving(half) as url:
        words = ["run", "--model", f"ws:{url}?timeout_s=5", "en-demo_silence", "--corpus", "en-demo", "--limit", "1"]
        main([*words, "--name", "half", "--out", str(tmp_path), "--stream", "--realtime", "--quiet"])
    (line,) = (json.loads(line) for line in (tmp_path / "half" / "en-demo_silence.jsonl").read_text().splitlines())
    assert "half of a character" in line["error"]


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
    check_stream(stream_of(timeline), timeline.duration_s)


def test_a_failed_clip_of_a_run_has_its_error(tmp_path):
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
    assert result["measures"]["streaming"]["clips"] == 1
    assert (
        result["measures"]["streaming"]["invented_words_per_minute"]["value"] > 0
    )  # every word in silence is invented


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
