"""The metric folders load in every way that is promised, and pass the checks of the `evaluate` repository."""

import doctest
import importlib
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import evaluate
import jiwer
import pytest
import yaml

import speech_robust_bench as srb
from speech_robust_bench.scoring import modules

ROOT = Path(modules.__file__).resolve().parent.parent
SECTIONS = [
    "Metric Description",
    "How to Use",
    "Inputs",
    "Output Values",
    "Examples",
    "Limitations and Bias",
    "Citation",
    "Further References",
]
# What each metric needs beside predictions and references, in the smallest call.
EXTRA = {
    "werd": {"clean_predictions": ["a b c d"]},
    "nwerd": {"clean_predictions": ["a b c d"], "difficulty": "noise_sev3"},
    "nwer": {"difficulty": "en_noise_sev3"},
    "lwerr": {"groups": ["female"]},
    "fairness": {"groups": {"gender": ["female"]}},
    "terms": {"terms": ["c"]},
    "confidence": {"confidences": ["0.9 0.9 0.9 0.2"]},
}

# evaluate imports all of transformers if it is there, which takes longer than everything else here.
HIDE = """
import sys
class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in sys.argv[1:]:
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Hidden())
"""
INSTALL = f"""{HIDE}
from speech_robust_bench.cli.main import main
sys.exit(main(["metrics", "install"]))
"""
LOAD = f"""{HIDE}
import json
import evaluate
import jiwer
results = {{}}
for name, extra in json.load(sys.stdin):
    metric = evaluate.load(name)
    results[name.split("/")[-1]] = metric.compute(predictions=["a b c e"], references=["a b c d"], **extra)
print(json.dumps(results))
"""


def load_all(names, cwd, home, *hidden):
    """The results of all metrics, loaded in another process in another directory without a network."""
    env = {**os.environ, "HF_HOME": str(home), "HF_EVALUATE_OFFLINE": "1"}
    calls = json.dumps([(names.format(metric), EXTRA.get(metric, {})) for metric in modules.METRICS])
    command = [sys.executable, "-c", LOAD, "transformers", *hidden]
    out = subprocess.run(command, env=env, cwd=cwd, input=calls, capture_output=True, text=True)
    assert out.returncode == 0, out.stderr
    return json.loads(out.stdout)


def test_one_result_by_path_by_name_and_from_a_space(tmp_path):
    """By name after `srb metrics install`; the Space folder where `srb` cannot be imported."""
    home = tmp_path / "home"
    install = [sys.executable, "-m", "speech_robust_bench", "metrics", "install"]
    subprocess.run(
        install, env={**os.environ, "HF_HOME": str(home)}, cwd=tmp_path, check=True, stdout=subprocess.DEVNULL
    )
    by_name = load_all("{}", tmp_path, home)
    by_path = load_all("metrics/{}", ROOT, tmp_path / "home2")
    for metric in modules.METRICS:
        modules.export_space(metric, tmp_path / "spaces" / metric)
    from_space = load_all("spaces/{}", tmp_path, tmp_path / "home3", "srb")
    assert set(by_name) == set(modules.METRICS)
    assert by_name == by_path == from_space
    assert all(result["normaliser"] == "srb-paper-1" for result in by_name.values())


@pytest.mark.parametrize("metric", modules.METRICS)
def test_checks_of_the_evaluate_repository(metric, here, monkeypatch):
    monkeypatch.chdir(ROOT)
    module = importlib.import_module(evaluate.loading.evaluation_module_factory(f"metrics/{metric}").module_path)
    main = evaluate.loading.import_main_class(module.__name__)
    assert main.__module__ == module.__name__
    kinds = [parameter.kind for parameter in inspect.signature(main._compute).parameters.values()]
    assert inspect.Parameter.VAR_KEYWORD not in kinds
    run = doctest.testmod(module, raise_on_error=False)
    assert run.attempted >= 3
    assert run.failed == 0


@pytest.mark.parametrize("metric", modules.METRICS)
def test_card(metric, here):
    card = (ROOT / "metrics" / metric / "README.md").read_text("utf-8")
    _, front, body = card.split("---\n", 2)
    front = yaml.safe_load(front)
    assert front["sdk"] == "gradio"
    assert {"evaluate", "metric"} <= set(front["tags"])
    found = [title for title in re.findall(r"^#+ (.*)$", body, re.MULTILINE) if title in SECTIONS]
    assert found == SECTIONS
    run = doctest.testfile(str(ROOT / "metrics" / metric / "README.md"), module_relative=False, encoding="utf-8")
    assert run.attempted >= 3
    assert run.failed == 0
    names = {path.name for path in (ROOT / "metrics" / metric).iterdir() if path.is_file()}
    assert names == {f"{metric}.py", "README.md", "app.py", "requirements.txt"}


@pytest.mark.parametrize("metric", modules.METRICS)
def test_every_option_is_described_in_the_card_and_the_docstring(metric, here):
    loaded = evaluate.load(metric)
    card = (ROOT / "metrics" / metric / "README.md").read_text("utf-8")
    for option in list(inspect.signature(loaded._compute).parameters):
        assert option in loaded.inputs_description
        assert f"**{option}**" in card


PAIR = {"references": ["a b c d", "e f g h"], "predictions": ["a b c x", "e f g h"]}
MORE = {
    "werd": {"clean_predictions": ["a b c d", "e f g h"]},
    "nwerd": {"clean_predictions": ["a b c d", "e f g h"], "difficulty": 50},
    "nwer": {"difficulty": 50},
    "lwerr": {"groups": ["female", "male"]},
    "fairness": {"groups": ["x", "y"]},
    "terms": {"terms": ["c"]},
    "confidence": {"confidences": [[0.9, 0.9, 0.9, 0.2], [0.8] * 4]},
}


@pytest.mark.parametrize("metric", modules.METRICS)
def test_mistakes_are_one_clear_error(metric, here):
    """`evaluate` itself would turn the number into the string '7' without a word."""
    loaded = evaluate.load(metric)
    more = MORE.get(metric, {})
    for wrong, message in (
        ({"predictions": ["a", 7]}, "predictions[1] is 7 (int), not a string"),
        ({"predictions": ["a", None]}, "predictions[1] is None"),
        ({"predictions": ["a"]}, "2 references but 1 predictions"),
        ({"normaliser": "nfc"}, "there is no normaliser 'nfc'"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            loaded.compute(**{**PAIR, **more, **wrong})
    assert loaded.compute(**PAIR, **more) == evaluate.load(metric).compute(**PAIR, **more)  # nothing of it remains


@pytest.mark.parametrize("metric", modules.METRICS)
def test_adding_bit_by_bit_gives_the_same(metric, here):
    more = MORE.get(metric, {})
    whole = evaluate.load(metric).compute(**PAIR, **more)
    loaded = evaluate.load(metric)
    loaded.add(prediction=PAIR["predictions"][0], reference=PAIR["references"][0])
    loaded.add_batch(predictions=PAIR["predictions"][1:], references=PAIR["references"][1:])
    assert loaded.compute(**more) == whole


def test_single_rows_and_batches_keep_their_order(here):
    """Three of them, so that a row that is written late shows: the second group has the error."""
    lwerr = evaluate.load("lwerr")
    lwerr.add(prediction="a b", reference="a b")
    lwerr.add_batch(predictions=["a x"], references=["a b"])
    lwerr.add(prediction="a b", reference="a b")
    assert lwerr.compute(groups=["male", "female", "male"])["wer"] == {"female": 50.0, "male": 0.0}


@pytest.mark.parametrize("config", [None, "numbers"])
def test_the_evaluator_of_evaluate_bootstraps_the_numbers(here, config):
    """The step of it that scores: the one that loads a model asks for a part of transformers that version 5 lacks."""
    pytest.importorskip("transformers", reason="evaluate's evaluator asks for transformers")
    evaluator = evaluate.evaluator("automatic-speech-recognition")
    inputs = {"references": ["a b", "c d", "e f"], "predictions": ["a b", "c d", "e x"]}
    result = evaluator.compute_metric(
        evaluate.load("wer_ci", config), inputs, strategy="bootstrap", n_resamples=20, random_state=0
    )
    assert result["wer"]["score"] == pytest.approx(100 / 6)
    low, high = result["wer"]["confidence_interval"]
    assert 0 <= low <= 100 / 6 <= high <= 50
    assert not {"normaliser", "interval", "seed"} & set(result)


def test_missing_and_unknown_arguments_are_one_clear_error(here):
    nwerd = evaluate.load("nwerd")
    with pytest.raises(ValueError, match="nwerd: clean_predictions and difficulty must be given"):
        nwerd.compute(**PAIR)
    with pytest.raises(ValueError, match=r"no argument 'dificulty'.*difficulty"):
        nwerd.compute(**PAIR, clean_predictions=PAIR["references"], dificulty=50)
    with pytest.raises(ValueError, match="groups must be given"):
        srb.metrics.lwerr(**PAIR)


@pytest.mark.parametrize("name", ["nwerd", "wer_ci", "tasr", "formatting"])
def test_the_plain_function_is_the_module(here, name):
    more = {"clean_predictions": PAIR["references"], "difficulty": "noise_sev3"} if name == "nwerd" else {}
    expected = evaluate.load(name).compute(**PAIR, **more)
    assert getattr(srb.metrics, name)(**PAIR, **more) == expected
    assert "Args:" in getattr(srb.metrics, name).__doc__


def test_every_card_says_how_to_install_the_metric():
    for card in Path(srb.metrics.__file__).parent.glob("*/README.md"):
        text = card.read_text("utf-8")
        assert "FileNotFoundError" in text
        assert f"srb.metrics.{card.parent.name}(" in text


def test_nwerd_refuses_attacks_and_unknown_scenarios(here):
    nwerd = evaluate.load("nwerd")
    call = {**PAIR, "clean_predictions": PAIR["references"]}
    with pytest.raises(ValueError, match=r"made for one model.*use WERD"):
        nwerd.compute(**call, difficulty="en_pgd_sev1-whisper-tiny.en")
    with pytest.raises(ValueError, match=r"no entry for 'en_ecko_sev1' \(nearest: echo_sev1"):
        evaluate.load("nwerd").compute(**call, difficulty="en_ecko_sev1")
    many = {key: 3 * texts for key, texts in call.items()}
    result = evaluate.load("nwerd").compute(**many, difficulty="en_echo_sev1", replicates=50)
    assert result["nwerd"] == pytest.approx(100 * 12.5 / 54.9)
    assert result["nwerd_interval"] == pytest.approx([100 * end / 54.9 for end in result["werd_interval"]])


def test_lwerr_at_the_edges(here):
    def lwerr(*groups):
        return evaluate.load("lwerr").compute(**PAIR, groups=list(groups))

    assert lwerr("female", "male")["lwerr"] == float("inf")  # 25 % and 0 %
    assert lwerr("male", "female")["lwerr"] == float("-inf")
    missing = lwerr("female", None)
    assert missing["lwerr"] != missing["lwerr"]  # nan
    assert missing["utterances"] == {"female": 1, "male": 0}
    clean = {"references": PAIR["references"], "predictions": PAIR["references"]}
    assert evaluate.load("lwerr").compute(**clean, groups=["female", "male"])["lwerr"] == 0.0
    other = evaluate.load("lwerr").compute(**PAIR, groups=["old", "young"], numerator="young", denominator="old")
    assert other["lwerr"] == float("-inf")


def test_attack_success_is_bounded_and_on_characters_is_jiwers(here):
    call = {"references": ["abc def"], "predictions": ["x y z w v"], "targets": ["abd def"]}
    result = evaluate.load("tasr").compute(**call)
    assert result["uasr"] == 100.0  # WER is 250 %
    assert result["tasr"] == 0.0
    near = evaluate.load("tasr").compute(references=["abc def"], predictions=["abd def"], targets=["abd dex"])
    assert near["uasr_char"] == pytest.approx(100 * jiwer.cer("abc def", "abd def"))
    assert near["tasr_char"] == pytest.approx(100 - 100 * jiwer.cer("abd dex", "abd def"))
    assert near["exact"] == 0.0
    untargeted = evaluate.load("tasr").compute(references=["a b", "c d"], predictions=["a x", "c d e f g h"])
    assert "tasr" not in untargeted
    assert untargeted["uasr"] == 75.0
    pooled = evaluate.load("tasr").compute(references=["a b", "c d"], predictions=["a x", "c d e"], pooled=True)
    assert pooled["uasr"] == 50.0
    with pytest.raises(ValueError, match="2 targets but 1 predictions"):
        evaluate.load("tasr").compute(references=["a"], predictions=["a"], targets=["b", "c"])


def test_wer_ci_takes_speakers_and_seeds(here):
    texts = [f"w{i} a b c d" for i in range(40)]
    hypotheses = [text.replace("a", "x") if i < 20 else text for i, text in enumerate(texts)]
    call = {"references": texts, "predictions": hypotheses}
    by_clip = evaluate.load("wer_ci").compute(**call)
    assert by_clip == evaluate.load("wer_ci").compute(**call)
    assert by_clip["wer"] == pytest.approx(100 * jiwer.wer(texts, hypotheses))
    by_speaker = evaluate.load("wer_ci").compute(**call, speakers=[str(i // 5) for i in range(40)])
    assert by_speaker["resampled"] == "8 speakers, 40 clips"
    assert by_speaker["interval"][1] - by_speaker["interval"][0] > by_clip["interval"][1] - by_clip["interval"][0]


def test_fairness_crosses_columns_and_checks_weights(here):
    call = {**PAIR, "groups": {"gender": ["f", "m"], "age": ["20", "30"]}}
    result = evaluate.load("fairness").compute(**call, intersections=[["gender", "age"]])
    assert set(result["columns"]["gender & age"]["groups"]) == {"f & 20", "m & 30"}
    with pytest.raises(ValueError, match="weights for 'accent' but no such column; there are gender, age"):
        evaluate.load("fairness").compute(**call, weights={"accent": {"x": 1.0}})


def test_unknown_metric():
    with pytest.raises(ValueError, match="there is no metric 'wer'; there are confidence, fairness, formatting"):
        modules.space_files("wer")


@pytest.mark.parametrize("metric", modules.METRICS)
def test_page_of_the_space(metric, here, monkeypatch):
    """The app of each Space builds a page, and its example can be computed."""
    pytest.importorskip("gradio", reason="gradio serves the page of a Space")
    from speech_robust_bench.scoring import widget

    calls = []
    monkeypatch.setattr(widget, "launch", lambda *args, **options: calls.append((args, options)))
    exec((ROOT / "metrics" / metric / "app.py").read_text("utf-8"))
    (script,), options = calls[0]
    assert script == f"{metric}.py"
    page = widget.build(evaluate.load(metric), card="---\na: b\n---\n# Card", **options)
    rows = [list(row) for row in zip(*options["columns"].values(), strict=True)]
    assert page.fn(rows, *options.get("options", {}).values())["normaliser"] == "srb-paper-1"
    assert page.article == "# Card"


def test_combined_metrics_take_one_example_at_a_time():
    """`combine(...).add` names the columns, not one example: evaluate/module.py, CombinedEvaluations.add."""
    both = evaluate.combine([evaluate.load(str(ROOT / "metrics/wer_ci")), evaluate.load(str(ROOT / "metrics/wer_ci"))])
    both.add(prediction="the cat sat town", reference="the cat sat down")
    scores = both.compute(replicates=10)
    assert 25.0 in scores.values()


def test_every_card_cites_the_paper_as_the_citation_file_does():
    from speech_robust_bench.core import BIBTEX

    cards = [path.read_text("utf-8") for path in (ROOT / "metrics").glob("*/README.md")]
    assert all(BIBTEX in card for card in cards if "shah2024" in card)
    assert any("shah2024" in card for card in cards)
