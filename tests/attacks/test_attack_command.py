"""`srb attack` from end to end on a small model: the config loads, runs and scores like all others."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch")

from support.tone_configs import one_thread, tone_data, write_clean  # noqa: F401
from support.tones import clip_of, tones

from speech_robust_bench.builders.perturb.environment import snr_db
from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import read

TESTS = Path(__file__).parents[1]
CTC, SEQ2SEQ, DEAF = (f"python:support.tones:{name}" for name in ("Ctc", "Seq2Seq", "deaf"))
PARTS = "en-tones_pgd_sev3-support.tones-Slow-*/part-*.parquet.sha256"  # of those that are whole
TWO = ["--target", "ba", "--target", "ba dc"]
FAST = ["--steps", "4", "--transcribe-every", "2", "--quiet"]


def rows_of(data: Path, config: str) -> list[dict]:
    return [row for path in sorted((data / config).glob("*.parquet")) for row in pq.read_table(path).to_pylist()]


def attack(data: Path, *words: str) -> int:
    return main(["attack", words[0], "en-tones_clean", *words[1:], "--data", str(data), "--out", str(data)])


def test_pgd_configs_load_run_and_score(tone_data, tmp_path, monkeypatch, capsys) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    assert attack(tone_data, "pgd", "--model", CTC, "--severity", "2", "4", "--name", "toy", *FAST) == 0
    said = capsys.readouterr().out
    assert "en-tones_pgd_sev2-toy: 10 clips, success" in said
    clean = {row["id"]: row for row in rows_of(tone_data, "en-tones_clean")}
    worse = []
    for severity, bound in ((2, 30), (4, 10)):
        rows = rows_of(tone_data, f"en-tones_pgd_sev{severity}-toy")
        assert [row["id"] for row in rows] == list(clean)
        for row in rows:
            before, after = (read(one["audio"]["bytes"]) for one in (clean[row["id"]], row))
            noise = np.sum((after.astype(float) - before) ** 2)
            reached = 10 * np.log10(np.sum(before.astype(float) ** 2) / noise)
            assert reached >= bound
            assert row["snr_db"] == pytest.approx(reached, abs=1e-6)
            facts = json.loads(row["parameters"])
            assert facts["attack"] == "pgd"
            assert facts["snr_db"] == bound
            assert facts["model"] == CTC
            assert facts["revision"] == "1"
            assert facts["steps"] == 4
            assert facts["loss_after"] > facts["loss_before"]
            assert facts["prediction_before"] == row["text"]
            assert {"prediction_after", "seed", "norm"} <= facts.keys() | facts["bound"].keys()
            assert row["source"] == "en-tones_clean"
            assert (row["scenario"], row["severity"], row["licence"]) == ("pgd", severity, "CC0-1.0")
        worse.append(np.mean([json.loads(row["parameters"])["wer_after"] for row in rows]))
    assert worse[1] > 0.4
    manifest = json.loads((tone_data / "en-tones_pgd_sev4-toy" / "_manifest.json").read_text())
    assert (manifest["category"], manifest["source"]) == ("adv_us", "en-tones_clean")
    assert manifest["rows"] == 10
    import datasets

    loaded = datasets.load_dataset("srb", "en-tones_pgd_sev4-toy", split="test")
    assert loaded.num_rows == 10
    assert main(["run", "--model", CTC, "--name", "toy", "--quiet"]) == 0
    heard = [json.loads(line) for line in (tmp_path / "runs/toy/en-tones_pgd_sev4-toy.jsonl").read_text().splitlines()]
    said = {row["id"]: json.loads(row["parameters"])["prediction_after"] for row in rows}
    assert {line["id"]: line["pred_text"] for line in heard} == said
    assert main(["score", "runs/toy"]) == 0
    results = (tmp_path / "runs/toy/results.json").read_text()
    assert "en-tones_pgd_sev4-toy" in results


def test_a_repeated_attack_is_reused_others_are_refused(tone_data, capsys) -> None:  # noqa: F811
    words = ["pgd", "--model", CTC, "--severity", "3", "--limit", "4", *FAST]
    assert attack(tone_data, *words) == 0
    assert attack(tone_data, *words) == 0
    assert "already there" in capsys.readouterr().out
    assert attack(tone_data, *words, "--step", "0.1") == 2
    assert "--overwrite" in capsys.readouterr().err
    assert attack(tone_data, *words, "--step", "0.1", "--overwrite") == 0


def test_a_killed_attack_goes_on_where_it_was(tone_data, capsys) -> None:  # noqa: F811
    words = ["pgd", "--model", "python:support.tones:Slow", "--severity", "3", "--batch-size", "2", *FAST]
    command = [words[0], "en-tones_clean", *words[1:], "--data", str(tone_data), "--out", str(tone_data)]
    path = os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])
    program = [sys.executable, "-m", "speech_robust_bench", "attack", *command]
    child = subprocess.Popen(program, env={**os.environ, "PYTHONPATH": path, "SLOW_CLIPS": "6"})  # of ten
    partial = tone_data / ".attacks"
    deadline = time.monotonic() + 240
    while len(list(partial.glob(PARTS))) < 2:
        assert time.monotonic() < deadline
        assert child.poll() is None
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.wait()
    kept = {path.name: path.stat().st_mtime_ns for path in partial.glob(PARTS)}
    assert 2 <= len(kept) <= 3
    from support import tones

    tones.Slow.attacked = 0
    assert attack(tone_data, *words) == 0
    assert len(rows_of(tone_data, "en-tones_pgd_sev3-support.tones-Slow")) == 10
    assert tones.Slow.attacked <= 2 * (5 - len(kept))  # clips that were done were not attacked again


BAD = {
    "a transcript that the model cannot write": (("x", "ab é4", tones("ab")), r"x: its transcript.*cannot write: 4 é"),
    "an empty transcript": (("x", " ", tones("ab")), "x: its transcript is empty"),
    "a silent clip": (("x", "ab", np.zeros(1600, np.float32)), "x: the clip is silent"),
    "a clip that is too long": (("x", "ab" * 60, tones("ab" * 60)), r"x: the clip lasts 6.0 s and .* takes 5 s"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_clips_get_one_line_before_anything_is_done(tmp_path, case, capsys) -> None:
    clip, line = BAD[case]
    good = clip_of(1)
    data = tmp_path / "srb"
    write_clean(data, "en-tones_clean", [(good.id, good.text, good.samples), clip])
    words = ["pgd", "--model", CTC, "--severity", "3", *FAST]
    assert attack(data, *words) == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    import re

    assert re.search(line, said)
    assert "--on-error skip" in said
    assert attack(data, *words, "--on-error", "skip") == 0
    assert [row["id"] for row in rows_of(data, "en-tones_pgd_sev3-support.tones-Ctc")] == [good.id]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (
            ["pgd", "--model", DEAF],
            "no gradients; the adapters that have are hf:.*python:.*smooth:",
        ),
        (["pgd", "--model", CTC, "--severity", "7"], "no severity 7; it has 1 to 4"),
        (
            ["pgd", "--model", CTC, "--target", "xyz"],
            "target 'xyz': its transcript has characters",
        ),
        (["pgd"], "attacks one model"),
        (["universal", "--model", CTC], "--dev CONFIG, or --perturbation FILE"),
        (["universal", "--model", CTC, "--dev", "en-tones_clean"], "is in the test config too"),
        (["language", "--model", CTC], "multilingual Whisper"),
        (["pgd", "--model", CTC, "--eps", "0.1"], "--norm linf"),
        (["transfer", "--model", CTC], "--proxy"),
    ],
)
def test_other_mistakes_get_one_line(tone_data, words, line, capsys) -> None:  # noqa: F811
    import re

    assert attack(tone_data, *words, "--quiet") == 2
    said = capsys.readouterr().err.strip()
    assert len(said.splitlines()) == 1
    assert re.search(line, said)


def test_an_option_of_another_attack_is_refused(tone_data, capsys) -> None:  # noqa: F811
    with pytest.raises(SystemExit) as ended:
        attack(tone_data, "cw", "--model", CTC, "--severity", "1")
    assert ended.value.code == 2
    assert "unrecognized arguments: --severity" in capsys.readouterr().err


def test_pocketsphinx_has_no_gradients(tone_data, capsys) -> None:  # noqa: F811
    pytest.importorskip("pocketsphinx")
    assert attack(tone_data, "pgd", "--model", "pocketsphinx?workers=1", "--quiet") == 2
    assert "pocketsphinx has no gradients; the adapters that have are" in capsys.readouterr().err


def test_universal_is_fitted_saved_and_used_again(tone_data, capsys) -> None:  # noqa: F811
    words = ["universal", "--model", CTC, "--severity", "4", "--name", "toy", "--quiet"]
    fitting = [*words, "--dev", "en-toned_clean", "--epochs", "2", "--steps", "5"]
    assert attack(tone_data, *fitting) == 0
    saved = tone_data / "perturbations" / "universal_sev4-toy.npz"
    assert saved.is_file()
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]  # nothing unfinished is left
    made = saved.stat().st_mtime_ns
    assert attack(tone_data, *fitting) == 0
    assert saved.stat().st_mtime_ns == made  # the same fit is not fitted again
    assert "already there" in capsys.readouterr().out
    first = rows_of(tone_data, "en-tones_universal_sev4-toy")
    assert all(row["snr_db"] >= 10 for row in first)
    assert attack(tone_data, *words, "--perturbation", str(saved), "--overwrite") == 0
    assert [row["sha256"] for row in rows_of(tone_data, "en-tones_universal_sev4-toy")] == [r["sha256"] for r in first]


def test_cw_genetic_and_kenansville_make_configs(tone_data) -> None:  # noqa: F811
    assert attack(tone_data, "cw", "--model", CTC, *TWO, "--limit", "3", *FAST) == 0
    targets = [json.loads(row["parameters"])["target"] for row in rows_of(tone_data, "en-tones_cw-support.tones-Ctc")]
    assert targets == ["ba", "ba dc", "ba dc"]
    assert (
        attack(
            tone_data,
            "genetic",
            "--model",
            DEAF,
            "--severity",
            "4",
            "--limit",
            "2",
            "--steps",
            "4",
            "--quiet",
        )
        == 0
    )
    assert all(row["snr_db"] >= 10 for row in rows_of(tone_data, "en-tones_genetic_sev4-support.tones-deaf"))
    assert attack(tone_data, "kenansville", "--quiet") == 0
    for severity, bound in enumerate((40, 30, 20, 10), 1):
        assert all(row["snr_db"] >= bound for row in rows_of(tone_data, f"en-tones_kenansville_sev{severity}"))


def test_transfer_prints_a_matrix_with_related_pairs_marked(tone_data, capsys) -> None:  # noqa: F811
    proxies = [
        "--proxy",
        CTC,
        "--proxy",
        f"{CTC} + python:support.tones:OtherCtc",
    ]
    models = ["--model", CTC, "--model", SEQ2SEQ]
    assert attack(tone_data, "transfer", *proxies, *models, "--severity", "4", "--limit", "4", *FAST) == 0
    said = capsys.readouterr().out
    cells = json.loads((tone_data / "transfer_sev4.json").read_text())
    assert {(cell["model"], cell["proxy"]): cell["related"] for cell in cells} == {
        ("support.tones-Ctc", "clean"): None,
        ("support.tones-Seq2Seq", "clean"): None,
        ("support.tones-Ctc", "support.tones-Ctc"): "same",
        ("support.tones-Seq2Seq", "support.tones-Ctc"): None,
        ("support.tones-Ctc", "support.tones-Ctc + support.tones-OtherCtc"): "same",
        ("support.tones-Seq2Seq", "support.tones-Ctc + support.tones-OtherCtc"): None,
    }
    assert "support.tones-Seq2Seq" in said
    assert "=" in said
    success = {(cell["model"], cell["proxy"]): cell["success"] for cell in cells}
    assert success["support.tones-Ctc", "clean"] < success["support.tones-Ctc", "support.tones-Ctc"]


def test_ray_gives_what_the_local_engine_gives(tone_data, monkeypatch, capsys) -> None:  # noqa: F811
    pytest.importorskip("ray")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]))
    words = [
        "pgd",
        "--model",
        CTC,
        "--severity",
        "3",
        "--limit",
        "4",
        "--batch-size",
        "2",
        *FAST,
    ]
    assert attack(tone_data, *words, "--name", "local") == 0
    assert attack(tone_data, *words, "--name", "ray", "--engine", "ray", "--workers", "2") == 0
    local, ray = (rows_of(tone_data, f"en-tones_pgd_sev3-{name}") for name in ("local", "ray"))
    for one, other in zip(local, ray, strict=True):
        assert np.abs(read(one["audio"]["bytes"]) - read(other["audio"]["bytes"])).max() < 1e-3
    assert attack(tone_data, *words, "--name", "many", "--engine", "ray", "--workers", "999") == 2
    assert "999 workers, but the cluster has" in capsys.readouterr().err


def test_mixed_precision_keeps_the_bound_and_is_written_down(tone_data) -> None:  # noqa: F811
    clean = {row["id"]: read(row["audio"]["bytes"]) for row in rows_of(tone_data, "en-tones_clean")}
    words = [
        "pgd",
        "--model",
        CTC,
        "--severity",
        "3",
        "--name",
        "mixed",
        "--precision",
        "bfloat16",
    ]
    assert attack(tone_data, *words, *FAST) == 0
    rows = rows_of(tone_data, "en-tones_pgd_sev3-mixed")
    facts = [json.loads(row["parameters"]) for row in rows]
    assert all((snr_db(clean[row["id"]], read(row["audio"]["bytes"])) or 0) >= 20 for row in rows)
    assert {one["precision"] for one in facts} == {"bfloat16"}
    assert np.mean([one["wer_after"] for one in facts]) > np.mean([one["wer_before"] for one in facts])


def test_psychoacoustic_configs_run_and_are_in_the_table(tone_data, tmp_path, monkeypatch, capsys) -> None:  # noqa: F811
    monkeypatch.chdir(tmp_path)
    words = ["--model", CTC, "--name", "quiet", "--eps", "0.3", "--target", "ba", "--limit", "3"]
    assert attack(tone_data, "psychoacoustic", *words, "--steps", "30", "--transcribe-every", "5", "--quiet") == 0
    facts = [json.loads(row["parameters"]) for row in rows_of(tone_data, "en-tones_psychoacoustic-quiet")]
    assert [one["target"] for one in facts] == ["ba"] * 3
    heard = [one["above_threshold"] for one in facts]
    run = ["run", "--model", CTC, "--name", "quiet", "--data", str(tone_data), "--quiet"]
    assert main([*run, "en-tones_clean", "en-tones_psychoacoustic-quiet"]) == 0
    assert main(["score", "runs/quiet"]) == 0
    capsys.readouterr()
    assert main(["table", "--adversarial", "runs/quiet"]) == 0
    shown = capsys.readouterr().out
    assert "psychoacoustic  " in shown
    assert max(map(len, shown.splitlines())) <= 80
    configs = json.loads(Path("runs/quiet/results.json").read_text())["configs"]
    measured = configs["en-tones_psychoacoustic-quiet"]["attack"]
    assert measured["above_threshold"] == pytest.approx(100 * np.mean(heard), abs=1e-3)
    assert {"tasr", "uasr", "exact", "snr_db"} <= measured.keys()


def test_transfer_cw_makes_a_config_and_a_matrix_of_targets(tone_data, capsys) -> None:  # noqa: F811
    words = [
        "--proxy",
        CTC,
        "--judge",
        SEQ2SEQ,
        "--model",
        CTC,
    ]
    assert attack(tone_data, "transfer_cw", *words, "--limit", "2", *FAST, *TWO) == 0
    rows = [json.loads(row["parameters"]) for row in rows_of(tone_data, "en-tones_transfer_cw-support.tones-Ctc")]
    assert {row["target"] for row in rows} <= {"ba", "ba dc"}
    assert {(row["judge"], row["dropout"]) for row in rows} == {(SEQ2SEQ, True)}
    cells = json.loads((tone_data / "transfer_cw.json").read_text())
    assert [cell["proxy"] for cell in cells] == ["clean", "support.tones-Ctc"]
    with pytest.raises(SystemExit):
        attack(tone_data, "pgd", "--model", CTC, "--judge", CTC)
    assert "unrecognized arguments: --judge" in capsys.readouterr().err
