"""What an interrupted build left, changed at random: it is made anew, or one line says so and the next build does."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path

import pytest
import soundfile
from support.fuzzing import change_file, run_command, tries
from support.speech import speech_like

from speech_robust_bench.builders import build as builder
from speech_robust_bench.builders.row_generator import digest_path
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.files import file_digest, write_atomically

CONFIGS = ["en-mine_clean", "en-mine_gain_sev1"]


def words(here: Path) -> list[str]:
    corpus = here.parent / "mine" / "list.csv"
    return ["build", *CONFIGS, "--corpus", f"en-mine={corpus}", "--workers", "1", "--out", str(here)]


def contents(here: Path) -> list[str]:
    return [json.loads((here / config / "_manifest.json").read_text())["content_sha256"] for config in CONFIGS]


@pytest.fixture(scope="module")
def whole_and_half(tmp_path_factory) -> tuple[Path, Path]:
    """A finished build, and one whose shards are written and nothing is finished."""
    place = tmp_path_factory.mktemp("fuzz")
    (place / "mine").mkdir()
    for number in range(3):
        soundfile.write(place / "mine" / f"{number}.wav", speech_like(0.3, number), RATE)
    (place / "mine" / "list.csv").write_text("audio,text\n0.wav,one\n1.wav,two\n2.wav,three\n")
    assert main(words(place / "whole")) == 0

    def stop(*_, **__):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(builder, "_finish", stop)
        assert main(words(place / "half")) == 130
    assert len(list(place.glob("half/.partial/*/*.parquet"))) == 2
    return place / "whole", place / "half"


@pytest.mark.parametrize("sealed", [False, True])
def test_a_changed_file_of_an_interrupted_build(whole_and_half, capsys, sealed):
    whole, half = whole_and_half
    kind = "*.parquet" if sealed else "*"
    for seed in range(tries(12)):
        rng = random.Random(seed)
        here = shutil.copytree(half, half.with_name(f"here-{sealed}-{seed}"))
        path = rng.choice(sorted(path for path in here.glob(f".partial/*/{kind}") if path.is_file()))
        what = f"seed {seed}: {change_file(path, rng)}"
        if sealed:  # damaged before its hash was taken
            write_atomically(digest_path(path), file_digest(path))
        code = run_command(words(here), what, capsys)
        if not sealed:
            assert code == 0
        if code:
            assert run_command(words(here), what, capsys) == 0  # the second one makes it anew
        if code or not sealed:
            assert contents(here) == contents(whole)
            assert not (here / ".partial").exists()
        shutil.rmtree(here)
