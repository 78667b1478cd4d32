"""The benchmark as a task of Inspect, with a model that says what it is told to."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

pytest.importorskip("inspect_ai")

import soundfile
from inspect_ai import eval as run_tasks
from inspect_ai.model import ModelOutput, ModelUsage, get_model

import speech_robust_bench as srb
from speech_robust_bench import load, score
from speech_robust_bench.extensions.exports.inspect_task import speech_robustness

CLEAN, NOISE = "en-demo_clean", "en-demo_noise_sev3"


def outcome(tmp_path, answers):
    """The log of a run in which the model gives these answers, in the order of the clips."""
    task = speech_robustness(f"{CLEAN},{NOISE}", limit=2, audio_dir=str(tmp_path / "audio"))
    usage = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # or tiktoken looks for its tables on the web
    outputs = [ModelOutput.from_content("mockllm/model", text) for text in answers]
    for output in outputs:
        output.usage = usage
    model = get_model("mockllm/model", custom_outputs=outputs)
    (log,) = run_tasks(task, model=model, display="none", max_samples=1, log_dir=str(tmp_path / "logs"))
    assert log.status == "success"
    return log


def test_wer_and_werd_are_those_of_the_answers(tmp_path):
    texts = [row["text"] for row in load(CLEAN, limit=2)]
    noisy = [text.split(maxsplit=1)[0] for text in texts]
    log = outcome(tmp_path, [texts[0], f'The speech says: "{texts[1]}"', *noisy])
    measured = {name: value.value for name, value in log.results.scores[0].metrics.items()}
    wer = score(texts, noisy).value
    assert wer > 50
    assert measured == pytest.approx({f"{CLEAN} WER": 0, f"{NOISE} WER": wer, f"{NOISE} WERD": wer})


def test_the_audio_is_that_of_the_config(tmp_path):
    outcome(tmp_path, [""] * 4)
    for config in (CLEAN, NOISE):
        for path, row in zip(sorted((tmp_path / "audio" / config).iterdir()), load(config, limit=2), strict=True):
            samples, rate = soundfile.read(path)
            assert rate == 16_000
            assert samples == pytest.approx(row["audio"]["array"], abs=1 / 65_536)


def test_a_recogniser_scores_in_inspect_what_it_scores_here(tmp_path):
    """Through Inspect's command line, without a network."""
    pytest.importorskip("pocketsphinx")
    command = [
        sys.executable,
        "-m",
        "inspect_ai._cli.main",
        "eval",
        "speech_robust_bench/srb",
        "--model",
        "srb/pocketsphinx",
    ]
    options = ["-T", f"configs={CLEAN},{NOISE}", "-T", "limit=2", "--display", "none", "--log-format", "json"]
    offline = {"HF_HUB_OFFLINE": "1", "INSPECT_LOG_DIR": str(tmp_path / "logs")}
    subprocess.run([*command, *options], cwd=tmp_path, env=os.environ | offline, check=True, timeout=300)
    (path,) = (tmp_path / "logs").glob("*.json")
    log = json.loads(path.read_text("utf-8"))
    assert log["status"] == "success"
    inside = {name: metric["value"] for name, metric in log["results"]["scores"][0]["metrics"].items()}

    srb.evaluate("pocketsphinx", [CLEAN, NOISE], limit=2, out=tmp_path / "run", progress=False)
    results = srb.score_run(tmp_path / "run", srb.ScoreOptions(normaliser="srb-numbers-1", replicates=0))
    here = {f"{config} WER": results.score(config, "wer").value for config in (CLEAN, NOISE)}
    assert {name: inside[name] for name in here} == pytest.approx(here, abs=1e-3)  # results.json rounds


def test_the_register_file_describes_the_task(tmp_path):
    root = Path(__file__).parents[3]
    about = yaml.safe_load((root / "extensions/exports/inspect_evals_register.yaml").read_text(encoding="utf-8"))
    (listed,) = about["tasks"]
    task = speech_robustness(listed["configs"], audio_dir=str(tmp_path / "audio"))
    assert task.name.rpartition("/")[2] == listed["name"]  # an installed package stands before it
    assert len(task.dataset) == listed["dataset_samples"]
    assert speech_robustness.__module__.replace(".", "/").endswith(about["source"]["path"].removesuffix(".py"))
