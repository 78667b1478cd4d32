"""WER strict / WER lenient: what may be written in several ways, and what may not."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.run_folders import write_spelling_run

import speech_robust_bench.extensions.text_metrics.lenient_wer as lenient_module
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.text_metrics.lenient_wer import lenient_wer


def lenient(reference, prediction, **how):
    return lenient_wer([reference], [prediction], **how)["wer_lenient"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("so we do not know", "So, uh, we don't know."),
        ("it is over", "It's over"),
        ("it has begun", "it's begun"),
        ("they would have gone", "they'd have gone"),
        ("I am going to leave", "I'm gonna leave"),
        ("the colour of the theatre", "the color of the theater"),
        ("travelling and organising", "traveling and organizing"),
        ("every body at the schoolhouse", "everybody at the school house"),
        ("to-morrow at seven thirty", "tomorrow at 7:30"),
        ("twenty five dollars", "$25"),
        ("mister Brown is okay", "Mr. Brown is OK"),
    ],
)
def test_two_ways_to_write_the_same(one, other):
    assert lenient(one, other) == lenient(other, one) == 0


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [
        ("we do know", "we do not know", 100 / 3),
        ("the cat sat", "the cap sat", 100 / 3),
        ("he is here", "she is here", 100 / 3),
        ("room 847", "room 8 4 6", 50),  # the strict reference has two words
        ("a school house", "a house school", 200 / 3),
    ],
)
def test_what_was_said_differently_stays_an_error(one, other, wrong):
    assert lenient(one, other) == pytest.approx(wrong)


words = st.lists(
    st.sampled_from(["do", "not", "don't", "colour", "color", "uh", "every", "body", "everybody", "7", "seven"])
)


@given(words, words)
def test_lenient_is_never_above_strict(one, other):
    scores = lenient_wer([" ".join(one)], [" ".join(other)])
    assert scores["wer_lenient"] <= scores["wer"]


def test_a_file_of_ones_own_is_added(tmp_path):
    own = tmp_path / "own.csv"
    own.write_text("kind,written,counted_as\nname,Katherine,Catherine\nspelling,foo*,bar*\ndisfluency,like,\n")
    how = {"conventions": str(own)}
    assert lenient("like Katherine foos", "Catherine bars", **how) == 0
    assert lenient("do not", "don't", **how) == 0
    assert lenient("like Katherine foos", "Catherine bars") > 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a,b\n", "first line must be kind,written,counted_as"),
        ("kind,written,counted_as\nx,,y\n", "line 2: needs a kind"),
        ("kind,written,counted_as\nx,a*,b\n", "line 2: a \\* stands at the end of both"),
    ],
)
def test_a_bad_file_is_one_line(tmp_path, text, complaint):
    (tmp_path / "own.csv").write_text(text)
    with pytest.raises(UserError, match=complaint):
        lenient("a", "b", conventions=str(tmp_path / "own.csv"))
    with pytest.raises(UserError, match="cannot read"):
        lenient("a", "b", conventions=str(tmp_path / "none.csv"))


def test_every_line_of_ours_is_sound_and_leads_to_a_fixed_form():
    known = lenient_module.load("en")
    assert len(known.phrases) > 100
    for form in known.phrases.values():
        assert known.apply(" ".join(form)) == list(form)
    for form in known.beginnings.values():
        assert known.apply(form) == [form]


def test_it_stands_in_results_score_table_and_python(tmp_path, capsys):
    import speech_robust_bench as srb

    folder = write_spelling_run(tmp_path)
    assert main(["score", str(folder), "--replicates", "10"]) == 0
    assert "clean WER 100.0 / lenient 0.0" in capsys.readouterr().out
    entry = json.loads((folder / "results.json").read_text())["configs"]["en_clean"]
    assert entry["measures"]["wer_lenient"] == {"value": 0.0, "interval": None}  # no clip differs
    assert "settings" not in json.loads((folder / "results.json").read_text())["options"]
    assert main(["table", str(folder), "--lenient"]) == 0
    shown = capsys.readouterr().out
    assert "lenient" in shown
    assert srb.read_run(folder).to_records()[0]["wer_lenient"] == 0
    own = tmp_path / "own.csv"
    own.write_text("kind,written,counted_as\nname,Katherine,Catherine\n")
    assert main(["score", str(folder), "--replicates", "0", "--conventions", str(own)]) == 0
    scored = json.loads((folder / "results.json").read_text())
    assert scored["options"]["settings"] == {"conventions": str(own)}
    assert scored["scoring"]["measures"]["wer_lenient"]["conventions"] == "own.csv"
    assert main(["table", str(folder), "--confidence"]) == 0
    assert "ECE" in capsys.readouterr().out
