"""Two talkers: permutation-invariant counts worked out by hand, one text or two, and nothing changed for one talker."""

import pytest

from speech_robust_bench.core.records import Prediction
from speech_robust_bench.extensions.text_metrics.lenient_wer import lenient_wer
from speech_robust_bench.extensions.two_talkers.measure import two_talkers
from speech_robust_bench.scoring.score_options import ScoreOptions
from speech_robust_bench.scoring.scoring import align, normalise

BOTH = "a b c d <sc> x y"


@pytest.mark.parametrize(
    ("written", "hits", "substitutions", "deletions", "insertions"),
    [
        ("a b c d <sc> x y", 6, 0, 0, 0),
        ("x y <sc> a b c d", 6, 0, 0, 0),  # whichever talker comes first
        ("a b c d", 4, 0, 2, 0),  # the other talker is deleted
        ("x y", 2, 0, 4, 0),
        ("", 0, 0, 6, 0),
        ("a b c d x y", 4, 0, 2, 2),  # one text is one talker's
        ("a b <sc> q y", 3, 1, 2, 0),
        ("a b c d <sc> x <sc> y", 6, 0, 0, 0),  # a third text belongs to the second
        ("x y <sc> x y", 2, 2, 2, 0),
    ],
)
def test_counts_of_two_talkers(written, hits, substitutions, deletions, insertions):
    counts = align([BOTH, "so be it"], [written, "so is it"]).take([0]).totals()
    assert counts == {"hits": hits, "substitutions": substitutions, "deletions": deletions, "insertions": insertions}


def test_against_one_talker_all_texts_are_one():
    assert align(["so be it"], ["so be it <sc> no"]).totals()["insertions"] == 1
    assert align(["so be it"], ["so be <sc> it"]).rate == 0
    assert normalise("So be <sc> it") == "so be it"


@pytest.mark.parametrize("normaliser", ["srb-paper-1", "srb-paper-2", "whisper-basic", "open-asr-1", "srb-numbers-1"])
def test_every_normaliser_knows_the_mark(normaliser):
    assert align(["Good morning. <sc> Is it you?"], ["is it you <sc> good morning"], normaliser=normaliser).rate == 0


def test_lenient_errors_are_permutation_invariant_too():
    wer = lenient_wer(["i do not know <sc> the colour is red"], ["the color is red <sc> I don't know"])
    assert wer["wer"] > 0
    assert wer["wer_lenient"] == 0


def line(clip, text, written):
    return Prediction(id=clip, text=text, pred_text=written, language="en")


def test_the_better_talker():
    lines = [
        line("1", BOTH, "a b c q"),
        line("2", BOTH, "x y"),
        line("3", BOTH, "x z <sc> a b c d"),
        line("4", BOTH, None),
    ]
    measures = two_talkers(lines, ScoreOptions(replicates=200), "en")
    assert measures.clips == 4
    assert measures.two_texts == 1
    # 1 of 4 words wrong, 0 of 2, 0 of 4, and of nothing all words of either talker
    assert measures.best_wer.value == pytest.approx(100 * (1 + 0 + 0 + 4) / (4 + 2 + 4 + 4))
    assert measures.best_wer.interval is None  # four clips
    again = [each.replace(id=f"{each.id} {n}") for n in range(2) for each in lines]
    twice = two_talkers(again, ScoreOptions(replicates=200), "en").best_wer
    assert twice.interval[0] < twice.value < twice.interval[1]
    assert two_talkers([line("1", "a b", "a b")], ScoreOptions(replicates=0), "en") is None
