"""A checkpoint of a probe that was changed: training goes on or says one line, and nothing in it is ever run."""

from __future__ import annotations

import os
import pickle
import random
import shutil
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")  # whose version a probe notes
import soundfile
from support.fuzzing import change_bytes, change_inside, run_command, tries

from speech_robust_bench.cli.main import main
from speech_robust_bench.extensions.probe.training import Training

COMMAND = (
    "probe train --upstream fbank --corpus en-mine={place}/mine --out {here} --head linear --units 4 --steps 4 "
    "--save-every 2 --eval-every 2 --batch-size 2 --quiet"
)


def words(here: Path) -> list[str]:
    return [word.format(here=here, place=here.parent) for word in COMMAND.split()]


@pytest.fixture(scope="module")
def half(tmp_path_factory) -> Path:
    """A training that was stopped after half of its steps."""
    place = tmp_path_factory.mktemp("probe")
    (place / "mine").mkdir()
    rng = np.random.default_rng(0)
    for number in range(40):
        soundfile.write(place / "mine" / f"{number:02d}.wav", rng.normal(0, 0.1, 4000), 16_000)
        (place / "mine" / f"{number:02d}.txt").write_text("ab")
    save = Training.save

    def save_and_stop(self):
        save(self)
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Training, "save", save_and_stop)
        assert main(words(place / "half")) == 130
    assert (place / "half" / "checkpoint.pt").is_file()
    return place / "half"


def change_checkpoint(path: Path, rng: random.Random) -> None:
    state = torch.load(path, weights_only=True)
    if rng.random() < 0.3:
        tensors = state["head"] if rng.random() < 0.5 else state["optimiser"]["state"][0]
        tensors[rng.choice(sorted(tensors))] = torch.zeros(3)
    else:
        change_inside(state, rng)
    torch.save(state, path)


def test_a_changed_checkpoint_is_one_line_or_success(half, capsys):
    for seed in range(tries(10)):
        rng = random.Random(seed)
        here = shutil.copytree(half, half.with_name(f"here-{seed}"))
        if seed:
            rng.choice([change_bytes, change_checkpoint, change_checkpoint])(here / "checkpoint.pt", rng)
        code = run_command(words(here), f"seed {seed}", capsys)
        assert seed or code == 0
        shutil.rmtree(here)


class Hostile:
    def __init__(self, path: str) -> None:
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_code_in_a_checkpoint_is_not_run(half, tmp_path, how, capsys):
    here = shutil.copytree(half, half.with_name(f"hostile-{how}"))
    state = {**torch.load(here / "checkpoint.pt", weights_only=True), "evaluations": Hostile(str(tmp_path / "run"))}
    with (here / "checkpoint.pt").open("wb") as file:
        torch.save(state, file) if how == "torch" else pickle.dump(state, file)
    assert run_command(words(here), how, capsys) == 2
    assert not (tmp_path / "run").exists()
