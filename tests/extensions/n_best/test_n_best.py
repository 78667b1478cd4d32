"""The oracle WER of n-best lists, by values computed by hand."""

from __future__ import annotations

import jiwer
import pytest

from speech_robust_bench.core.records import Prediction, RunConfig
from speech_robust_bench.extensions.n_best.measure import N_BEST, NBest, of_clips
from speech_robust_bench.scoring.measures import ConfigClips, compute_measures
from speech_robust_bench.scoring.runs import Predictions
from speech_robust_bench.scoring.score_options import ScoreOptions

LISTS = [
    Prediction(id="a", text="the cat sat", pred_text="a cat sat", alternatives=["The cat sat!", "a cat"]),
    Prediction(id="b", text="on the mat", pred_text="on the mat", alternatives=["on a hat"]),
    Prediction(id="c", text="and slept", pred_text="", alternatives=None),
    Prediction(id="d", text="well", pred_text=None, error="broken"),
]


def clips(lines: list[Prediction], **options: object) -> ConfigClips:
    predictions = Predictions("en_clean", RunConfig(), lines)
    return ConfigClips(predictions, ScoreOptions(**options), predictions.count())


def measured(lines: list[Prediction], **options: object) -> NBest:
    record = of_clips(clips(lines, **options))
    assert record is not None
    return record


def test_the_best_transcript_of_each_list_counts():
    record = measured(LISTS, replicates=0)
    assert record.oracle_wer.value == pytest.approx(100 * 3 / 9, abs=1e-4)  # of a and b none, of c two, of d one
    assert (record.clips, record.listed, record.longest, record.transcripts) == (4, 2, 3, 7 / 4)


def test_only_predictions_with_lists_are_measured(monkeypatch):
    monkeypatch.setattr("speech_robust_bench.scoring.measures.measures", lambda: {"n_best": N_BEST})
    assert set(compute_measures(clips(LISTS)) or {}) == {"n_best"}
    assert compute_measures(clips([line.replace(alternatives=None) for line in LISTS])) is None


def test_a_list_of_one_is_the_wer_of_jiwer():
    lines = [line.replace(alternatives=[]) for line in LISTS]
    texts = [[line.text or "", (line.pred_text or "").lower()] for line in lines]
    assert measured(lines).oracle_wer.value == pytest.approx(100 * jiwer.wer(*map(list, zip(*texts, strict=True))))


def test_it_is_never_above_the_wer_and_has_an_interval():
    lines = [line.replace(id=f"{line.id}{n}", speaker=f"s{n}") for n in range(6) for line in LISTS[: 2 + n % 3]]
    record = measured(lines)
    assert record.oracle_wer.value <= clips(lines).counts.counts.rate
    low, high = record.oracle_wer.interval
    assert low < record.oracle_wer.value < high


def test_the_table_shows_the_length_of_the_lists():
    assert N_BEST.table is not None
    assert [head.replace("\n", " ") for head in N_BEST.table.heads][-3:] == [
        "transcripts per clip",
        "longest list",
        "clips",
    ]
    assert N_BEST.numbers(measured(LISTS)).keys() == {"oracle_wer"}
