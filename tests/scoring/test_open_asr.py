"""`open-asr-2026-08` against what the Open ASR Leaderboard's code produced; `open-asr-1` by cases.

data/open_asr_2026_08.jsonl has texts and what the `EnglishTextNormalizer` of huggingface/open_asr_leaderboard (commit
d1e99b2, 21 August 2026) makes of them, split at white space: cases, lines of results/*.parquet, and random mixtures
of its words. The scores are those of its `score_results` on the transcripts of results/librispeech.parquet.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq
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


VECTORS = (Path(__file__).parent / "data" / "open_asr_2026_08.jsonl").read_text("utf-8").splitlines()


def test_the_snapshot_has_the_words_of_the_leaderboards_code() -> None:
    pairs = [json.loads(line) for line in VECTORS]
    assert len(pairs) > 400
    ours = [normalise(text, "open-asr-2026-08", "en") for text, _ in pairs]
    assert ours == [words for _, words in pairs]


@pytest.mark.parametrize(
    ("system", "wer", "counts"),
    [
        ("moonshine-base", 2.83, (1172, 137, 192)),
        ("moonshine-tiny", 4.33, (1790, 189, 316)),
        ("whisper-tiny.en-torch", 4.94, (2017, 241, 361)),
    ],
)
def test_the_snapshot_has_the_scores_of_the_leaderboards_code(system: str, wer: float, counts: tuple) -> None:
    results = Path(__file__).parents[2] / "results" / "librispeech.parquet"
    table = pq.read_table(results, filters=[("system", "=", system), ("config", "=", "clean")]).to_pydict()
    aligned = align(table["reference"], table["transcript"], normaliser="open-asr-2026-08", language="en")
    totals = aligned.totals()
    assert round(aligned.rate, 2) == wer
    assert (totals["substitutions"], totals["deletions"], totals["insertions"]) == counts


@pytest.mark.parametrize("name", ["open-asr-1", "open-asr-2026-08"])
def test_english_only(name: str) -> None:
    assert normalise("OK", name, "en-GB") == "okay"
    with pytest.raises(UserError, match=f"'{name}' is for English, not 'es'"):
        normalise("vale", name, "es")


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
