"""cpWER and diarization error rate: published examples, MeetEval and pyannote.metrics on random turns, and runs."""

from __future__ import annotations

import json

import numpy as np
import pytest

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, RunConfig, SpeakerTurn
from speech_robust_bench.extensions.who_spoke.measure import WhoSpoke, cp_errors, diarization_errors, of_clips, texts_of
from speech_robust_bench.models.interface import with_turns
from speech_robust_bench.scoring.measures import ConfigClips
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions

# pyannote.metrics' documentation, "Diarization": the error rate is 0.516
REFERENCE = {"A": [(0, 10), (24, 27)], "B": [(12, 20)], "C": [(30, 40)]}
HYPOTHESIS = {"a": [(2, 13)], "d": [(13, 14), (38, 40)], "b": [(14, 20)], "c": [(22, 38)]}


def test_the_published_example_of_pyannote():
    errors = diarization_errors(REFERENCE, HYPOTHESIS)
    assert errors.errors_s / errors.speech_s == pytest.approx(0.516, abs=5e-4)
    assert (errors.missed_s, errors.false_alarm_s, errors.confusion_s) == (2.0, 7.0, 7.0)


def random_turns(rng: np.random.Generator, speakers: str) -> dict[str, list[tuple[float, float]]]:
    return {
        speaker: [(start, start + rng.uniform(0.5, 6)) for start in rng.uniform(0, 30, rng.integers(1, 5)).round(2)]
        for speaker in speakers
    }


@pytest.mark.parametrize("collar_s", [0.0, 0.25])
def test_random_turns_as_in_pyannote(collar_s):
    pytest.importorskip("pyannote.metrics")
    from pyannote.core import Annotation, Segment
    from pyannote.metrics.diarization import DiarizationErrorRate

    def annotation(times):
        turns = Annotation()
        for speaker, spans in times.items():
            for place, span in enumerate(spans):
                turns[Segment(*span), f"{speaker}{place}"] = speaker
        return turns.support()

    rng = np.random.default_rng(0)
    for _ in range(8):
        reference, hypothesis = random_turns(rng, "abc"), random_turns(rng, "wxyz")
        ours = diarization_errors(reference, hypothesis, collar_s)
        metric = DiarizationErrorRate(collar=2 * collar_s)  # pyannote's is the width of the whole collar
        theirs = metric(annotation(reference), annotation(hypothesis), uem=Segment(-1, 60), detailed=True)
        assert ours.missed_s == pytest.approx(theirs["missed detection"], abs=1e-6)
        assert ours.false_alarm_s == pytest.approx(theirs["false alarm"], abs=1e-6)
        assert ours.confusion_s == pytest.approx(theirs["confusion"], abs=1e-6)
        assert ours.speech_s == pytest.approx(theirs["total"], abs=1e-6)


def test_random_texts_as_in_meeteval():
    wer = pytest.importorskip("meeteval.wer")
    rng = np.random.default_rng(1)
    for _ in range(30):
        said, written = (
            {str(n): " ".join(rng.choice(list("abcd"), rng.integers(1, 8))) for n in range(rng.integers(1, 5))}
            for _ in range(2)
        )
        theirs = wer.cp_word_error_rate(reference=said, hypothesis=written)
        assert cp_errors(*([text.split() for text in each.values()] for each in (said, written))) == theirs.errors


def test_nobody_speaks():
    assert cp_errors([], []) == 0
    assert cp_errors([["a"]], []) == 1
    assert diarization_errors({}, {}).speech_s == 0
    assert diarization_errors({}, {"x": [(0, 2)]}).false_alarm_s == 2
    assert texts_of([SpeakerTurn("a", None, None, "one"), SpeakerTurn("a", 0, 1, "two")]) == {"a": "one two"}


TURNS = [SpeakerTurn("ann", 0.0, 2.0, "good morning"), SpeakerTurn("bob", 1.0, 4.0, "Is it you?")]


def line(turns, pred_turns, clip: str = "a", **more) -> Prediction:
    text = " <sc> ".join(turn.text for turn in turns) if turns else "good morning <sc> is it you"
    written = with_turns(pred_turns) if pred_turns is not None else ""
    known = pred_turns and [SpeakerTurn(*turn) for turn in pred_turns]
    return Prediction(id=clip, text=text, pred_text=written, turns=turns, pred_turns=known, **more)


def measured(*lines: Prediction, **options: object) -> WhoSpoke | None:
    predictions = Predictions("en_overlap_sev1", RunConfig(), list(lines))
    return of_clips(ConfigClips(predictions, ScoreOptions(replicates=0, **options), predictions.count()))


def test_words_and_time_by_hand():
    record = measured(line(TURNS, [("1", 1.0, 4.0, "is it me"), ("2", 0.0, 1.0, "good"), ("3", 4.0, 5.0, "oh")]))
    assert record
    assert record.cpwer.value == pytest.approx(100 * 3 / 5)  # me for you, morning, oh
    assert (record.speakers, record.pred_speakers, record.timed_clips) == (2, 3, 1)
    assert (record.missed, record.false_alarm, record.confusion) == (20.0, 20.0, 0.0)
    assert record.der
    assert record.der.value == pytest.approx(40)


def test_a_clip_without_labels_is_missed_whole():
    good = [("1", 0.0, 2.0, "good morning"), ("2", 1.0, 4.0, "is it you")]
    record = measured(line(TURNS, good), line(TURNS, None, "b", error="broken"))
    assert record
    assert record.cpwer.value == pytest.approx(50)
    assert record.missed == pytest.approx(50)


def test_labels_without_times_have_a_cpwer_alone():
    record = measured(line(None, [("1", None, None, "is it you"), ("2", None, None, "good morning")]))
    assert record
    assert (record.cpwer.value, record.der, record.timed_clips) == (0.0, None, 0)
    assert measured(line(TURNS, None)) is None


def test_a_collar_is_told_and_checked():
    good = [("1", 0.2, 2.0, "good morning"), ("2", 1.0, 4.0, "is it you")]
    record = measured(line(TURNS, good), settings={"der_collar": "0.25"})
    assert record
    assert record.der
    assert (record.der.value, record.collar_s) == (0.0, 0.25)
    with pytest.raises(UserError, match="der-collar"):
        measured(line(TURNS, good), settings={"der_collar": "wide"})


LABELLER = """
from speech_robust_bench.models.interface import with_turns

def transcribe(clips, rate, language):
    return [with_turns([("x", 0.0, len(clip) / rate, "the"), ("y", 0.0, 1.0, "of")]) for clip in clips]
"""


def test_overlapped_clips_tell_who_speaks_when(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "labeller.py").write_text(LABELLER)
    run = "run --model python:labeller:transcribe en-demo_overlap_sev1 --corpus en-demo --limit 3 --name m --quiet"
    assert main(run.split()) in (0, None)
    rows = [json.loads(text) for text in (tmp_path / "runs/m/en-demo_overlap_sev1.jsonl").read_text().splitlines()]
    for row in rows:
        assert len({speaker for speaker, *_ in row["turns"]}) == 2
        assert max(end for _, _, end, _ in row["turns"]) == pytest.approx(row["duration"], abs=0.01)
    assert main(["table", "runs/m", "--who-spoke"]) in (0, None)
    assert "en-demo_overlap_sev1" in capsys.readouterr().out
