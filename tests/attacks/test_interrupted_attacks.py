"""What an interrupted attack left, damaged: its clips are attacked again, and nothing damaged is published."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

pytest.importorskip("torch")

from support.fuzzing import change_file, run_command, tries
from support.tone_configs import one_thread, write_clean  # noqa: F401
from support.tones import clip_of

from speech_robust_bench.attacks import export as exporting
from speech_robust_bench.builders.manifests import read_manifest
from speech_robust_bench.builders.row_generator import digest_path
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.files import file_digest, write_atomically

COMMAND = "attack kenansville en-tones_clean --severity 1 --data {here} --out {here} --batch-size 2 --quiet"


def words(here: Path) -> list[str]:
    return [word.format(here=here) for word in COMMAND.split()]


@pytest.fixture(scope="module")
def whole_and_half(tmp_path_factory) -> tuple[Path, Path]:
    """A folder with the finished config, and one in which all of its parts are written and nothing is finished."""
    whole, half = (tmp_path_factory.mktemp("tones") / name for name in ("whole", "half"))
    for folder in (whole, half):
        clips = [clip_of(seed) for seed in range(6)]
        write_clean(folder, "en-tones_clean", [(clip.id, clip.text, clip.samples) for clip in clips])
    assert main(words(whole)) == 0

    def stop(*_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exporting._Export, "finish", stop)
        assert main(words(half)) == 130
    assert len(list(half.glob(".attacks/*/part-*.parquet"))) == 3
    return whole, half


def config_of(folder: Path) -> Path:
    (place,) = folder.glob("en-tones_kenansville*")
    return place


def test_nothing_stays_when_the_config_is_whole(whole_and_half):
    whole, _ = whole_and_half
    assert not (whole / ".attacks").exists()
    names = sorted(path.name for path in config_of(whole).iterdir())
    assert names == ["_manifest.json", "test-00000-of-00001.parquet"]


def test_a_changed_part_is_attacked_again(whole_and_half, tmp_path, capsys):
    whole, half = whole_and_half
    wanted = read_manifest(config_of(whole))
    for seed in range(tries(8)):
        rng = random.Random(seed)
        here = shutil.copytree(half, tmp_path / str(seed))
        part = rng.choice(sorted(here.glob(".attacks/*/part-*.parquet")))
        what = change_file(part, rng) if seed % 4 else "removed"
        if not seed % 4:
            part.unlink()
        sealed = bool(seed % 2)
        if sealed:  # damaged before the hash was taken: what can be seen of it is seen
            write_atomically(digest_path(part), file_digest(part))
        code = run_command(words(here), f"seed {seed}: {what}", capsys)
        if not sealed:
            assert code == 0
            assert read_manifest(config_of(here)).content_sha256 == wanted.content_sha256
        if code == 0:
            assert read_manifest(config_of(here)).rows == 6
            assert not (here / ".attacks").exists()
        shutil.rmtree(here)


def test_a_part_that_is_made_again_overwrites_no_other(whole_and_half, tmp_path):
    whole, half = whole_and_half
    here = shutil.copytree(half, tmp_path / "here")
    first, *_ = sorted(here.glob(".attacks/*/part-*.parquet"))
    first.write_bytes(b"PAR1")
    assert main(words(here)) == 0
    assert (read_manifest(config_of(here)).content_sha256) == read_manifest(config_of(whole)).content_sha256


def test_two_commands_do_not_make_the_same_config_at_once(whole_and_half, tmp_path, capsys):
    from speech_robust_bench.core.files import locked

    here = shutil.copytree(whole_and_half[1], tmp_path / "here")
    (partial,) = here.glob(".attacks/*")
    with locked(partial.with_name(f"{partial.name}.lock"), ""):
        assert main(words(here)) == 2
    assert "another command is making it" in capsys.readouterr().err
