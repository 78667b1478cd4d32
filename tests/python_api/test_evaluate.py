"""`srb.evaluate`, `srb.read_run` and `srb.score`: the whole way in Python, with models of every kind."""

import json

import numpy as np
import pytest

import speech_robust_bench as srb
from speech_robust_bench.cli.main import main

CONFIGS = ["en-demo_noise_sev4", "en-demo_gain_sev2", "en-demo_silence"]
TEXTS = {row["id"]: row["text"] for row in srb.load("en-demo_clean", limit=4)}
LENGTHS = {len(row["audio"]["array"]): row["text"] for row in srb.load("en-demo_clean", limit=4)}


def quiet_ears(clips, rate, language):
    """Knows the clips by their lengths, and loses a word of those that are loud."""
    assert language == "en"
    texts = [LENGTHS[len(clip)] for clip in clips]
    return [
        text.split(" ", 1)[1] if np.abs(clip).mean() > 0.3 else text for clip, text in zip(clips, texts, strict=True)
    ]


@pytest.fixture(scope="module")
def results() -> srb.Results:
    return srb.evaluate(quiet_ears, CONFIGS, limit=4, progress=False)


def test_a_function_is_run_scored_and_the_clean_config_is_added(results):
    assert results.model == "quiet_ears"
    assert set(results.configs) == {"en-demo_clean", *CONFIGS}
    assert float(results.score("clean")) == 0
    words = [len(text.split()) for text in TEXTS.values()]
    lines = results.predictions("en-demo_gain_sev2")
    lost = sum(line["pred_text"] != line["text"] for line in lines)
    assert lost
    assert float(results.score("en-demo_gain_sev2", "wer")) == pytest.approx(100 * lost / sum(words), abs=1e-3)
    assert results.score("gain").measure == "nwerd"
    assert results.score("gain", "werd").interval is None  # four clips are too few


def test_the_numbers_are_those_of_the_commands(results, tmp_path, capsys):
    folder = results.save(tmp_path / "run")
    assert main(["score", str(folder)]) == 0
    assert json.loads((folder / "results.json").read_text()) == results.json
    again = srb.read_run(folder)
    assert again.json == results.json
    assert str(again.table()) == str(results.table())
    with pytest.raises(ValueError, match="is there already"):
        results.save(folder)


def test_a_frame_a_table_and_a_short_repr(results):
    pytest.importorskip("pandas")
    frame = results.to_pandas().set_index("config")
    assert frame.loc["en-demo_gain_sev2", "wer"] == float(results.score("en-demo_gain_sev2", "wer"))
    assert "quiet_ears" in results.table()
    assert "quiet_ears: 4 configs, 16 clips" in repr(results)
    assert len(repr(results)) < 200


def test_compare_and_report(results, tmp_path):
    deaf = srb.evaluate(
        lambda clips, rate, language: [""] * len(clips),
        CONFIGS,
        limit=4,
        run_options=srb.RunOptions("deaf"),
        progress=False,
    )
    rows = results.compare(deaf)
    assert {row.name for row in rows} >= {"noise_env", "audio_proc"}
    assert "A = quiet_ears, B = deaf" in repr(rows)
    page = results.report(tmp_path / "page.html", deaf)
    assert "quiet_ears" in page.read_text()
    assert "srcdoc=" in results._repr_html_()


def test_an_interrupted_evaluation_goes_on_in_its_folder(tmp_path):
    calls = []

    def model(clips, rate, language):
        calls.append(len(clips))
        return [""] * len(clips)

    for configs in (["en-demo_gain_sev2"], ["en-demo_gain_sev2", "en-demo_gain_sev4"]):
        srb.evaluate(model, configs, limit=3, out=tmp_path / "run", progress=False)
    assert sum(calls) == 3 * 3  # clean and two severities, each clip once


def test_an_object_with_transcribe_and_a_spec(tmp_path, monkeypatch):
    class Recogniser:
        name, revision, options, batch_size = "mine", "r1", {"beams": 2}, 2

        def transcribe(self, clips, rate, language):
            assert len(clips) <= 2
            return ["yes"] * len(clips)

    results = srb.evaluate(Recogniser(), "en-demo_gain_sev1", limit=3, progress=False)
    assert results.model == "mine"
    assert results.json["run"]["options"] == {"beams": 2}
    (tmp_path / "ears.py").write_text("def listen(clips, rate, language):\n    return ['no'] * len(clips)\n")
    monkeypatch.syspath_prepend(tmp_path)
    results = srb.evaluate("python:ears:listen", "en-demo_gain_sev1", limit=2, progress=False)
    assert {line["pred_text"] for line in results.predictions("en-demo_clean")} == {"no"}


def test_a_transformers_pipeline():
    """A pipeline takes `{"raw", "sampling_rate"}` and gives `{"text"}`; a tiny random model is enough to say so."""
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    config = transformers.Wav2Vec2Config(
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=16,
        conv_dim=(8,) * 7,
        num_conv_pos_embeddings=4,
        num_conv_pos_embedding_groups=2,
        vocab_size=4,
    )
    import tempfile
    from pathlib import Path

    vocabulary = Path(tempfile.mkdtemp()) / "vocab.json"
    vocabulary.write_text(json.dumps({"<pad>": 0, "|": 1, "A": 2, "B": 3}))
    tokeniser = transformers.Wav2Vec2CTCTokenizer(str(vocabulary), unk_token="<pad>")
    pipe = transformers.pipeline(
        "automatic-speech-recognition",
        model=transformers.Wav2Vec2ForCTC(config),
        tokenizer=tokeniser,
        feature_extractor=transformers.Wav2Vec2FeatureExtractor(),
    )
    results = srb.evaluate(pipe, "en-demo_gain_sev1", limit=2, run_options=srb.RunOptions("tiny"), progress=False)
    assert results.json["failed"] == 0
    assert all(isinstance(line["pred_text"], str) for line in results.predictions("en-demo_clean"))


def test_a_suite_is_its_configs(monkeypatch):
    options = srb.RunOptions("x", suite="fast")
    with pytest.warns(UserWarning, match="without tts"):
        results = srb.evaluate(lambda clips, *_: [""] * len(clips), limit=1, run_options=options, progress=False)
    assert "en-demo_crosstalk_sev3" in results.configs
    assert len(results.configs) == 10


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"model": 3, "configs": "en-demo_*"}, "a model is a spec"),
        ({"model": "mooonshine", "configs": "en-demo_*"}, "did you mean moonshine"),
        ({"model": len}, "which configs"),
        ({"model": len, "configs": "en-demo_x*"}, "no config matches"),
        ({"model": len, "configs": "en_clean"}, "no data for LibriSpeech"),
        (
            {"model": len, "configs": "en_clean", "run_options": srb.RunOptions(suite="fast")},
            "either configs or a suite",
        ),
        ({"model": len, "run_options": srb.RunOptions(suite="slow")}, "no suite 'slow'"),
        ({"model": len, "configs": "en_clean", "data": "x", "corpus": {"en-demo": None}}, "either data"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(how, said):
    with pytest.raises(ValueError, match=said):
        srb.evaluate(progress=False, **how)


def test_a_score_that_is_not_there_is_named(results):
    for name, said in (("noize", "did you mean noise"), ("rir", "no score 'rir'")):
        with pytest.raises(ValueError, match=said):
            results.score(name)
    with pytest.raises(ValueError, match="no measure 'cer'"):
        results.score("noise", "cer")
    with pytest.raises(ValueError, match="no config"):
        results.predictions("en-demo_rir_sev1")


def test_score_equals_jiwer():
    jiwer = pytest.importorskip("jiwer")
    references, predictions = ["the cat sat on the mat", "hello world"], ["the cat sat on mat", "hello word now"]
    made = srb.score(references, predictions)
    assert made.value == pytest.approx(100 * jiwer.wer(references, predictions))
    assert made.counts == {"hits": 6, "substitutions": 1, "deletions": 1, "insertions": 1}
    assert (str(made), made.interval) == ("all WER 37.5", None)  # two utterances are too few
    made = srb.score(5 * references, 5 * predictions)
    assert made.low <= made.value <= made.high
    assert str(made).startswith("all WER 37.5 [")
    with pytest.raises(ValueError, match="must pair"):
        srb.score(["a"], [])
    with pytest.raises(ValueError, match="nothing to score"):
        srb.score([], [])


def test_a_model_that_fails_on_every_clip_is_an_error():
    def broken(clips, rate, language):
        raise RuntimeError("no weights")

    with pytest.raises(ValueError, match=r"every clip failed, the first with: .*no weights"):
        srb.evaluate(broken, "en-demo_clean", limit=2, progress=False)


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_a_limit_is_a_number_of_clips(limit):
    with pytest.raises(ValueError, match="a limit is a whole number of clips"):
        srb.evaluate(quiet_ears, "en-demo_clean", limit=limit, progress=False)
    with pytest.raises(ValueError, match="a limit is a whole number of clips"):
        srb.load("en-demo_clean", limit=limit)


def test_without_clean_speech_a_notice_says_no_werd(tmp_path, recwarn):
    words = "no WERD without en-demo_clean"
    how = {"corpus": {"en-demo": None}, "limit": 1, "progress": False}
    srb.run(quiet_ears, "en-demo_gsm", out=tmp_path / "run", **how)
    srb.build("en-demo_gsm", out=tmp_path / "srb", **how)
    assert [words in str(each.message) for each in recwarn if "WERD" in str(each.message)] == [True, True]
    recwarn.clear()
    srb.run(quiet_ears, "en-demo_clean", out=tmp_path / "run", **how)
    srb.run(quiet_ears, "en-demo_gsm", out=tmp_path / "run", **how)
    srb.build(["en-demo_clean", "en-demo_silence"], out=tmp_path / "srb", **how)
    assert not [each for each in recwarn if "WERD" in str(each.message)]
