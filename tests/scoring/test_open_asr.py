"""`open-asr-1` by cases of the Open ASR Leaderboard's published rules; its compounds against kaldialign's counts."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.scoring import align, normalise

pytest.importorskip("whisper_normalizer")
kaldialign = pytest.importorskip("kaldialign")


@pytest.mark.parametrize(
    ("written", "compared"),
    [
        ("OK", "okay"),
        ("o.k.", "okay"),
        ("'kay", "okay"),
        ("etcetera, et cetera", "etc etc"),
        ("it's", "it is"),
        ("who's", "who is"),
        ("John's car", "john s car"),  # a possessive is not "is"
        ("he's gone", "he has gone"),
        ("can't won't gonna", "can not will not going to"),
        ("kinda 'cause", "kinda cause"),  # whisper-normalizer expands these, the leaderboard does not
        ("uh, uhm, uhhh, erm, hmm, mhm, ah-ha", ""),
        ("huh heh tsk ugh ahem", ""),
        ("hummus error emma", "hummus error emma"),
        ("all right, al right, alright", "alright alright alright"),
        ("Wi-Fi, hi-fi, sci-fi, e-mail, X-ray, T-shirt", "wifi hifi scifi email xray tshirt"),
        ("10 a.m.", "10 am"),
        ("ohh", "0"),  # as their number rules have it, for "one oh one"
        ("B. B. C.", "bbc"),
        ("the I B M", "the ibm"),
        ("a i", "a i"),  # two letters that are words stay
        ("5 g", "5g"),
        ("half past three", "3 30"),
        ("a quarter to one", "12 45"),
        ("twenty minutes before eleven o'clock", "10 40"),
        ("seven o'clock", "7"),
        ("7:00 and 07:25", "7 and 7 25"),
        ("[laughs] <unk> (noise) yes", "yes"),
        ("colour twenty-five £20", "color 25 £20"),
        ("ten per cent, 3.5", "10% 3.5"),
    ],
)
def test_cases(written: str, compared: str) -> None:
    assert normalise(written, "open-asr-1", "en") == compared


def test_english_only() -> None:
    assert normalise("OK", "open-asr-1", "en-GB") == "okay"
    with pytest.raises(UserError, match="'open-asr-1' is for English, not 'es'"):
        normalise("vale", "open-asr-1", "es")


def test_a_compound_may_be_written_apart_or_together() -> None:
    apart, together = ["the white paper is good"], ["the whitepaper is good"]
    assert align(apart, together, normaliser="open-asr-1").totals()["hits"] == 5
    assert align(together, apart, normaliser="open-asr-1").totals()["hits"] == 4
    assert align(apart, together).errors.sum() == 2


WORDS = st.lists(st.sampled_from(["ba", "da", "bada", "dada", "badaba", "lo", "lole"]), max_size=7)


@settings(max_examples=300, deadline=None)
@given(WORDS, WORDS)
def test_errors_are_those_of_kaldialign(reference: list[str], hypothesis: list[str]) -> None:
    ours = align([" ".join(reference)], [" ".join(hypothesis)], normaliser="open-asr-1")
    theirs = kaldialign.edit_distance(reference, hypothesis, merge_compounds=True)
    assert ours.errors.sum() == theirs["total"]
    assert ours.lengths.sum() == theirs["ref_len"]
