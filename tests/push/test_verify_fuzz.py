"""Mutated submissions, sealed again as a cheat would: each is refused in one line or scored as the honest one.

`SRB_FUZZ=1000` tries that many instead of the few that a test run can afford.
"""

from __future__ import annotations

import json
import os
import random
import shutil
from contextlib import suppress

import pytest
from built_data import make_built
from fake_runs import make_run
from test_verify_hostile import seal

from srb.push import expected_rows, submission
from srb.push.verify import verify

TRIES = int(os.environ.get("SRB_FUZZ", "40"))
ODD = [None, True, -1, 0, 1e308, 2**60, "", "x" * 3000, "\ud800", "\x1b[31m", [], {}, [[]], {"": None}, "1", 0.5]


@pytest.fixture(scope="module")
def honest(tmp_path_factory):
    base = tmp_path_factory.mktemp("fuzz")
    data = make_built(base / "srb", ["en_clean", "en_noise_sev3"], clips=4)
    folder = submission.make(make_run(base / "run", data, "m"), base / "sent", {"owner": "acme"})
    return folder, expected_rows.load(str(data))


def change_bytes(path, rng):
    data = bytearray(path.read_bytes())
    for _ in range(rng.randint(1, 4)):
        place = rng.randrange(len(data) + 1)
        data[place : place + rng.randint(0, 3)] = rng.randbytes(rng.randint(0, 3))
    path.write_bytes(bytes(data))


def change_value(path, rng):
    """Replace, drop or add something somewhere in the file's JSON."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    index = rng.randrange(len(lines))
    content = json.loads(lines[index])
    here = content
    while True:
        keys = list(here) if isinstance(here, dict) else list(range(len(here)))
        key = rng.choice(keys)
        if isinstance(here[key], dict | list) and here[key] and rng.random() < 0.8:
            here = here[key]
            continue
        break
    if rng.random() < 0.3:
        del here[key]
    else:
        here[key] = rng.choice(ODD)
    lines[index] = json.dumps(content)
    path.write_text("\n".join(lines) + "\n")


def change_lines(path, rng):
    lines = path.read_text().splitlines(keepends=True)
    rng.choice(
        [lambda: rng.shuffle(lines), lambda: lines.append(lines[0]), lambda: lines.pop(rng.randrange(len(lines)))]
    )()
    path.write_text("".join(lines))


def test_no_mutant_crashes_the_checker_or_changes_a_score(honest, tmp_path):
    original, known = honest
    expected = verify(original, known).results
    outcomes = {"refused": 0, "accepted": 0}
    for seed in range(TRIES):
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
            assert verdict.results["languages"] == expected["languages"], seed
            assert verdict.results["configs"] == expected["configs"], seed
        outcomes["accepted" if verdict.accepted else "refused"] += 1
        shutil.rmtree(folder)
    print(outcomes)
    assert outcomes["refused"] > outcomes["accepted"]
