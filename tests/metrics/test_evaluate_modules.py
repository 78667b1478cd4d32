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
import pytest
import yaml

from srb.metrics import modules

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
from srb.cli.main import main
sys.exit(main(["metrics", "install"]))
"""
LOAD = f"""{HIDE}
import json
import evaluate
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
    install = [sys.executable, "-m", "srb.cli.main", "metrics", "install"]
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


@pytest.fixture(scope="session")
def here(tmp_path_factory):
    """The metrics installed for this process, in a cache of its own."""
    cache = tmp_path_factory.mktemp("modules")
    patch = pytest.MonkeyPatch()
    patch.setattr(evaluate.config, "HF_MODULES_CACHE", str(cache))
    patch.setattr(evaluate.config, "HF_EVALUATE_OFFLINE", True)
    patch.syspath_prepend(str(cache))
    for metric in modules.METRICS:
        modules.install(metric)
    yield cache
    patch.undo()


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
