"""A private edition ranks recognisers as the public one does: the same scenarios, drawn otherwise."""

import json

import pytest

from speech_robust_bench.cli.main import main

CONFIGS = ["en-demo_clean", "en-demo_noise_sev3"]
MODELS = {"moonshine": "moonshine", "pocketsphinx": "pocketsphinx?fwdflat=no&maxhmmpf=3000&maxwpf=5"}


@pytest.mark.long
def test_both_editions_rank_the_demo_recognisers_alike(tmp_path):
    for package in ("moonshine_voice", "onnxruntime", "pocketsphinx"):
        pytest.importorskip(package)
    (tmp_path / "secret").write_text("not known to anybody who trains")
    wer: dict[str, dict[str, tuple[float, float, float]]] = {}
    for edition, extra in (("public", []), ("private", ["--secret", str(tmp_path / "secret")])):
        data, runs = str(tmp_path / edition), tmp_path / f"runs-{edition}"
        assert main(["build", *CONFIGS, "--limit", "8", "--out", data, *extra]) == 0
        for name, spec in MODELS.items():
            assert main(["run", "--model", spec, "--name", name, *CONFIGS, "--data", data, "--out", str(runs)]) == 0
            assert main(["score", str(runs / name), "--resample", "clips"]) == 0
            scores = json.loads((runs / name / "results.json").read_text())["configs"]["en-demo_noise_sev3"]
            wer.setdefault(edition, {})[name] = scores["wer"]["value"], *scores["wer"]["interval"]
    public, private = wer["public"], wer["private"]
    assert sorted(public, key=public.__getitem__) == sorted(private, key=private.__getitem__)
    for name in MODELS:
        assert public[name][1] <= private[name][2]
        assert private[name][1] <= public[name][2]  # the intervals overlap
