"""`srb build`: what is written can be loaded, is the same however it was built, and survives being killed."""

import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import soundfile
from support.speech import speech_like

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.corpora import Utterance
from speech_robust_bench.builders.manifests import manifests
from speech_robust_bench.builders.row_generator import SCHEMA
from speech_robust_bench.builders.scenarios import perturbations
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.files import locked_folder
from speech_robust_bench.core.rows import content_digest, row_digest

CONFIGS = ["en-demo_clean", "en-demo_noise_sev3", "en-demo_echo_sev1", "en-demo_silence", "en-demo_crosstalk_sev4"]


def build(out: Path, *words) -> int:
    return main(["build", "--out", str(out), *map(str, words)])


def rows(out: Path, config: str) -> list[dict]:
    return [row for path in sorted((out / config).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def hashes(out: Path) -> dict[str, str]:
    return {name: manifest.content_sha256 for name, manifest in manifests(out).items()}


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("build") / "srb"
    assert build(out, *CONFIGS, "--limit", 6) == 0
    return out


@pytest.fixture
def folder(tmp_path) -> Path:
    """A corpus of the user's own: four good clips."""
    corpus = tmp_path / "mine"
    corpus.mkdir()
    for number in range(4):
        soundfile.write(corpus / f"{number}.flac", speech_like(1 + number / 2, number), RATE)
        (corpus / f"{number}.txt").write_text(f"sentence number {number}")
    return corpus


def test_rows_hold_what_the_contract_says(built):
    row = rows(built, "en-demo_noise_sev3")[0]
    clean = rows(built, "en-demo_clean")[0]
    assert list(row) == SCHEMA.names
    assert row["id"] == clean["id"]
    assert (row["source"], row["scenario"], row["severity"]) == ("en-demo_clean", "noise", 3)
    assert clean["source"] is None
    assert row["snr_db"] == pytest.approx(10, abs=0.05)
    assert json.loads(row["parameters"])["noise"].startswith("builtin/")
    samples, rate = soundfile.read(io.BytesIO(row["audio"]["bytes"]), dtype="int16")
    assert rate == RATE
    assert row["duration"] == len(samples) / RATE
    assert row["sha256"] == row_digest(row["id"], row["text"], samples)
    assert rows(built, "en-demo_silence")[0]["text"] == ""


def test_the_manifest_proves_the_content(built):
    for name, manifest in manifests(built).items():
        assert manifest.content_sha256 == content_digest(row["sha256"] for row in rows(built, name))
        assert manifest.rows == 6


def test_load_dataset_reads_every_config_back(built, monkeypatch, tmp_path):
    import datasets

    monkeypatch.chdir(built.parent)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    for config in CONFIGS:
        loaded = datasets.load_dataset("srb", config, split="test").cast_column("audio", datasets.Audio(decode=False))
        for row, ours in zip(loaded, rows(built, config), strict=True):
            assert row == ours
    streamed = datasets.load_dataset("srb", CONFIGS[1], split="test", streaming=True)
    streamed = streamed.cast_column("audio", datasets.Audio(decode=False))
    assert [row["id"] for row in streamed] == [row["id"] for row in rows(built, CONFIGS[1])]


def test_a_build_says_that_its_noises_are_built_in(tmp_path, capsys):
    assert build(tmp_path / "srb", "en-demo_noise_sev1", "--limit", 1) == 0
    assert "built-in bank, not the paper's: --noise-dir" in capsys.readouterr().err
    assert build(tmp_path / "srb", "en-demo_gain_sev1", "--limit", 1) == 0
    assert "built-in" not in capsys.readouterr().err


@pytest.mark.parametrize("severity", [3, pytest.param(None, marks=pytest.mark.long)])
def test_simulated_configs_of_the_demo_corpus_load(tmp_path, monkeypatch, severity):
    import datasets

    out = tmp_path / "srb"
    assert build(out, "en-demo_clean", f"en-demo_*_sev{severity or '*'}", "--workers", 2, "--limit", 1) == 0
    made = hashes(out)
    levels = [level for row in perturbations() for level in row.levels if level and severity in (None, level)]
    assert len(made) == 1 + len(levels)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    for config, content in made.items():
        [row] = datasets.load_dataset(str(out), config, split="test").cast_column("audio", datasets.Audio(decode=False))
        pcm, _ = soundfile.read(io.BytesIO(row["audio"]["bytes"]), dtype="int16")
        assert content_digest([row_digest(row["id"], row["text"], pcm)]) == content


@pytest.mark.parametrize("how", [["--workers", 2], ["--engine", "ray"]], ids=["processes", "ray"])
def test_the_same_bytes_however_it_is_built(built, tmp_path, how):
    if "ray" in how:
        pytest.importorskip("ray")
    assert build(tmp_path / "srb", *reversed(CONFIGS), "--limit", 6, *how) == 0
    assert hashes(tmp_path / "srb") == hashes(built)
    ours, theirs = (
        {p.relative_to(out): p.read_bytes() for p in out.glob("*/*.parquet")} for out in (tmp_path / "srb", built)
    )
    assert ours == theirs


def test_one_config_alone_has_the_same_bytes(built, tmp_path):
    build(tmp_path / "srb", CONFIGS[1], "--limit", 6)
    assert hashes(tmp_path / "srb")[CONFIGS[1]] == hashes(built)[CONFIGS[1]]


def test_a_second_run_builds_nothing(built, capsys):
    before = {path: path.stat().st_mtime_ns for path in built.glob("*/*.parquet")}
    assert build(built, *CONFIGS, "--limit", 6) == 0
    assert "0 configs built, 5 already there" in capsys.readouterr().out
    assert before == {path: path.stat().st_mtime_ns for path in built.glob("*/*.parquet")}


def test_other_settings_are_refused_until_overwrite(tmp_path, folder, capsys):
    corpus = ["--corpus", f"en-mine={folder}"]
    assert build(tmp_path / "srb", "en-mine_clean", "--limit", 2, *corpus) == 0
    assert build(tmp_path / "srb", "en-mine_clean", "--limit", 3, *corpus) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert len(rows(tmp_path / "srb", "en-mine_clean")) == 2
    assert build(tmp_path / "srb", "en-mine_clean", "--limit", 3, *corpus, "--overwrite") == 0
    assert len(rows(tmp_path / "srb", "en-mine_clean")) == 3


def recorded(seed: int) -> bytes:
    buffer = io.BytesIO()
    soundfile.write(buffer, speech_like(1, seed), RATE, format="WAV")
    return buffer.getvalue()


def is_refused_then_made_anew(out: Path, words: list) -> bool:
    """Whether a build says that something changed since the last one; it is made anew in any case."""
    refused = build(out, *words) == 2
    assert build(out, *words, "--overwrite") == 0
    return refused


def test_a_change_of_anything_that_goes_into_a_config_is_noticed(tmp_path, folder, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bank = tmp_path / "bank"
    bank.mkdir()
    (bank / "a.wav").write_bytes(recorded(1))
    (tmp_path / "cut.csv").write_text("audio,text,start,end\nmine/3.flac,words,0.5,1.5\n")
    words = ["en-mine_noise_sev1", "en-cut_clean", "--noise-dir", bank]
    words += ["--corpus", f"en-mine={folder}", "--corpus", "en-cut=cut.csv"]
    out = tmp_path / "srb"
    seen = set()

    def is_new() -> bool:
        refused = is_refused_then_made_anew(out, words)
        seen.add(str(hashes(out)))
        return refused

    assert not is_new()
    words[-1] = f"en-cut={tmp_path / 'cut.csv'}"  # the same file
    assert not is_new()
    (bank / "b.wav").write_bytes(recorded(2))
    assert is_new()
    soundfile.write(folder / "3.flac", speech_like(2.5, 9), RATE)
    assert is_new()
    assert len(seen) == 3


def test_a_change_of_a_scenario_of_ones_own_is_noticed(tmp_path, folder):
    pytest.importorskip("audiomentations", reason="audiomentations is not installed")
    own, out = tmp_path / "own.yaml", tmp_path / "srb"
    row = "{name: crush, transform: BitCrush, severities: [8], parameters: {min_bit_depth: 4, max_bit_depth: %d}}"
    words = ["en-mine_crush", "--scenario-file", own, "--corpus", f"en-mine={folder}"]
    own.write_text(f"scenarios: [{row % 8}]")
    assert not is_refused_then_made_anew(out, words)
    before = hashes(out)
    own.write_text(f"scenarios: [{row % 6}]")
    assert is_refused_then_made_anew(out, words)
    assert hashes(out) != before


def spoil(folder: Path) -> set[str]:
    """Every way in which a corpus can be bad; the words that the report must have."""
    (folder / "alone.txt").write_text("a transcript without audio")
    soundfile.write(folder / "mute.flac", speech_like(1), RATE)
    soundfile.write(folder / "void.flac", np.zeros(0), RATE)
    (folder / "void.txt").write_text("a clip of no length")
    soundfile.write(folder / "blank.flac", speech_like(1), RATE)
    (folder / "blank.txt").write_text("  ")
    whole = (folder / "3.flac").read_bytes()
    (folder / "cut.flac").write_bytes(whole[: len(whole) // 2])
    (folder / "cut.txt").write_text("a corrupt file")
    return {"alone", "mute", "void", "blank", "cut"}


def test_a_bad_corpus_is_reported_whole_and_nothing_is_built(tmp_path, folder, capsys):
    expected = spoil(folder)
    assert build(tmp_path / "srb", "en-mine_echo_sev1", "--corpus", f"en-mine={folder}") == 2
    said = capsys.readouterr().err
    assert all(any(name in line for line in said.splitlines()) for name in expected), said
    assert f"{len(expected)} of the clips cannot be used" in said
    assert not list((tmp_path / "srb").glob("*/*.parquet"))


def test_a_corpus_without_one_good_clip_is_reported_too(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "bad.flac").write_text("no audio")
    (tmp_path / "mine" / "bad.txt").write_text("words")
    words = ["en-mine_clean", "--corpus", f"en-mine={tmp_path / 'mine'}", "--on-error", "skip"]
    assert build(tmp_path / "srb", *words) == 2
    named, verdict = capsys.readouterr().err.splitlines()
    assert "bad.flac: cannot be decoded" in named
    assert "no clips that can be used" in verdict


def test_bad_clips_can_be_left_out_and_are_counted(tmp_path, folder, capsys):
    expected = spoil(folder)
    corpus = ["--corpus", f"en-mine={folder}", "--on-error", "skip"]
    assert build(tmp_path / "srb", "en-mine_echo_sev1", *corpus) == 0
    assert len(rows(tmp_path / "srb", "en-mine_echo_sev1")) == 4
    assert len(manifests(tmp_path / "srb")["en-mine_echo_sev1"].skipped) == len(expected)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["en_clean", "en_noise_sev3"], "--corpus en="),
        (["en-demo_nois_sev3"], "did you mean noise"),
        (["en-demo_noise"], "needs a severity"),
        (["en-demo_noise_sev9"], "1 to 4"),
        (["en-demo_zzz*"], "no config matches"),
        (["en-demo_pgd_sev1-whisper-tiny.en"], "srb attack pgd"),
        (["fr-demo_clean"], "no language 'fr'"),
        ([], "say which configs"),
        (["en-demo_clean", "--corpus", "english"], "write LANGUAGE=PATH"),
        (["en-demo_clean", "--corpus", "en-my_corp=x"], "'my_corp' has '_'"),
        (["en-mine_clean", "--corpus", "en-mine=/nowhere"], "/nowhere"),
        (["en-demo_clean", "--workers", "0"], "1 or more"),
        (["en-demo_echo_sev1-tiny"], "only adversarial configs"),
        (["en-mine_clean", "--corpus", "en-mine=a", "--corpus", "en-mine=b"], "given twice"),
    ],
)
def test_mistakes_get_one_line(tmp_path, capsys, words, complaint):
    assert build(tmp_path / "srb", *words) == 2
    said = capsys.readouterr().err.strip()
    assert complaint in said
    assert "\n" not in said


def test_a_folder_that_cannot_be_written_is_named(tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    assert build(tmp_path / "file" / "srb", "en-demo_clean", "--limit", 1) == 2
    assert capsys.readouterr().err == f"srb build: {tmp_path / 'file' / 'srb'}: cannot be used (Not a directory)\n"


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_disk_with_no_room_leaves_nothing_half_made(tmp_path, workers):
    """A limit on the size of files stands in for the full disk: the write fails in the middle, in the same way."""
    program = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
        "if __name__ == '__main__': from speech_robust_bench.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    (tmp_path / "limited.py").write_text(program)
    words = ["build", "en-demo_clean", "en-demo_echo_sev1", "--limit", "8", "--workers", workers, "--out", "srb"]
    run = subprocess.run([sys.executable, "limited.py", *words], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 2
    assert "cannot be written" in run.stderr.splitlines()[-1]  # a slow machine has lines of progress before it
    assert {path.name for path in (tmp_path / "srb").iterdir()} == {".partial", ".srb.lock"}
    assert not [path for path in (tmp_path / "srb").rglob("*") if path.suffix in (".parquet", ".srb-part")]


def test_two_builds_into_one_folder_do_not_meet(tmp_path, capsys):
    with locked_folder(tmp_path / "srb"):
        assert build(tmp_path / "srb", "en-demo_clean", "--limit", 1) == 2
    assert "another command is writing to it" in capsys.readouterr().err
    assert build(tmp_path / "srb", "en-demo_clean", "--limit", 1) == 0


def test_what_a_killed_worker_left_is_cleared_away(tmp_path, folder):
    words = ["en-mine_clean", "--corpus", f"en-mine={folder}"]
    assert build(tmp_path / "srb", *words) == 0
    left = tmp_path / "srb" / "en-mine_clean" / ".test-00000-of-00001.parquet.123.srb-part"
    left.touch()
    assert build(tmp_path / "srb", *words) == 0
    assert not left.exists()


def test_a_build_that_was_cut_off_makes_only_what_is_missing(tmp_path, folder, monkeypatch):
    from speech_robust_bench.builders.row_generator import write_shard

    monkeypatch.setattr("speech_robust_bench.builders.row_generator.ROWS_PER_SHARD", 1)
    words = ["en-mine_clean", "en-mine_echo_sev1", "--corpus", f"en-mine={folder}"]
    written: list[str] = []

    def work(shard, tick, most):
        if len(written) == most:
            raise KeyboardInterrupt
        write_shard(shard, tick)
        written.append(shard.clips[0].utterance.id)

    monkeypatch.setattr("speech_robust_bench.builders.build.write_shard", lambda shard, tick: work(shard, tick, 3))
    assert build(tmp_path / "srb", *words) == 130
    assert not manifests(tmp_path / "srb")
    monkeypatch.setattr("speech_robust_bench.builders.build.write_shard", lambda shard, tick: work(shard, tick, 9))
    assert build(tmp_path / "srb", *words) == 0
    assert written == ["0", "1", "2", "3"]  # the fourth was in flight
    assert [row["id"] for row in rows(tmp_path / "srb", "en-mine_echo_sev1")] == written


def test_row_groups_hold_a_hundred_clips_or_a_thousand_seconds(monkeypatch):
    from speech_robust_bench.builders.plan import CheckedClip
    from speech_robust_bench.builders.row_generator import batches

    monkeypatch.setattr(CheckedClip, "load", lambda clip: np.zeros(int(clip.utterance.id), np.float32))
    lengths = [RATE] * 250 + [300 * RATE] * 7 + [2000 * RATE]
    utterances = [Utterance(str(length), None, "", "en") for length in lengths]
    groups = list(batches(CheckedClip(utterance, "") for utterance in utterances))
    assert [utterance for group in groups for utterance, _ in group] == utterances
    assert [len(group) for group in groups] == [100, 100, 53, 3, 1, 1]


def test_a_damaged_manifest_is_named(tmp_path, folder, capsys):
    words = ["en-mine_clean", "--corpus", f"en-mine={folder}"]
    assert build(tmp_path / "srb", *words) == 0
    manifest = tmp_path / "srb" / "en-mine_clean" / "_manifest.json"
    manifest.write_text(manifest.read_text()[:100])
    assert build(tmp_path / "srb", *words) == 2
    assert f"{manifest}: is damaged; remove" in capsys.readouterr().err


def test_a_clip_that_changes_between_two_builds_is_read_anew(tmp_path, folder):
    words = ["en-mine_clean", "--corpus", f"en-mine={folder}", "--overwrite"]
    assert build(tmp_path / "srb", *words) == 0
    before = hashes(tmp_path / "srb")
    soundfile.write(folder / "0.flac", speech_like(1, 9), RATE)
    assert build(tmp_path / "srb", *words) == 0
    assert hashes(tmp_path / "srb") != before


def test_the_bare_name_works_anywhere_once_it_is_cached(built, tmp_path):
    environment = {**os.environ, "HF_HOME": str(tmp_path / "home"), "HF_HUB_OFFLINE": "1"}
    command = [sys.executable, "-m", "speech_robust_bench", "build", CONFIGS[1], "--limit", "6", "--to-cache"]
    subprocess.run([*command, "--out", str(built)], env=environment, check=True, capture_output=True)
    program = (
        "import datasets\n"
        f"rows = datasets.load_dataset('srb', '{CONFIGS[1]}', split='test')\n"
        "print(*rows.cast_column('audio', datasets.Audio(decode=False))['sha256'])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
    )
    assert run.stdout.split() == [row["sha256"] for row in rows(built, CONFIGS[1])]


def test_the_cache_alone_holds_what_is_built_without_a_folder(tmp_path, folder, monkeypatch, capsys):
    import datasets

    cache = tmp_path / "home"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    names = ["en-mine_clean", "en-mine_echo_sev1"]
    words = ["build", *names, "--corpus", f"en-mine={folder}", "--to-cache"]
    assert main([*words, "--limit", "3"]) == 0
    files = sorted(path for path in cache.rglob("*") if path.is_file() and path.suffix in (".parquet", ".arrow"))
    assert [path.suffix for path in files] == [".arrow", ".arrow"]  # each row is there once
    assert datasets.get_dataset_config_names("srb") == names
    (tmp_path / "elsewhere").mkdir()
    for place in (tmp_path, tmp_path / "elsewhere"):
        monkeypatch.chdir(place)
        loaded = datasets.load_dataset("srb", names[1], split="test")
        assert {Path(file["filename"]).resolve() for file in loaded.cache_files} == {files[1].resolve()}
        assert open_data("srb").config(names[1]).manifest.rows == len(loaded) == 3
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--data", "srb"]) == 0
    assert main([*words, "--limit", "3"]) == 0
    assert "0 configs built, 2 already there" in capsys.readouterr().out
    assert main([*words, "--limit", "2", "--overwrite"]) == 0
    assert len(datasets.load_dataset("srb", names[1], split="test")) == 2
    assert len(list(cache.rglob("*.arrow"))) == 2  # the edition before is gone
    for command in (["quality", "--data", "srb"], ["export", "croissant", "--data", "srb"]):
        assert main(command) == 2
        assert "is in the cache of `datasets` alone, as Arrow" in capsys.readouterr().err
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "other")
    assert main([*words, "--limit", "1"]) == 0
    assert f"before, it was to {cache / 'srb'}" in capsys.readouterr().err


def test_a_link_to_a_folder_of_ones_own_stays(tmp_path, folder, monkeypatch):
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "home")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "disk").mkdir()
    (tmp_path / "srb").symlink_to("disk")
    assert main(["build", "en-mine_clean", "--corpus", f"en-mine={folder}", "--to-cache", "--limit", "2"]) == 0
    assert (tmp_path / "srb").readlink() == Path("disk")
    assert list((tmp_path / "disk" / "en-mine_clean").glob("*.parquet"))


def test_the_cache_gives_the_edition_that_was_put_in_last(tmp_path, folder, monkeypatch):
    import datasets
    from datasets.packaged_modules.cache.cache import Cache

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    words = ["en-mine_clean", "--corpus", f"en-mine={folder}", "--overwrite", "--to-cache", "--limit"]
    for limit in (3, 2, 3):
        assert build(tmp_path / "srb", *words, limit) == 0
        cached = Cache(dataset_name="srb", config_name="en-mine_clean", version="auto", hash="auto")
        assert len(cached.as_dataset("test")) == limit


def test_the_datasets_builder_makes_the_same_rows(built, tmp_path):
    from speech_robust_bench.builders.dataset import SpeechRobustBench

    builder = SpeechRobustBench(cache_dir=str(tmp_path / "cache"), config_name=CONFIGS[1], limit=6)
    builder.download_and_prepare(str(tmp_path / "out"), file_format="parquet")
    made = [row for path in sorted((tmp_path / "out").glob("*.parquet")) for row in pq.read_table(path).to_pylist()]
    assert made == rows(built, CONFIGS[1])


def test_transcripts_are_spoken_and_pair_with_the_clean_clips(built, tmp_path):
    if not shutil.which("espeak-ng"):
        pytest.skip("espeak-ng is not installed")
    assert build(tmp_path / "srb", "en-demo_tts", "--limit", 2, "--tts", "espeak") == 0
    spoken, clean = rows(tmp_path / "srb", "en-demo_tts"), rows(built, "en-demo_clean")[:2]
    assert [row["text"] for row in spoken] == [row["text"] for row in clean]
    assert {row["source"] for row in spoken} == {"en-demo_clean"}
    assert json.loads(spoken[0]["parameters"])["engine"] == "espeak"
    manifest = json.loads((tmp_path / "srb" / "en-demo_tts" / "_manifest.json").read_text())
    assert manifest["bank"] == "espeak (text-to-speech)"
    assert manifest["stand_in"] is True
    assert spoken[0]["duration"] > 1


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.long)])
def test_killed_at_any_moment_it_goes_on_to_the_same_bytes(tmp_path, kills):
    """Kill -9 at random moments; then one run to the end."""
    out, whole = tmp_path / "killed", tmp_path / "whole"
    words = ["en-demo_[a-n]*_sev1", "--limit", "5", "--workers", "2"]
    command = [sys.executable, "-m", "speech_robust_bench", "build", *words, "--out"]
    started = time.perf_counter()
    subprocess.run([*command, str(whole)], check=True, capture_output=True)
    length = time.perf_counter() - started
    moments = random.Random(0)
    for _ in range(kills):
        process = subprocess.Popen(
            [*command, str(out)], start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(length * moments.uniform(0.3, 0.9))
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        for manifest in out.glob("*/_manifest.json"):  # what is visible is complete
            found = json.loads(manifest.read_text())
            assert all((manifest.parent / name).is_file() for name in found["files"])
        assert all((path / "_manifest.json").exists() for path in out.glob("en-demo_*"))
        assert not list(out.glob("en-demo_*/.*"))
    subprocess.run([*command, str(out)], check=True, capture_output=True)
    assert hashes(out) == hashes(whole)
    assert not (out / ".partial").exists()
    assert (out / "README.md").read_text() == (whole / "README.md").read_text()


def test_a_card_of_480_configs_loads_and_stays_small(tmp_path):
    """Each config has its files and its edition, not its features: those made a load five times as slow."""
    import yaml

    build(tmp_path / "srb", "en-demo_clean", "--limit", 1)
    card = (tmp_path / "srb" / "README.md").read_text()
    header = yaml.safe_load(card.split("---")[1])
    assert "dataset_info" not in header
    entry = json.dumps(header["configs"][0])
    assert len(entry) < 250
    header["configs"] += [json.loads(entry.replace("clean", f"scenario{number}")) for number in range(479)]
    (tmp_path / "srb" / "README.md").write_text(f"---\n{yaml.safe_dump(header)}---\n")
    program = "import datasets; print(len(datasets.load_dataset('srb', 'en-demo_clean', split='test')))"
    environment = {**os.environ, "HF_DATASETS_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    run = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=True
    )
    assert int(run.stdout) == 1
