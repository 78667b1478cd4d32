"""Simulated recognisers: every word of a clip is wrong with a probability that the test sets."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from support import simulated_recogniser as simulate

from speech_robust_bench.scoring.clip_sets import ClipSet, TranscribedSet
from speech_robust_bench.scoring.word_errors import Vocabulary

WORDS = 500


@pytest.fixture
def simulated() -> Callable[..., TranscribedSet]:
    """`simulated(groups, rates, ...)`: clips of each group, and `rates(model, config, group)`."""

    def make(
        groups: Mapping[str, int],
        rates: Callable[[str, str, str], float],
        *,
        levels: tuple[str, ...] = ("en_aeq_noise_sev1", "en_aeq_noise_sev3", "en_aeq_drop_sev1"),
        models: tuple[str, ...] = ("one", "two"),
        words: int = 10,
        spread: float = 0.0,
        seed: int = 0,
    ) -> TranscribedSet:
        rng = np.random.default_rng(seed)
        labels = [group for group, count in groups.items() for _ in range(count)]
        reference = simulate.sentences(len(labels), words, WORDS, rng)
        # Some clips are harder than others, at every level and for every recogniser.
        hard = rng.gamma(1 / spread, spread, len(labels)) if spread else np.ones(len(labels))
        heard = {
            model: {
                config: simulate.transcripts(
                    reference,
                    np.clip(np.array([rates(model, config, group) for group in labels]) * hard, 0, 1),
                    WORDS,
                    rng,
                )
                for config in ("en_clean", *levels)
            }
            for model in models
        }
        ids = tuple(f"clip-{i:05}" for i in range(len(labels)))
        clips = ClipSet("en_clean", levels, ids, tuple(None for _ in ids), {"gender": tuple(labels)})
        vocabulary = Vocabulary()
        vocabulary.encode([" ".join(f"w{i}" for i in range(WORDS))])
        return TranscribedSet(clips, vocabulary, reference, heard, np.ones(len(ids), dtype=bool))

    return make


@pytest.fixture
def write_run(tmp_path) -> Callable[..., Path]:
    """`write_run(model, {config: transcripts}, said=, gender=, ...)`: a run folder, its clips named 0, 1, 2, ..."""

    def write(
        model: str, heard: Mapping[str, Sequence[str | None]], said: Sequence[str], ids=None, **columns: Sequence
    ) -> Path:
        folder = tmp_path / model
        folder.mkdir()
        configs = {}
        for config, texts in heard.items():
            reject = "_silence" in config
            lines = [
                {
                    "id": str(clip),
                    "text": "" if reject else said[i],
                    "pred_text": texts[i],
                    "duration": 2.0,
                    "time": 0.1,
                }
                | {name: values[i] for name, values in columns.items()}
                for i, clip in enumerate(ids or range(len(texts)))
            ]
            (folder / f"{config}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
            clean = config.split("_")[0] + "_clean"
            category = "reject" if reject else "clean" if config == clean else "aequevox"
            configs[config] = {"category": category, "source": None if config == clean else clean, "rows": len(texts)}
        (folder / "run.json").write_text(json.dumps({"model": model, "configs": configs}), "utf-8")
        return folder

    return write
