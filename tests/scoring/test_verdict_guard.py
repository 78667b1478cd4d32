"""A comparison gives no verdict on a recogniser that is degenerate on clean speech, or whose clips failed."""

import json

import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.scoring.ranking import candidate_of, rank
from speech_robust_bench.scoring.verdict_guard import refusal

SAID = [f"word{i} is spoken by nobody but me today" for i in range(40)]
CONFIGS = {"en_clean": ("clean", None), "en_noise_sev1": ("noise_env", "en_clean")}


def write_run(folder, answer, about=CONFIGS):
    """A run of forty speakers; `answer` gives the transcript of a clip under a config, None if it failed."""
    folder.mkdir()
    for config in about:
        lines = [
            {
                "id": f"clip{i:02}",
                "speaker": f"s{i}",
                "gender": "female" if i % 2 else "male",
                "text": text,
                "pred_text": answer(config, i, text),
                "duration": 2.0,
            }
            for i, text in enumerate(SAID)
        ]
        (folder / f"{config}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    entries = {config: {"category": category, "source": source} for config, (category, source) in about.items()}
    (folder / "run.json").write_text(json.dumps({"model": folder.name, "configs": entries}))
    return folder


def honest(config, i, text):
    words = text.split()
    return " ".join(words if config == "en_clean" else ["x", *words[1 + i % 3 :]])


SPOILT = {
    "silent": (lambda config, i, text: "", "WER on clean speech is 100.0, above 50"),
    "failing": (lambda config, i, text: None, "WER on clean speech is 100.0, above 50"),
    "some-empty": (lambda config, i, text: "" if i < 4 else honest("en_clean", i, text), "10% of the clean clips"),
    "some-failed": (
        lambda config, i, text: None if config != "en_clean" and i < 10 else honest(config, i, text),
        "12% of the clips failed",
    ),
}


@pytest.fixture(params=SPOILT, ids=list(SPOILT))
def pair(request, tmp_path):
    answer, reason = SPOILT[request.param]
    return write_run(tmp_path / request.param, answer), write_run(tmp_path / "honest", honest), reason


def test_compare_gives_no_verdict_and_says_why(pair, capsys):
    spoilt, good, reason = pair
    assert main(["compare", str(spoilt), str(good), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["no_verdict"].startswith("A: ")
    assert reason in shown["no_verdict"]
    assert [row["better"] for row in shown["rows"]] == [None] * len(shown["rows"])
    for order in ((spoilt, good), (good, spoilt)):
        assert main(["compare", *map(str, order), "--by", "config"]) == 0
        out = capsys.readouterr().out
        assert f"no verdict: {'A' if order[0] == spoilt else 'B'}: " in out
        assert " helps: " not in out


def test_results_compare_gives_no_verdict_either(pair):
    spoilt, good, reason = pair
    rows = srb.read_run(spoilt).compare(srb.read_run(good))
    assert all(row["better"] is None for row in rows.to_records())
    assert reason in repr(rows)


def test_the_honest_one_is_told_from_a_worse_one(tmp_path):
    good = write_run(tmp_path / "good", honest)
    worse = write_run(tmp_path / "worse", lambda config, i, text: text if config == "en_clean" else "x y z " * 2)
    rows = srb.read_run(good).compare(srb.read_run(worse))
    assert {row.better() for row in rows} == {"a"}


def test_the_rule():
    assert refusal(49.9, 0.05, 0.05) == ""
    assert refusal(None) == ""
    assert refusal(50.1).startswith("WER on clean speech")
    assert refusal(5.0, 0.06) == "6% of the clean clips have no word, more than 5%"
    assert refusal(5.0, 0.0, 0.06) == "6% of the clips failed, more than 5%"


def test_compare_names_the_clean_config_that_is_missing(tmp_path, capsys):
    runs = [write_run(tmp_path / name, honest) for name in ("a", "b")]
    (runs[1] / "en_clean.jsonl").unlink()
    assert main(["compare", *map(str, runs)]) == 2
    assert "en_clean is missing from B; run it too" in capsys.readouterr().err


def test_fairness_counts_no_violation_of_a_degenerate_recogniser(pair):
    spoilt, good, reason = pair
    found = srb.fairness([spoilt])
    assert reason in found.no_verdict[spoilt.name]
    assert not any(row.violates for row in found.comparisons)
    assert srb.fairness([good]).no_verdict == {}


def test_stability_names_the_recogniser_that_cannot_be_ranked(pair):
    spoilt, good, reason = pair
    with pytest.raises(UserError, match="cannot be ranked") as refused:
        srb.stability([good, spoilt, write_run(spoilt.parent / "third", honest)])
    assert reason in str(refused.value)


def test_anchors_are_not_chosen_by_a_degenerate_run(pair):
    spoilt, good, _ = pair
    third = write_run(spoilt.parent / "third", honest)
    with pytest.raises(UserError, match=r"cannot be ranked|clips failed"):
        srb.choose_anchors([good, spoilt, third], spoilt.parent / "anchors.json", progress=False)


def test_diagnose_shows_the_numbers_with_the_reason(pair, capsys):
    spoilt, good, reason = pair
    assert reason in (srb.diagnose(spoilt).cards["en"].no_verdict or "")
    assert main(["diagnose", str(spoilt)]) == 0
    assert f"no verdict on this recogniser: {reason}" in capsys.readouterr().out
    assert srb.diagnose(good).cards["en"].no_verdict is None


def test_the_gate_lets_no_degenerate_model_pass(tmp_path):
    """Nor is anything compared with a degenerate baseline."""
    spoilt = write_run(
        tmp_path / "spoilt", lambda config, i, text: "" if "clean" in config else honest(config, i, text)
    )
    good = write_run(tmp_path / "honest", honest)
    for new, old in ((spoilt, good), (good, spoilt)):
        with pytest.raises(UserError, match="no verdict, because of spoilt"):
            srb.gate(srb.read_run(new), old)


def test_the_ranking_has_the_same_rule(pair):
    spoilt, good, reason = pair
    standings = {s.name: s for s in rank([candidate_of(srb.read_run(run).record, "en") for run in (spoilt, good)])}
    assert reason in standings[spoilt.name].why
    assert standings[spoilt.name].place is None
    assert standings["honest"].place == 1


def test_tables_say_what_their_intervals_are_over(tmp_path, capsys):
    run = str(write_run(tmp_path / "a", honest))
    assert main(["table", run, "--intervals"]) == 0
    assert "intervals of en a are over 40 speakers, 40 clips" in " ".join(capsys.readouterr().out.split())
    assert main(["table", run, "--csv"]) == 0
    head, line = (row.split(",") for row in capsys.readouterr().out.splitlines())
    cells = dict(zip(head, line, strict=True))
    assert [cells[f"AVG NWERD{end}"] for end in (" over", " n", " clips")] == ["speakers", "40", "40"]


def test_each_row_says_its_n(tmp_path, capsys):
    runs = [write_run(tmp_path / name, honest) for name in ("a", "b")]
    rows = srb.read_run(runs[0]).compare(srb.read_run(runs[1]))
    assert {(row.unit, row.units, row.clips) for row in rows} == {("speakers", 40, 40)}
    assert "40 speakers" in repr(rows)


def with_second(lead):
    """The configs of English, and of a second corpus or language."""
    return CONFIGS | {f"{lead}_clean": ("clean", None), f"{lead}_noise_sev1": ("noise_env", f"{lead}_clean")}


def babbling_in(lead):
    def answer(config, i, text):
        return "x " * 8 if config.startswith(f"{lead}_") else honest(config, i, text)

    return answer


def test_a_good_language_hides_no_bad_one(tmp_path):
    """The mean clean WER of the two languages is 50."""
    about = with_second("es")
    bad, good = (write_run(tmp_path / n, a, about) for n, a in (("bad", babbling_in("es")), ("good", honest)))
    rows = list(srb.compare(bad, good, progress=False))
    assert {row.language for row in rows if row.no_verdict} == {"es"}
    assert all(row.better() is None for row in rows if row.language == "es")
    assert "(es noise_env, es overall)" in srb.compare(bad, good, progress=False).no_verdict
    found = srb.fairness([bad, good])
    assert "es_noise_sev1" in found.no_verdict["bad"]
    assert "en_noise_sev1" not in found.no_verdict["bad"]
    with pytest.raises(UserError, match="es: WER on clean speech is 100"):
        srb.gate(srb.read_run(good), bad)


def test_a_good_corpus_hides_no_bad_one(tmp_path, capsys):
    about = with_second("en-other")
    bad, good = (write_run(tmp_path / n, a, about) for n, a in (("bad", babbling_in("en-other")), ("good", honest)))
    reason = "WER on clean speech (en-other_clean) is 100.0, above 50"
    assert srb.compare(bad, good, progress=False).no_verdict == f"A: {reason}"
    assert rank([candidate_of(srb.read_run(bad).record, "en")])[0].why == reason
    assert main(["table", str(bad), str(good)]) == 0
    assert f"bad is not ranked: {reason}" in " ".join(capsys.readouterr().out.split())


def test_failed_clips_of_one_config_leave_it_open(tmp_path):
    """They are 4 of 160 clips, but 4 of the 40 that are compared."""
    about = with_second("es")
    failing = write_run(tmp_path / "failing", lambda c, i, t: None if "es_n" in c and i < 4 else honest(c, i, t), about)
    good = write_run(tmp_path / "good", honest, about)
    rows = srb.read_run(failing).compare(srb.read_run(good), by="config")
    assert {row.name: row.no_verdict for row in rows if row.no_verdict} == {
        "noise_sev1": "A: 10% of the clips failed, more than 5%"
    }
    assert "(es_noise_sev1)" in srb.fairness([failing]).no_verdict["failing"]


def test_fairness_knows_a_model_with_a_space_in_its_name(tmp_path):
    spoilt = write_run(tmp_path / "two words", lambda config, i, text: "" if i % 2 else text)
    found = srb.fairness([spoilt, write_run(tmp_path / "honest", honest)])
    pairs = [row for row in found.comparisons if row.form == "pair"]
    assert pairs
    assert not any(row.violates for row in pairs)
