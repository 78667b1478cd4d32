"""A streamed run through `srb submit`, `srb verify` and the leaderboard: measured again, and tricks are refused."""

from __future__ import annotations

import json
import shutil

import pytest
from support.forged_submissions import edit, edit_lines, seal, set_in

pytest.importorskip("pocketsphinx")

from speech_robust_bench.cli.main import main
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.leaderboard import board, site
from speech_robust_bench.push.rerun import rerun
from speech_robust_bench.push.verify import verify

CONFIGS = ["en-demo_clean", "en-demo_noise_sev2", "en-demo_tempo_up_sev1"]
NOISE = CONFIGS[1]
STREAMING = ("configs", NOISE, "measures", "streaming")


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Built data, and a streamed run over it."""
    folder = tmp_path_factory.mktemp("streamed")
    assert main(["build", *CONFIGS, "--limit", "2", "--workers", "1", "--out", str(folder / "srb")]) == 0
    words = ["run", "--model", "pocketsphinx?workers=1", *CONFIGS, "--data", str(folder / "srb")]
    assert main([*words, "--out", str(folder / "runs"), "--stream", "--quiet"]) == 0
    return folder


@pytest.fixture(scope="module")
def known(place):
    return expected_rows.load(str(place / "srb"))


@pytest.fixture(scope="module", params=[False, True], ids=["jsonl", "parquet"])
def original(request, place):
    out = place / f"sent-{request.param}"
    return submission.make(place / "runs" / "pocketsphinx-live", out, {"owner": "acme"}, parquet=request.param)


@pytest.fixture
def honest(place, tmp_path):
    return submission.make(place / "runs" / "pocketsphinx-live", tmp_path / "sent", {"owner": "acme"})


def test_it_is_accepted_and_shown(original, place, known, srb, tmp_path):
    assert verify(original, known, [str(place / "srb")]).reasons == []
    srb("verify", original, "--data", place / "srb", "--out", tmp_path / "verified")
    said = json.loads((original / "results.json").read_text())["configs"][NOISE]["measures"]["streaming"]
    entry = json.loads(next((tmp_path / "verified").glob("*.json")).read_text())["configs"][NOISE]["measures"][
        "streaming"
    ]
    assert said["settle_s"]["n"] > 3
    assert entry["settle_s"]["p95"]["value"] == pytest.approx(said["settle_s"]["p95"]["value"], abs=1e-4)
    assert entry["churn"]["interval"] == pytest.approx(said["churn"]["interval"], abs=1e-4)
    pages = site.files(board.load(tmp_path / "verified"))
    page = pages["streaming.html"].decode()
    assert f"{said['settle_s']['median']['value']:.2f}" in page
    assert "streaming.html" in pages["index.html"].decode()
    assert NOISE in pages["model/acme--pocketsphinx.html"].decode()
    command = json.loads((original / "submission.json").read_text())["reproduce"]
    assert "--stream --chunk-ms 100" in command


def test_a_rerun_sees_words_that_were_shown_too_early(original, place, tmp_path, capsys):
    data = place / "srb"
    again = rerun(original, data, "pocketsphinx?workers=1", 4)
    assert (again.clips, again.same, again.shown, again.agrees) == (4, 4, 4, True)
    assert again.slower > 0
    words = ["verify", str(original), "--data", str(data), "--rerun", "pocketsphinx?workers=1", "--sample", "2"]
    assert main(words) == 0
    assert "2 of these showed them after the same audio" in capsys.readouterr().out


def test_a_rerun_refuses_words_shown_before_they_were_known(honest, place):
    def early(lines):
        for line in lines:
            clairvoyant(line["stream"], line)

    for config in CONFIGS:
        edit_lines(honest, config, early)
    seal(honest)
    again = rerun(honest, place / "srb", "pocketsphinx?workers=1", 4)
    assert again.same == 4  # the transcripts are right
    assert again.shown == 0
    assert not again.agrees


def test_a_board_without_streamed_models_has_no_such_page(tmp_path):
    (tmp_path / "verified").mkdir()
    pages = site.files(board.load(tmp_path / "verified"))
    assert "streaming.html" not in pages
    assert b"streaming.html" not in pages["index.html"]


def stream_edit(change, config=NOISE):
    """Change the stream of the first line of a config."""

    def apply(folder):
        def first(lines):
            change(lines[0]["stream"], lines[0])

        edit_lines(folder, config, first)

    return apply


def earlier(stream, line):
    """Every event half a second earlier."""
    for event in stream["events"]:
        event[0] -= 0.5


def clairvoyant(stream, line):
    """The last transcript at the first event."""
    stream["events"][0][2] = stream["events"][-1][2]


def later_words(folder):
    """All words half a second later, in every config alike: latencies fall by as much."""
    for config in CONFIGS:
        factor = {CONFIGS[2]: 0.8}.get(config, 1.0)

        def shift(lines, factor=factor):
            for line in lines:
                line["words"] = [[w, s, min(e + 0.5 * factor, line["duration"])] for w, s, e in line["words"]]

        edit_lines(folder, config, shift)


BAD = {
    "edited latency": (
        lambda f: edit(f, "results.json", set_in(*STREAMING, "settle_s", "p95", "value", value=0.1)),
        "streaming.settle_s.p95.value says 0.1, the predictions give",
    ),
    "edited churn": (
        lambda f: edit(f, "results.json", set_in(*STREAMING, "churn", "value", value=0.0)),
        "streaming.churn.value says 0.0",
    ),
    "no measures": (
        lambda f: edit(f, "results.json", lambda made: made["configs"][NOISE]["measures"].pop("streaming")),
        "streaming says nothing",
    ),
    "events before their audio": (stream_edit(earlier), "come"),  # before the audio, or when no chunk was done,
    "events at another time than their chunk": (
        stream_edit(lambda s, line: s["events"].__setitem__(-1, [s["events"][-1][0] + 9, *s["events"][-1][1:]])),
        "does not come when its chunk was done",
    ),
    "another transcript": (
        stream_edit(lambda s, line: line.update(pred_text=line["text"])),
        "'pred_text' is not the transcript that the events",
    ),
    "quicker calls": (
        stream_edit(lambda s, line: s.update(took_ms=[0.0] * len(s["took_ms"]))),
        "does not come when its chunk was done",
    ),
    "a clip quicker than its calls": (
        stream_edit(lambda s, line: line.update(time=0.001)),
        "the calls of 'stream' took longer than the whole clip",
    ),
    "fewer calls": (stream_edit(lambda s, line: s["took_ms"].pop()), "entries, but the clip has"),
    "a negative time": (stream_edit(lambda s, line: s["took_ms"].__setitem__(0, -1)), "a list of milliseconds"),
    "an event that is an object": (
        stream_edit(lambda s, line: s["events"].insert(0, {})),
        "'stream.events[0]': expected `array`, got `object`",
    ),
    "a kind that is markup": (
        stream_edit(lambda s, line: s["events"][0].__setitem__(3, "<script>")),
        "kind of an event",
    ),
    "a faster machine": (stream_edit(lambda s, line: s.update(speed=2.0)), "'speed' of 'stream' is not that of"),
    "other chunks": (stream_edit(lambda s, line: s.update(chunk_ms=50)), "entries, but the clip has"),
    "a text without end": (
        stream_edit(lambda s, line: s["events"][0].__setitem__(2, "x" * 30_000)),
        "at most 20000 characters",
    ),
    "a stream left out": (lambda f: edit_lines(f, NOISE, lambda ls: ls[0].pop("stream") and None), "lacks 'stream'"),
    "a stream that is text": (
        lambda f: edit_lines(f, NOISE, lambda ls: ls[0].update(stream="x")),
        "'stream': expected `object | null`, got",
    ),
    "a config that was not streamed": (
        lambda f: edit_lines(
            f, NOISE, lambda ls: [{k: v for k, v in x.items() if k not in ("stream", "words")} for x in ls]
        ),
        "was not streamed, but other configs were",
    ),
    "words of another text": (
        lambda f: edit_lines(f, NOISE, lambda ls: ls[0]["words"].__setitem__(0, ["hello", *ls[0]["words"][0][1:]])),
        "'words' are not those of the reference",
    ),
    "words that lie elsewhere": (
        lambda f: edit_lines(f, NOISE, lambda ls: ls[0]["words"][-1].__setitem__(2, ls[0]["words"][-1][2] + 0.05)),
        "lie elsewhere than in its clean config",
    ),
    "words that lie elsewhere everywhere": (later_words, "not where a forced alignment of the clip finds them"),
    "words outside the clip": (
        lambda f: edit_lines(f, NOISE, lambda ls: ls[0]["words"][-1].__setitem__(2, 1e6)),
        "in order and inside the clip",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_a_trick_is_refused_with_its_reason(name, honest, place, known):
    change, reason = BAD[name]
    change(honest)
    seal(honest)
    reasons = verify(honest, known, [str(place / "srb")]).reasons
    assert reasons
    assert any(reason in line for line in reasons), reasons


def test_who_shows_words_before_they_are_said_is_flagged(honest, place, known, monkeypatch):
    """The transcript at the very first event: the latency is negative, and nobody could know it."""
    monkeypatch.setattr("speech_robust_bench.extensions.streaming.clip_measures.FEWEST_WORDS", 2)
    run = place / "runs" / "pocketsphinx-live"
    assert verify(honest, known).flags == []
    cheating = shutil.copytree(run, honest.parent / "cheat")

    def know_all(lines):
        for line in lines:
            clairvoyant(line["stream"], line)

    for config in CONFIGS:
        edit_lines(cheating, config, know_all)
    sent = submission.make(cheating, honest.parent / "cheated", {"owner": "acme"})
    edit(sent, "run.json", lambda made: None)
    seal(sent)
    verdict = verify(sent, known)
    assert verdict.reasons == []
    assert any("shown before their audio was sent" in flag for flag in verdict.flags)
