"""Moonshine and PocketSphinx, whose models come with their packages, on human speech."""

from __future__ import annotations

import os
import string
import subprocess
import sys
from pathlib import Path

import jiwer
import numpy as np
import pytest

from speech_robust_bench.models.adapters.moonshine import assets
from speech_robust_bench.models.interface import Recogniser, open_model


def words(text: str) -> str:
    return " ".join(text.lower().translate(str.maketrans("", "", string.punctuation)).split())


def wer(recogniser: Recogniser, prompts: list[tuple[np.ndarray, str]]) -> float:
    hypotheses = recogniser.transcribe([clip for clip, _ in prompts], 16_000, "en")
    return jiwer.wer([words(text) for _, text in prompts], [words(text) for text in hypotheses])


def shortest(prompts: list[tuple[np.ndarray, str]], count: int) -> list[tuple[np.ndarray, str]]:
    return sorted(prompts, key=lambda prompt: len(prompt[0]))[:count]


@pytest.fixture(scope="module")
def moonshine(human_speech) -> Recogniser:
    return open_model("moonshine?threads=2")


def test_moonshine_transcribes_telephone_prompts(moonshine, prompts) -> None:
    assert wer(moonshine, prompts) < 0.15


def test_moonshine_transcribes_all_of_a_long_reading(moonshine, human_speech) -> None:
    (text,) = moonshine.transcribe([human_speech], 16_000, "en")
    assert words(text).startswith("it was the best of times it was the worst of times")
    assert words(text).endswith("superlative degree of comparison only")


def test_moonshine_says_the_same_in_any_company(moonshine, human_speech) -> None:
    cuts = [(0, 3), (3, 10), (12, 15), (20, 30)]
    clips = [human_speech[start * 16_000 : end * 16_000] for start, end in cuts]
    together = moonshine.transcribe(clips, 16_000, "en")
    assert together == [moonshine.transcribe([clip], 16_000, "en")[0] for clip in clips]
    single = open_model("moonshine?threads=1")
    assert together == single.transcribe(clips, 16_000, "en")


def test_moonshine_reads_onnx_graphs_as_well(moonshine, human_speech, tmp_path) -> None:
    pytest.importorskip("onnx")
    root = Path(__file__).parents[2]
    script = root / "benchmarks" / "matrix.py"
    command = [sys.executable, str(script), "onnx", "--ort", str(assets() / "tiny-en"), "--to", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(root)})
    clips = [human_speech[:48_000], human_speech[90_000:150_000]]
    converted = open_model(f"moonshine:{tmp_path}?threads=1")
    assert converted.transcribe(clips, 16_000, "en") == moonshine.transcribe(clips, 16_000, "en")


@pytest.mark.parametrize("samples", [0, 1, 100, 1000, 1599, 1600, 3200])
def test_moonshine_survives_the_shortest_clips(moonshine, human_speech, samples: int) -> None:
    (text,) = moonshine.transcribe([human_speech[8000 : 8000 + samples]], 16_000, "en")
    assert len(text.split()) <= 2


def test_moonshine_stops_by_length_where_it_would_loop(moonshine) -> None:
    noise = np.random.Generator(np.random.PCG64(1)).normal(0, 0.1, 32_000).astype(np.float32)
    (text,) = moonshine.transcribe([noise], 16_000, "en")
    assert len(text.split()) <= 13  # 6.5 tokens a second


@pytest.fixture(scope="module")
def pocketsphinx():
    pytest.importorskip("pocketsphinx")
    recogniser = open_model("pocketsphinx?workers=1")
    yield recogniser
    recogniser.close()


def test_pocketsphinx_transcribes_telephone_prompts(pocketsphinx, prompts) -> None:
    assert wer(pocketsphinx, shortest(prompts, 8)) < 0.6  # a classical model with an open dictation grammar


def test_pocketsphinx_says_the_same_in_any_order_and_in_processes(pocketsphinx, prompts) -> None:
    clips = [clip for clip, _ in shortest(prompts, 2)]
    forth = pocketsphinx.transcribe(clips, 16_000, "en")
    back = pocketsphinx.transcribe(clips[::-1], 16_000, "en")
    assert forth == back[::-1]
    spread = open_model("pocketsphinx?workers=2")
    try:
        assert spread.transcribe(clips, 16_000, "en") == forth
    finally:
        spread.close()


def test_pocketsphinx_survives_the_shortest_clips(pocketsphinx) -> None:
    clips = [np.zeros(0, np.float32), np.zeros(1, np.float32), np.zeros(1600, np.float32)]
    assert len(pocketsphinx.transcribe(clips, 16_000, "en")) == 3
