"""Mutated submissions, sealed again as a cheat would: each is refused in one line or scored as the honest one.

`SRB_FUZZ` says how many (see fuzzing.py).
"""

from __future__ import annotations

import random
import shutil
from contextlib import suppress

import pytest
from support.built_data import make_built
from support.fake_runs import make_run
from support.forged_submissions import seal
from support.fuzzing import change_bytes, change_lines, change_value, tries

from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.verify import verify


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    base = tmp_path_factory.mktemp("fuzz")
    data = make_built(base / "srb", ["en_clean", "en_noise_sev3"], clips=4)
    folder = submission.make(make_run(base / "run", data, "m"), base / "sent", {"owner": "acme"})
    return folder, expected_rows.load(str(data))


def test_no_mutant_crashes_the_checker_or_changes_a_score(honest, tmp_path):
    original, known = honest
    expected = verify(original, known).results
    outcomes = {"refused": 0, "accepted": 0}
    for seed in range(tries(40)):
        rng = random.Random(seed)
        folder = shutil.copytree(original, tmp_path / str(seed))
        path = rng.choice(sorted(folder.iterdir()))
        rng.choice([change_bytes, change_value, change_value, change_lines])(path, rng)
        with suppress(ValueError, KeyError, AttributeError, TypeError):  # it may no longer be one that can be sealed
            seal(folder)
        verdict = verify(folder, known)
        assert all(reason.isprintable() for reason in verdict.reasons), seed
        if verdict.accepted:
            assert verdict.results is not None
            assert verdict.results.languages == expected.languages, seed
            assert verdict.results.configs == expected.configs, seed
        outcomes["accepted" if verdict.accepted else "refused"] += 1
        shutil.rmtree(folder)
    print(outcomes)
    assert outcomes["refused"] > outcomes["accepted"]
