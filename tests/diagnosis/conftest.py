"""Simulated recognisers: every word of a clip is wrong with a probability that the test sets."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from srb.diagnosis import simulate
from srb.diagnosis.coding import Vocabulary
from srb.diagnosis.gather import ClipSet, Heard

WORDS = 500


@pytest.fixture
def simulated() -> Callable[..., Heard]:
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
    ) -> Heard:
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
        return Heard(clips, vocabulary, reference, heard)

    return make
