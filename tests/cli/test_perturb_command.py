"""`srb ls` and `srb perturb`, as typed."""

import json
import subprocess
import sys

import numpy as np
import pytest
import soundfile
from support.speech import RATE

from speech_robust_bench.cli.main import main


@pytest.fixture
def wav(tmp_path, speech):
    path = tmp_path / "in.wav"
    soundfile.write(path, np.stack([speech[: 2 * RATE]] * 2, axis=1), RATE)
    return path


def fails(capsys, *words) -> str:
    """Run a command that must fail as a user's mistake does; the one line it says."""
    assert main([str(word) for word in words]) == 2
    said = capsys.readouterr().err.strip()
    assert "\n" not in said
    return said


def test_help_imports_nothing_heavy():
    program = (
        "import sys; from speech_robust_bench.cli.main import parser_of; "
        "parser_of(None).format_help(); print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "scipy", "numba", "datasets", "torch", "rich"} & set(loaded)


def test_ls_prints_every_scenario_in_80_columns(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["ls"]) == 0
    said = capsys.readouterr().out
    from speech_robust_bench.builders.scenarios import SCENARIOS

    assert all(name in said for name in SCENARIOS)
    assert max(map(len, said.splitlines())) <= 80


def test_ls_json_is_for_programs(capsys):
    main(["ls", "--json", "spatial"])
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == ["rir", "real_rir", "echo"]
    assert rows[2]["severities"] == {"1": 125, "2": 250, "3": 500, "4": 1000}


@pytest.mark.parametrize("ending", ["wav", "flac", "ogg", "mp3"])
def test_one_file_in_one_file_out(tmp_path, wav, ending, capsys):
    out = tmp_path / f"out.{ending}"
    assert main(["perturb", str(wav), str(out), "--scenario", "echo", "--severity", "3", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["parameters"] == {"delay_ms": 500}
    info = soundfile.info(out)
    assert (info.samplerate, info.channels) == (RATE, 1)
    assert info.duration == pytest.approx(2.5, abs=0.1)


@pytest.mark.parametrize("name", ["a b ü.wav", f"{'x' * 251}.wav"], ids=["unicode", "longest"])
def test_any_file_name_will_do(tmp_path, wav, name):
    assert main(["perturb", str(wav), str(tmp_path / name), "--scenario", "mulaw"]) == 0
    assert {path.name for path in tmp_path.iterdir()} == {"in.wav", name}


def test_a_file_without_samples_is_refused(tmp_path, capsys):
    soundfile.write(tmp_path / "void.wav", np.zeros(0), RATE)
    words = ["perturb", tmp_path / "void.wav", tmp_path / "out.flac", "--scenario", "mulaw"]
    assert fails(capsys, *words) == f"srb perturb: {tmp_path / 'void.wav'}: holds no samples"


def test_nothing_is_drawn_where_nobody_looks(capsys):
    from speech_robust_bench.core.progress import tasks

    with tasks() as show:
        show("working", 3)(2)
    assert capsys.readouterr().err == ""


def test_the_seed_changes_what_is_drawn_and_nothing_else_does(tmp_path, wav):
    def noisy(name, *more):
        main(["perturb", str(wav), str(tmp_path / name), "--scenario", "gaussian", "--severity", "2", *more])
        return (tmp_path / name).read_bytes()

    assert noisy("a.wav") == noisy("b.wav") != noisy("c.wav", "--seed", "1")


def test_all_writes_every_scenario_and_a_page(tmp_path, wav, capsys):
    from speech_robust_bench.builders.scenarios import perturbations

    assert main(["perturb", str(wav), "--all", str(tmp_path / "all")]) == 0
    expected = {f"{s.name}_sev{n}" if n else s.name for s in perturbations() for n in s.levels} | {"clean"}
    assert {path.stem for path in (tmp_path / "all").glob("*.flac")} == expected
    page = (tmp_path / "all" / "index.html").read_text()
    assert page.count("<audio") == page.count("data:image/png") == len(expected)
    assert "from the built-in bank (synthesised)" in page  # nobody shall take them for the paper's noises


def test_the_recording_itself_is_not_written_over(tmp_path, wav, capsys):
    assert "is the recording itself" in fails(capsys, "perturb", wav, wav, "--scenario", "mulaw")
    inside = wav.rename(tmp_path / "noise_sev1.flac")
    before = inside.read_bytes()
    assert "is the recording itself" in fails(capsys, "perturb", inside, "--all", tmp_path)
    assert inside.read_bytes() == before
    assert list(tmp_path.iterdir()) == [inside]


def test_an_interrupted_gallery_starts_over_and_says_so(tmp_path, wav, monkeypatch, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("speech_robust_bench.builders.apply.apply", interrupt)
    assert main(["perturb", str(wav), "--all", str(tmp_path / "all")]) == 130
    assert "again to start over" in capsys.readouterr().err


def test_mistakes_get_one_line(tmp_path, wav, capsys):
    out = tmp_path / "out.wav"
    assert "did you mean echo" in fails(capsys, "perturb", wav, out, "--scenario", "ecko", "--severity", 1)
    assert "1 to 4" in fails(capsys, "perturb", wav, out, "--scenario", "echo", "--severity", 7)
    assert "needs a severity" in fails(capsys, "perturb", wav, out, "--scenario", "echo")
    assert "either OUT and --scenario" in fails(capsys, "perturb", wav)
    assert "no such file" in fails(capsys, "perturb", tmp_path / "x.wav", out, "--scenario", "mulaw")
    assert "unknown ending" in fails(capsys, "perturb", wav, tmp_path / "out.xyz", "--scenario", "mulaw")
    for bad in (tmp_path / "no" / "out.wav", wav / "out.wav", tmp_path / f"{'x' * 300}.wav"):
        assert "cannot be written" in fails(capsys, "perturb", wav, bad, "--scenario", "mulaw")
    missing = tmp_path / "none"
    said = fails(capsys, "perturb", wav, out, "--scenario", "noise", "--severity", 1, "--noise-dir", missing)
    assert str(missing) in said
    assert "made by attack" in fails(capsys, "perturb", wav, out, "--scenario", "pgd", "--severity", 1)
    assert not out.exists()
    assert [path.name for path in tmp_path.iterdir()] == ["in.wav"]
