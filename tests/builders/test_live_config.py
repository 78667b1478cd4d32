"""`srb run --corpus`: without building, the predictions and hashes of a run on what was built."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from support.run_folders import run_json, without_time

from speech_robust_bench.builders.live_config import KeptClips, LiveConfigs
from speech_robust_bench.builders.plan import CheckedClip
from speech_robust_bench.cli.main import main

DEMO = {("en", "demo"): None}
CONFIGS = ["en-demo_clean", "en-demo_noise_sev3", "en-demo_tempo_up_sev4", "en-demo_silence"]
COUNT = "python:test_live_config:level"


def level(clips, rate, language):
    """A recogniser for this test: a word for every tenth of a second, and how loud the clip is."""
    return [f"{'a ' * (10 * len(clip) // rate)} {abs(clip).sum():.3f}" for clip in clips]


def run(out: Path, *words: str) -> int:
    return main(["run", "--model", COUNT, "--out", str(out), "--quiet", *words])


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "srb"
    assert main(["build", *CONFIGS, "--limit", "5", "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def on_built_data(built, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("runs")
    assert run(out, "--data", str(built)) == 0
    return out / "test_live_config-level"


def test_the_same_predictions_and_hashes_and_no_audio_on_disk(on_built_data, tmp_path):
    assert run(tmp_path, *CONFIGS, "--corpus", "en-demo", "--limit", "5") == 0
    folder = tmp_path / on_built_data.name
    assert {path.suffix for path in tmp_path.rglob("*") if path.is_file()} <= {".jsonl", ".json", ""}
    for config in CONFIGS:
        assert without_time(folder / f"{config}.jsonl") == without_time(on_built_data / f"{config}.jsonl")
    timing = ("seconds", "rtf", "rtf_quantiles", "sha256")
    entries = [
        {c: {k: v for k, v in entry.items() if k not in timing} for c, entry in run_json(one)["configs"].items()}
        for one in (folder, on_built_data)
    ]
    assert entries[0] == entries[1]
    assert all(entry["content_sha256"] for entry in entries[0].values())


def test_rows_and_samples_are_those_of_the_built_config(built):
    from speech_robust_bench.builders.config_sources import open_data

    source = LiveConfigs(DEMO, limit=5, workers=1)
    try:
        for name in CONFIGS:
            stored, made = open_data(str(built)).config(name), source.config(name)
            samples = {row.id: window.decode(row) for window in stored.windows(set(range(5))) for row in window.rows}
            rows = {row.id: row for row in stored.rows}
            for window in made.windows(set(range(5))):
                for row in window.rows:
                    assert row == rows[row.id]
                    assert (window.decode(row) == samples.pop(row.id)).all()
            assert not samples
            ids = {stored.rows[2].id}
            assert made.stored_audio(ids) == stored.stored_audio(ids)
    finally:
        source.close()


PROGRAM = """
import sys
from speech_robust_bench.cli.main import main
sys.exit(main(["run", "--model", "python:test_live_config:mortal?batch_size=1", "--out", sys.argv[1], "--quiet",
               "en-demo_clean", "en-demo_noise_sev3", "--corpus", "en-demo", "--limit", "5"]))
"""


def mortal(clips, rate, language):
    """As `level`, but the eighth time it takes the whole process with it."""
    notes = Path(os.environ["NOTES"])
    with notes.open("a") as file:
        file.write("asked\n")
    if notes.read_text().count("asked") == 8:
        os.kill(os.getpid(), signal.SIGKILL)
    return level(clips, rate, language)


def test_killed_midway_it_goes_on_with_the_same_hash(on_built_data, tmp_path):
    def start() -> subprocess.CompletedProcess:
        paths = os.pathsep.join([*map(str, Path(__file__).parents[:2]), os.environ.get("PYTHONPATH", "")])
        known = {**os.environ, "NOTES": str(tmp_path / "notes"), "PYTHONPATH": paths}
        command = [sys.executable, "-c", PROGRAM, str(tmp_path / "runs")]
        return subprocess.run(command, env=known, capture_output=True, text=True, timeout=300, check=False)

    assert start().returncode == -signal.SIGKILL
    folder = tmp_path / "runs" / "test_live_config-mortal"
    assert len((folder / "en-demo_noise_sev3.jsonl.part").read_text().splitlines()) == 2
    again = start()
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "notes").read_text().count("asked") == 11  # each clip once, and once more the one of the kill
    for config in CONFIGS[:2]:
        assert without_time(folder / f"{config}.jsonl") == without_time(on_built_data / f"{config}.jsonl")
        wanted = run_json(on_built_data)["configs"][config]["content_sha256"]
        assert run_json(folder)["configs"][config]["content_sha256"] == wanted


def test_other_noises_are_other_data(tmp_path, capsys):
    import numpy as np
    import soundfile

    noises = tmp_path / "noises"
    noises.mkdir()
    soundfile.write(noises / "a.wav", np.random.Generator(np.random.PCG64(0)).normal(0, 0.1, 16000), 16000)
    words = ["en-demo_noise_sev3", "--corpus", "en-demo", "--limit", "2"]
    assert run(tmp_path / "runs", *words) == 0
    assert run(tmp_path / "runs", *words) == 0  # nothing to do
    assert run(tmp_path / "runs", *words, "--noise-dir", str(noises)) == 2
    assert "made from other data" in capsys.readouterr().err


def test_a_corpus_with_a_broken_clip_stops_or_goes_on_without_it(tmp_path, capsys):
    import soundfile

    corpus = tmp_path / "mine"
    corpus.mkdir()
    for name in ("good", "bad"):
        soundfile.write(corpus / f"{name}.wav", [0.0] * 8000, 16000)
        (corpus / f"{name}.txt").write_text("hello world")
    (corpus / "bad.wav").write_bytes(b"no audio")
    words = ["en-mine_gain_sev1", "--corpus", f"en-mine={corpus}"]
    assert run(tmp_path / "runs", *words) == 2
    said = capsys.readouterr().err
    assert "bad.wav" in said
    assert "--on-error skip" in said
    assert run(tmp_path / "runs", *words, "--on-error", "skip") == 0
    entry = run_json(next((tmp_path / "runs").iterdir()))["configs"]["en-mine_gain_sev1"]
    assert (entry["rows"], entry["of"]) == (1, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["en-demo_clean", "--corpus", "en-demo", "--data", "srb"], "either data"),
        (["en-demo_nosie_sev3", "--corpus", "en-demo"], "did you mean noise"),
        (["en_clean", "--corpus", "en-demo"], "no data for LibriSpeech"),
        (["en_clean", "--corpus", "en"], "write LANGUAGE=PATH"),
        (["en-demo_pgd_sev1", "--corpus", "en-demo"], "srb attack"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(tmp_path, capsys, words, said):
    assert run(tmp_path, *words) == 2
    assert said in capsys.readouterr().err


class InlinePool:
    """Perturbs in this process when a result is asked for, and counts what is under way."""

    def __init__(self):
        self.under_way, self.most = 0, 0

    def submit(self, work, *arguments, worker):
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        pool = self

        class Future:
            def result(self):
                pool.under_way -= 1
                return work(*arguments)

            def cancel(self):
                pool.under_way -= 1

        return Future()

    def close(self):
        pass


def test_what_is_in_memory_is_bounded_whatever_the_corpus(monkeypatch):
    monkeypatch.setattr("speech_robust_bench.builders.live_config.CLIPS_AT_A_TIME", 4)
    monkeypatch.setattr("speech_robust_bench.builders.live_config.SECONDS_AT_A_TIME", 12.0)
    source = LiveConfigs(DEMO, workers=1)
    first, second = source.configs(["en-demo_clean", "en-demo_gain_sev1"])
    source.close()
    pool = source._pool = InlinePool()
    count = len(first.rows)
    sizes = []
    for window in first.windows(set(range(count))):
        sizes.append(len(window.rows))
        seconds = sum(first.rows[row.position].duration for row in window.rows)
        assert len(window.rows) <= 4
        assert seconds <= 12 or len(window.rows) == 1
    assert sum(sizes) == count > 40
    assert pool.most <= 2  # one in the worker and one that waits
    assert pool.under_way == 1  # the next config has been begun
    assert sum(len(window.rows) for window in second.windows(set(range(count)))) == count
    assert pool.under_way == 0
    lengths = [first.rows[position].duration for chunk in first.chunks(range(count)) for position in chunk]
    assert lengths == sorted(lengths, reverse=True)  # clips of like length together


def test_a_worker_decodes_a_clip_once_for_all_configs(monkeypatch):
    monkeypatch.setattr("speech_robust_bench.builders.live_config._kept", KeptClips())
    decoded = []
    load = CheckedClip.load
    monkeypatch.setattr(CheckedClip, "load", lambda clip: decoded.append(clip.utterance.id) or load(clip))
    source = LiveConfigs(DEMO, limit=3, workers=1)
    configs = source.configs(["en-demo_clean", "en-demo_gain_sev1"])
    source.close()
    source._pool = InlinePool()
    for config in configs:
        assert sum(len(window.rows) for window in config.windows({0, 1, 2})) == 3
    assert sorted(decoded) == sorted(row.id for row in configs[0].rows)


def test_workers_share_what_they_may_keep(monkeypatch):
    monkeypatch.setattr("speech_robust_bench.builders.live_config._memory_bytes", lambda: 2**30)
    assert LiveConfigs(DEMO, workers=2).kept_bytes == 2**26
    monkeypatch.setattr("speech_robust_bench.builders.live_config._memory_bytes", lambda: 2**40)
    assert LiveConfigs(DEMO, workers=2).kept_bytes == 2**29


def test_a_script_without_a_main_guard_is_run_once(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "print('started')\n"
        "from speech_robust_bench.builders.live_config import LiveConfigs\n"
        "source = LiveConfigs({('en', 'demo'): None}, limit=2, workers=1)\n"
        "print(len(source.config('en-demo_clean').rows), 'rows')\n"
        "source.close()\n"
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout.split("\n") == ["started", "2 rows", ""], done.stderr
