"""What errors about unknown names suggest, and notices that hold odd text."""

import pytest

from speech_robust_bench.core.errors import Notice, UserError, did_you_mean, warn


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("nois", ["noise", "music"], "did you mean noise?"),
        ("noise_x", ["noise_2", "noise_1", "noise_4", "noise_3"], "did you mean noise_4 or noise_3 or noise_2?"),
        ("ab", ["ax", "zz"], "did you mean ax?"),  # half of it is right
        ("abc", ["axy", "zzz"], "there are: axy, zzz"),
        ("qqq", ["b", "a"], "there are: a, b"),
        ("qqq", "abcdefghijkl", "there are: a, b, c, d, e, f, g, h, i, j, k, l"),
        ("qqq", "abcdefghijklmn", "there are: a, b, c, d, e, f, g, h, i, j, k, l and 2 more"),
        ("qqq", [], "there are none"),
    ],
)
def test_the_nearest_names_or_those_there_are(name, known, said):
    assert did_you_mean(name, known) == said


def test_fewer_can_be_asked_for():
    assert did_you_mean("qqq", "abc", most=1) == "there are: a and 2 more"


def test_a_user_error_is_a_value_error():
    assert issubclass(UserError, ValueError)


def test_a_notice_can_always_be_printed():
    with pytest.warns(Notice) as notices:
        warn("half a character: \ud800")
    assert str(notices[0].message).encode() == rb"half a character: \ud800"
