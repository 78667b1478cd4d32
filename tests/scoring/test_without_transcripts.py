"""Speech that nobody has transcribed, alone and among speech with references: no WER, and all that needs none."""

import json

import numpy as np
import pytest
import soundfile

import speech_robust_bench as srb_api
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import build
from speech_robust_bench.builders.plan import plan
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.engines import Inline
from speech_robust_bench.core.rows import row_digest, transcripts_digest

SAID = ("one two three four", "five six seven eight", "nine ten eleven twelve", "a b c d")
CONFIGS = ["en-mine_clean", "en-mine_aeq_amplitude_sev1", "en-mine_silence"]


@pytest.fixture
def corpus(tmp_path):
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(4):
        noise = np.random.default_rng(number).uniform(-0.3, 0.3, 4000 + 800 * number)
        soundfile.write(folder / f"{number}.wav", noise, 16_000)
    return folder


def hear_with(wrong):
    """All that was said, but another last word in quiet clips, and in silence one word."""

    def transcribe(clips, rate, language):
        texts = []
        for clip in clips:
            text = SAID[round((len(clip) - 4000) / 800)]
            loud = float(np.abs(clip).max(initial=0))
            texts.append(text if loud > 0.2 else text.rsplit(" ", 1)[0] + f" {wrong}" if loud > 0.01 else "thanks")
        return texts

    return transcribe


def evaluate(corpus, tmp_path, name, configs):
    """A run of `hear_with(name)`, on built data: that needs no worker processes."""
    sources = {("en", "mine"): str(corpus)}
    build(plan(configs, sources), sources, tmp_path / "srb", Inline(), lambda what, count: lambda n: None, Banks())
    where = tmp_path / name
    return srb_api.evaluate(
        hear_with(name), configs, data=tmp_path / "srb", out=where, run_options=srb_api.RunOptions(name), progress=False
    )


@pytest.fixture
def runs(corpus, tmp_path):
    return [evaluate(corpus, tmp_path, name, CONFIGS) for name in ("first", "second")]


def test_no_wer_and_all_that_needs_no_reference(runs, tmp_path, capsys):
    first, second = runs
    assert first.json["configs"] == {}
    assert first.json["languages"] == {}
    assert first.predictions("en-mine_clean")[0]["text"] is None
    entries = first.json["untranscribed"]
    assert list(entries) == ["en-mine_aeq_amplitude_sev1", "en-mine_clean"]
    assert entries["en-mine_clean"]["difference"] is None
    assert entries["en-mine_aeq_amplitude_sev1"]["difference"]["value"] == 25.0  # the last of four words
    assert entries["en-mine_clean"]["words"] == 16
    assert first.json["reject"]["en-mine_silence"]["words"] == 4
    assert "25.0" in first.table(second)
    assert [(row["config"], row["difference"]) for row in first.difference(second)] == [
        ("en-mine_aeq_amplitude_sev1", 25.0),
        ("en-mine_clean", 0.0),
        ("en-mine_silence", 0.0),
    ]
    folders = [str(run.folder) for run in runs]
    for command in (["table"], ["compare", "--difference"], ["score"], ["report", "--out", str(tmp_path / "r.html")]):
        assert main([command[0], *folders, *command[1:]]) == 0
    assert "Without transcripts" in (tmp_path / "r.html").read_text()
    assert main(["diagnose", folders[0]]) == 0
    assert "no transcripts: 32 words in 8 clips" in capsys.readouterr().out
    for command, message in (
        (["compare", *folders], "no config with speech and transcripts"),
        (["stability", *folders, folders[0]], "transcripts in common"),
    ):
        assert main(command) == 2
        said = capsys.readouterr().err.strip()
        assert message in said
        assert "\n" not in said


def manifest(corpus, texts):
    rows = [
        {"file": f"{i}.wav", "text": text, "gender": "f" if i % 2 else "m", "id": str(i)}
        for i, text in enumerate(texts)
    ]
    (corpus / "list.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")


def test_fairness_without_transcripts(corpus, tmp_path, capsys):
    manifest(corpus, [None] * 4)
    folders = [str(evaluate(corpus, tmp_path, name, CONFIGS[:2]).folder) for name in ("first", "second")]
    how = ["--comprehensible", "0", "--replicates", "20"]
    assert main(["fairness", *folders, *how, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["table4"]) == ["pair"]
    assert {row["degradation"] for row in result["degradations"]} == {0.25}
    assert main(["fairness", *folders, *how]) == 0
    capsys.readouterr()
    assert main(["fairness", folders[0], *how]) == 2
    assert "give two or more runs" in capsys.readouterr().err


def test_a_mixed_corpus_is_scored_where_it_has_references(corpus, tmp_path, capsys):
    manifest(corpus, [SAID[0], None, SAID[2], None])
    run = evaluate(corpus, tmp_path, "m", CONFIGS[:2])
    level = CONFIGS[1]
    assert run.json["configs"][level]["wer"]["value"] == 25.0
    assert run.json["configs"][level]["rows"] == 2
    assert run.json["untranscribed"][level]["rows"] == 2
    assert run.json["untranscribed"][level]["difference"]["value"] == 25.0
    assert srb_api.read_run(tmp_path / "m").json == run.json  # kept, and not scored again
    assert main(["fairness", str(tmp_path / "m"), "--comprehensible", "0", "--replicates", "20"]) == 2
    assert "no transcripts" in capsys.readouterr().err  # those of the women have none, and there is one run only


def test_a_null_is_not_an_empty_text():
    pcm = np.zeros(3, np.int16)
    assert row_digest("a", None, pcm) != row_digest("a", "", pcm)
    assert transcripts_digest([("a", None)]) != transcripts_digest([("a", "")])
