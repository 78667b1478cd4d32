"""WERD: paired clip by clip, may be negative, floored only if asked; and what is refused."""

import pytest

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.degradation import WerdOptions, score

SAID = ["a b c d", "e f g h"]


def test_difference_of_the_two_rates():
    result = score(SAID, ["a b c x", "e f"], ["a b c d", "e f g x"])
    assert (result["wer"], result["clean_wer"], result["werd"]) == (37.5, 12.5, 25.0)
    assert result["paired"] is True
    assert (result["normaliser"], result["unit"], result["utterances"]) == ("srb-paper-1", "word", 2)


def test_negative_unless_floored_and_above_100():
    assert score(["a"], ["a"], ["b c"])["werd"] == -200.0
    assert score(["a"], ["a"], ["b c"], options=WerdOptions(floor=True))["werd"] == 0.0
    assert score(["a"], ["b c d"], ["a"])["werd"] == 300.0


def test_pairs_by_id_in_any_order_and_with_fewer_clips():
    result = score(["e f g h"], ["e f g x"], ["a b c d", "e f g h"], SAID, ids=["2"], clean_ids=["1", "2"])
    assert (result["wer"], result["clean_wer"], result["paired"]) == (25.0, 0.0, True)
    shuffled = score(SAID, SAID, ["e f g x", "a b c d"], SAID[::-1], ids=["1", "2"], clean_ids=["2", "1"])
    assert shuffled["clean_wer"] == 12.5


def test_other_recordings_are_not_paired():
    result = score(["x y"], ["x z"], SAID, SAID, options=WerdOptions(replicates=50))
    assert (result["werd"], result["paired"]) == (50.0, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"ids": ["1", "9"], "clean_ids": ["1", "2"]}, "1 of 2 clips are not among the clean ones \\(9\\)"),
        ({"ids": ["1", "1"], "clean_ids": ["1", "2"]}, "ids: '1' comes twice"),
        ({"ids": ["1", "2"]}, "give both ids and clean_ids"),
        ({"clean_predictions": ["a b c d"]}, "2 references but 1 clean_predictions"),
        ({"predictions": ["a"]}, "2 references but 1 predictions; they must pair one to one"),
        ({"predictions": ["a", None]}, "predictions\\[1\\] is None .*pass '' for a clip without a transcript"),
        ({"predictions": ["a", 7]}, "predictions\\[1\\] is 7 \\(int\\), not a string"),
        ({"predictions": "a b"}, "predictions must be a list of strings, not one str"),
        ({"speakers": ["x"], "options": WerdOptions(replicates=5)}, "2 clips but 1 speakers"),
    ],
)
def test_bad_input_is_one_clear_error(arguments, message):
    call = {"references": SAID, "predictions": SAID, "clean_predictions": SAID, **arguments}
    with pytest.raises(UserError, match=message) as error:
        score(**call)
    assert "\n" not in str(error.value)


def test_interval_is_seeded_and_paired():
    said = [f"w{i} a b c" for i in range(60)]
    hypotheses = [text if i % 3 else text.replace("a", "x") for i, text in enumerate(said)]
    same = score(said, hypotheses, hypotheses, options=WerdOptions(replicates=200))
    assert same["werd_interval"] is None  # the same errors on the same clips do not say how far others would differ
    once, again = (
        score(said, hypotheses, said, options=WerdOptions(replicates=200, seed=3))["werd_interval"] for _ in range(2)
    )
    assert once == again
    assert once[0] < 100 * 20 / 240 < once[1]
    assert once != score(said, hypotheses, said, options=WerdOptions(replicates=200, seed=4))["werd_interval"]
