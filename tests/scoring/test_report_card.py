"""Kinds of words, hallucinations, conditions, disparities, and the card that puts them together."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from support.part_records import results

from speech_robust_bench.cli.main import main
from speech_robust_bench.scoring import report_card, word_errors
from speech_robust_bench.scoring.clip_sets import ClipSet, ErrorMatrix
from speech_robust_bench.scoring.disparity import group_disparity, languages, lwerr_table
from speech_robust_bench.scoring.report_card import aligned, card
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.scoring import Counts
from speech_robust_bench.scoring.word_errors import Vocabulary, align

SAID = ["Then Mary saw seven dogs.", "the dogs ran to the sea", "the sea is cold", "go to Rome now"]
NOISY = [
    "then mary saw eleven dogs",
    "the dogs ran to the sea sea sea sea sea",
    "",
    "go to roam now and then and then and then",
]
PEOPLE = {"gender": ["female", "male", "female", "male"], "speaker": ["a", "b", "a", "b"]}
LEVELS = {"loudness_dbfs": [-22.5, -22.5, -41.0, None]}


def pair(said, heard):
    vocabulary = Vocabulary()
    return align(vocabulary.encode(said), vocabulary.encode(heard)), vocabulary.words


def zeros(lengths, errors) -> Counts:
    lengths, errors = np.array(lengths), np.array(errors)
    return Counts(lengths - errors, errors, 0 * errors, 0 * errors)


# --- Aksenova et al. -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wers", "gap"), [((6.5, 13.9, 19.3), 12.8), ((8.9, 11.4, 12.4), 3.5)])
def test_figure_1_of_the_population_weighted_framework(wers, gap):
    """Groups of 60, 30 and 10 % of the population, who make up 80, 10 and 10 % of the data: both average 10."""
    words_in = {"A": 80_000, "B": 10_000, "C": 10_000}
    labels = list(words_in)
    errors = np.array([[round(wer * words_in[g] / 100) for g, wer in zip(labels, wers, strict=True)]])
    clips = ClipSet("en_clean", (), ("1", "2", "3"), (None,) * 3, {})
    measured = ErrorMatrix("m", "transcripts", clips, errors, np.array([list(words_in.values())]))
    groups = {g: np.array([i]) for i, g in enumerate(labels)}
    (found,) = group_disparity(measured, labels, groups, {"A": 0.6, "B": 0.3, "C": 0.1})
    assert found.weighted_wer == pytest.approx(10, abs=0.01)
    assert found.gap == pytest.approx(gap)
    assert (found.best, found.worst) == ("A", "C")


# --- words -----------------------------------------------------------------------------------------------------------


def test_bands_hold_the_shares_they_say():
    frequency = {f"w{n}": round(10_000 / n) for n in range(1, 2001)}
    total = sum(frequency.values())
    band = word_errors.bands(frequency)
    shares = [sum(frequency[w] for w in band if band[w] == name) / total for name in word_errors.BANDS]
    assert shares == pytest.approx([0.5, 0.3, 0.15, 0.05], abs=0.03)
    assert band["w1"].startswith("common")
    assert band["w2000"].startswith("rare")


def test_names_and_numbers():
    assert word_errors.names(SAID, "en") == {"mary", "rome"}
    assert word_errors.names([text.upper() for text in SAID], "en") is None
    assert word_errors.names(SAID, "de") is None
    assert word_errors.names(["I think I'm late, said I."], "en") == set()
    assert word_errors.is_number("treinta", "es")
    assert not word_errors.is_number("treinta", "en")


def test_missed_words_by_kind():
    found, vocabulary = pair(SAID, NOISY)
    kinds = word_errors.kinds(vocabulary, SAID, "en", {"the": 4, "sea": 2, "dogs": 2, "to": 2, "rome": 1})
    rates = word_errors.missed(found, kinds)
    assert rates["numbers"] == (1, 1)  # seven became eleven
    assert rates["names"] == (2, 1)  # Mary was heard, Rome was not
    assert rates["said once"] == (1, 1)


def test_lists_of_ones_own(tmp_path):
    table = tmp_path / "f.csv"
    table.write_text("word,count\nThe,5\nsea,2\n")
    assert word_errors.read_frequencies(table) == {"the": 5, "sea": 2}
    (tmp_path / "n.txt").write_text("New York\nO'Hara\n")
    assert word_errors.read_names(tmp_path / "n.txt") == {"new", "york", "ohara"}


# --- conditions ------------------------------------------------------------------------------------------------------


def test_bins_spread_and_speakers():
    counts = zeros([10, 10, 10, 10], [0, 1, 2, 9])
    rows = report_card.by_bins(counts, np.array([1.0, 3.0, 4.0, math.nan]), (2, 5))
    assert [(r.bin, r.clips, r.wer) for r in rows] == [("< 2", 1, 0.0), ("2 to 5", 2, 15.0)]
    assert report_card.spread(counts).p50 == 15
    assert report_card.spread(counts).without_error == 0.25
    found = report_card.speakers(counts, ["x", "x", "y", None], minimum_clips=1)
    assert [(r.speaker, r.wer) for r in found.worst] == [("y", 20), ("x", 5)]
    assert report_card.speakers(counts, ["x", "x", "y", None], minimum_clips=3).worst == []


def test_speech_rate_is_reference_words_by_seconds():
    found = report_card.bins_of(zeros([10, 10], [1, 3]), [5.0, 2.0], [None, None])
    assert [row.bin for row in found["words_per_s"]] == ["2 to 2.5", ">= 3.5"]
    assert "loudness_dbfs" not in found


# --- disparity -------------------------------------------------------------------------------------------------------


def test_lwerr_averages_before_the_ratio(write_run):
    """Fig. 7: WERs are averaged across severity levels before the log ratio is computed."""
    said = ["a b c d"] * 4
    one, two = ["a b c d", "a b c x"] * 2, ["a b c x", "a b c d"] * 2
    two[0] = "a b x x"
    folder = write_run(
        "m",
        {"en-x_clean": said, "en-x_aeq_noise_sev1": one, "en-x_aeq_noise_sev2": two},
        said,
        gender=["female", "male"] * 2,
    )
    counted = [(one, one.count().counts) for one in map(open_run(folder).read, open_run(folder).configs)]
    rows = {r.severity: r for r in lwerr_table(counted) if r.category == "aequevox"}
    # female: 0 and 3/8 -> 3/16; male: 1/4 and 0 -> 1/8
    assert rows[None].lwerr == pytest.approx(math.log2((3 / 16) / (1 / 8)))
    assert rows[None].configs == 2
    assert rows[1].lwerr is None  # no error of women at all: no finite ratio
    assert set(rows) == {None, 1, 2}


def test_languages_side_by_side():
    def table(wer, nwerd):
        row = {"wer": None, "werd": None, "nwerd": {"value": nwerd, "interval": None}}
        return {"clean": {"c": {"wer": {"value": wer}}}, "categories": {"sfx": row}, "overall": row, "adversarial": row}

    found = languages(results(languages={"en": table(5.0, 10.0), "es": table(10.0, 25.0)}))
    assert found.rows["clean wer"]["es"].ratio == 2
    assert found.rows["sfx nwerd"]["es"].ratio == 2.5
    assert found.rows["overall nwerd"]["en"].ratio == 1


# --- the card --------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(write_run):
    heard = {"en-x_clean": SAID, "en-x_aeq_noise_sev1": NOISY, "en-x_silence": ["thank you", "", "thank you", None]}
    return write_run("m", heard, SAID, **PEOPLE, **LEVELS)


def test_the_card_of_a_run(folder):
    made = json.loads(json.dumps(card(aligned(open_run(folder), "en"), minimum=2).as_json(), allow_nan=False))
    assert made["clean"]["wer"] == 0
    assert made["hard"]["hallucination"]["loops"] == 2
    assert made["hard"]["hallucination"]["examples"][0]["text"] == "“and then” × 3"
    assert made["hard"]["kinds"]["numbers"] == {"said": 1, "missed": 1, "rate": 100}
    assert made["hard"]["groups"]["gender"]["worst"] == "male"
    levels = made["hard"]["conditions"]["loudness_dbfs"]
    assert [(row["bin"], row["clips"], row["wer"]) for row in levels] == [
        ("< -40", 1, 100),
        ("-25 to -20", 2, 500 / 11),
    ]
    assert made["reject"]["clips_with_words"] == 2
    assert made["reject"]["words_per_minute"] == pytest.approx(4 / (8 / 60))
    assert made["reject"]["phrases"] == [["thank you", 2]]
    small = card(aligned(open_run(folder), "en"), minimum=3).hard.groups["gender"]
    assert small.too_small == ["female", "male"]
    assert small.gap is None


def test_the_command_prints_it_and_gives_json(folder, capsys):
    assert main(["diagnose", str(folder)]) == 0
    shown = capsys.readouterr().out
    assert "repetition loops" in shown
    assert "'thank you' x 2" in shown
    assert main(["diagnose", str(folder), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["cards"]["en"]["hard"]["clips"] == 4


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["--language", "fr"], "has nothing in 'fr'; it has en"),
        (["--frequencies", "nowhere.csv"], "cannot read nowhere.csv"),
        (["--normaliser", "odd"], "there is no normaliser 'odd'"),
    ],
)
def test_bad_input_is_one_line(folder, capsys, argv, line):
    assert main(["diagnose", str(folder), *argv]) == 2
    error = capsys.readouterr().err.strip()
    assert line in error
    assert "\n" not in error


def test_a_word_list_that_is_none(folder, tmp_path, capsys):
    path = tmp_path / "bad.csv"
    path.write_text("the,5\nsea;3\n")
    assert main(["diagnose", str(folder), "--frequencies", str(path)]) == 2
    assert "line 2: not word,count" in capsys.readouterr().err


def test_the_card_as_a_page_of_its_own(folder, tmp_path, capsys):
    page, data = tmp_path / "card.html", tmp_path / "card.json"
    assert main(["diagnose", str(folder), "--out", str(page)]) == 0
    text = page.read_text("utf-8")
    for said in ("System report card: m", "repetition loops", "“and then” × 3", "“thank you” × 2"):
        assert said in text
    assert "http" not in text.replace("http-equiv", "").replace("http://www.w3.org", "")
    assert main(["diagnose", str(folder), "--out", str(data)]) == 0
    assert json.loads(data.read_text("utf-8"))["cards"]["en"]["model"] == "m"
    assert main(["diagnose", str(folder), "--out", "card.pdf"]) == 2
    assert "--out card.pdf" in capsys.readouterr().err


def test_the_card_is_within_the_report(folder, tmp_path, capsys):
    page = tmp_path / "report.html"
    assert main(["report", str(folder), "--out", str(page)]) == 0
    text = page.read_text("utf-8")
    assert 'id="cards"' in text
    assert "Words missed" in text
    assert "WER by loudness, dBFS" in text
    data = json.loads(page.with_suffix(".json").read_text("utf-8"))
    assert data["m"]["en"]["hard"] == card(aligned(open_run(folder), "en")).hard.as_json()
    assert main(["report", str(folder), "--out", str(tmp_path / "report.json")]) == 2
    assert "name it .html" in capsys.readouterr().err
