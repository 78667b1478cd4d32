"""A private edition differs from the public one in every config, and the same secret makes the same one again."""

from __future__ import annotations

import json

import numpy as np
import pytest

from speech_robust_bench.builders.apply import check_can_perturb
from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.builders.row_generator import PRIVATE_LEAD_IN_MS, PRIVATE_LOSS_DB, RowGenerator
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName
from speech_robust_bench.core.seeding import secret_seed

SECRETS = [secret_seed(key * 16) for key in (b"a", b"b")]
CLIP = (0.4 * np.sin(np.arange(16_000) / 9) * np.linspace(0, 1, 16_000)).astype(np.float32)
CLIP_ID = Utterance("c1", None, "good morning", "en", corpus="mine")  # type: ignore[arg-type]


def job(name):
    scenario = SCENARIOS[name]
    return Job(ConfigName("en", name, scenario.levels[0] if scenario.levels else 0, "mine"), scenario)


def made(name, seed):
    [row] = RowGenerator((job(name),), Banks(), seed).rows(CLIP_ID, CLIP)
    return row


def with_a_function():
    return [name for name, scenario in SCENARIOS.items() if scenario.perturbs]


@pytest.mark.parametrize("name", ["clean", "accent", "tts", *with_a_function()])
def test_every_config_differs(name):
    """Sixteen of 22 were the public ones, hash by hash: effects without randomness draw nothing."""
    if SCENARIOS[name].perturbs:
        try:
            check_can_perturb(SCENARIOS[name])
        except UserError as missing:
            pytest.skip(str(missing))
    public, first, again, second = (made(name, seed) for seed in ("", SECRETS[0], SECRETS[0], SECRETS[1]))
    assert len({public.sha256, first.sha256, second.sha256}) == 3
    assert first.sha256 == again.sha256


def test_what_was_changed_is_small_and_in_the_row():
    row = made("clean", SECRETS[0])
    drawn = json.loads(row.stored()["parameters"])["private"]
    lead_in = round(drawn["lead_in_ms"] * 16)
    assert PRIVATE_LEAD_IN_MS[0] <= drawn["lead_in_ms"] <= PRIVATE_LEAD_IN_MS[1]
    assert PRIVATE_LOSS_DB[0] <= -drawn["gain_db"] <= PRIVATE_LOSS_DB[1]
    assert len(row.pcm) == len(CLIP) + lead_in
    assert set(row.pcm[:lead_in].tolist()) <= {-1, 0, 1}
    loss_db = 20 * np.log10(np.abs(row.pcm[lead_in:]).max() / np.abs(made("clean", "").pcm).max())
    assert loss_db == pytest.approx(drawn["gain_db"], abs=0.01)


def test_a_clip_is_changed_alike_in_every_config():
    """A config and its clean clips are compared clip by clip, so both are of one clip."""
    rows = RowGenerator(tuple(map(job, ("clean", "echo", "gain"))), Banks(), SECRETS[0]).rows(CLIP_ID, CLIP)
    assert len({json.dumps(json.loads(row.stored()["parameters"])["private"]) for row in rows}) == 1


def test_a_clip_without_samples_stays_empty():
    [row] = RowGenerator((job("clean"),), Banks(), SECRETS[0]).rows(CLIP_ID, CLIP[:0])
    assert len(row.pcm) == 0
