"""A model's own adversarial configs, from the attack to the leaderboard; what is not its own or too mild is refused."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("torch")

from support.tone_configs import one_thread, write_clean  # noqa: F401
from support.tones import clip_of

from speech_robust_bench.cli.main import main
from speech_robust_bench.core.audio import encode_flac, read, to_pcm16
from speech_robust_bench.core.rows import content_digest, row_digest
from speech_robust_bench.push import expected_rows
from speech_robust_bench.push.expected_rows import places
from speech_robust_bench.push.leaderboard import board
from speech_robust_bench.push.leaderboard.site import files
from speech_robust_bench.push.verify import verify
from speech_robust_bench.scoring.scoring import align
from speech_robust_bench.scoring.success_rates import success_rates

MODELS = {"alice": "python:support.tones:Ctc", "bob": "python:support.tones:OtherCtc"}
CLEAN = "en-tones_clean"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """Two small models attacked by the standard PGD, run over all that is there, and submitted."""
    place = tmp_path_factory.mktemp("board")
    data = place / "srb"
    write_clean(data, CLEAN, [(clip.id, clip.text, clip.samples) for clip in (clip_of(seed, 1) for seed in range(4))])
    common = ["--data", str(data), "--quiet"]
    for name, model in MODELS.items():
        words = ["pgd", CLEAN, "--model", model, "--name", name, "--out", str(data), "--threads", "1"]
        assert main(["attack", *words, *common]) == 0
    for name, model in MODELS.items():
        assert main(["run", "--model", model, "--name", name, "--out", str(place / "runs"), *common]) == 0
        run, out = str(place / "runs" / name), str(place / "submissions" / name)
        assert main(["submit", run, "--dry-run", "--data", str(data), "--out", out, "--name", name]) == 0
    return place


def reasons(folder: Path, submission: Path, data: Path | None = None) -> list[str]:
    data = data or folder / "srb"
    return verify(submission, expected_rows.load(str(folder / "srb")), places(str(data), None)).reasons


@pytest.fixture
def copy(folder, tmp_path) -> Path:
    """The same folder, to be spoilt."""
    return Path(shutil.copytree(folder, tmp_path / "copy"))


def test_the_board_has_each_model_under_its_own_attack(folder, tmp_path) -> None:
    words = ["--data", str(folder / "srb"), "--out", str(tmp_path)]
    assert main(["verify", *(str(folder / "submissions" / name) for name in MODELS), *words]) == 0
    shown = {row.entry.name.split("/")[-1]: row.cells["adv_us"] for row in board.load(tmp_path).rows("en")}
    assert set(shown) == set(MODELS)
    for name, cell in shown.items():
        lines = {}
        for config in (CLEAN, *(f"en-tones_pgd_sev{n}-{name}" for n in (1, 2, 3, 4))):
            text = (folder / "runs" / name / f"{config}.jsonl").read_text()
            lines[config] = [json.loads(line) for line in text.splitlines()]
        wer = {c: align([a["text"] for a in rows], [a["pred_text"] for a in rows]).rate for c, rows in lines.items()}
        by_hand = np.mean([rate - wer[CLEAN] for config, rate in wer.items() if config != CLEAN])
        assert cell is not None
        assert cell[0] == pytest.approx(by_hand, abs=0.01)
        assert cell[0] > 10


def test_the_board_has_a_page_of_attacks(folder, tmp_path) -> None:
    words = ["--data", str(folder / "srb"), "--out", str(tmp_path)]
    assert main(["verify", *(str(folder / "submissions" / name) for name in MODELS), *words]) == 0
    loaded = board.load(tmp_path)
    site = files(loaded)
    page = site["attacks.html"].decode()
    assert 'href="attacks.html"' in site["index.html"].decode()
    assert "UASR words" in page
    assert "pgd: UASR in % over the SNR in dB" in page
    for entry in loaded.entries:
        name = entry.name.split("/")[-1]
        found = entry.attacks("en")
        assert [row.snr_db for row in found] == [40, 30, 20, 10]
        for severity, row in enumerate(found, 1):
            text = (folder / "runs" / name / f"en-tones_pgd_sev{severity}-{name}.jsonl").read_text()
            lines = [json.loads(line) for line in text.splitlines()]
            rates = success_rates([line["text"] for line in lines], [line["pred_text"] for line in lines])
            assert row.rates["uasr"] == pytest.approx(rates["uasr"], abs=1e-3)
            assert f"{row.rates['uasr']:.1f}</td>" in page


def test_a_submission_leaves_out_what_was_made_against_others(folder) -> None:
    ran = {path.stem for path in (folder / "runs" / "bob").glob("*.jsonl")}
    sent = {path.stem for path in (folder / "submissions" / "bob").glob("*.jsonl")}
    assert {config for config in ran if config.endswith("-alice")} == ran - sent
    assert main(["score", str(folder / "runs" / "bob")]) == 0
    scored = json.loads((folder / "runs" / "bob" / "results.json").read_text())
    assert scored["languages"]["en"]["categories"]["adv_us"]["members"] == sorted(c for c in ran if c.endswith("-bob"))


def test_the_attack_of_another_model_cannot_stand_in(copy) -> None:
    run = copy / "runs" / "bob"
    for path in run.glob("*-bob.jsonl"):
        path.unlink()
    about = json.loads((run / "run.json").read_text())
    about["configs"] = {c: e for c, e in about["configs"].items() if not c.endswith("-bob")}
    (run / "run.json").write_text(json.dumps(about))
    from speech_robust_bench.push import submission

    made = submission.make(
        run, copy / "stolen", {"name": "bob"}, [CLEAN, *sorted(p.stem for p in run.glob("*-alice.jsonl"))]
    )
    found = reasons(copy, made)
    assert found
    assert all(f"attacks {MODELS['alice']}, the submission is of {MODELS['bob']}" in line for line in found)


def test_every_severity_or_none(copy) -> None:
    from speech_robust_bench.push import submission

    some = [CLEAN, "en-tones_pgd_sev1-bob"]
    found = reasons(copy, submission.make(copy / "runs" / "bob", copy / "few", {"name": "bob"}, some))
    assert [line.split(":")[0] for line in found] == [f"en-tones_pgd_sev{n}-bob" for n in (2, 3, 4)]
    assert not reasons(copy, submission.make(copy / "runs" / "bob", copy / "none", {"name": "bob"}, [CLEAN]))


def test_no_audio_no_adversarial_config(folder, tmp_path) -> None:
    (found, *_) = reasons(folder, folder / "submissions" / "bob", tmp_path / "nowhere")
    assert "--adversarial" in found


def test_a_milder_attack_is_refused(copy) -> None:
    manifest = copy / "srb" / "en-tones_pgd_sev2-bob" / "_manifest.json"
    about = json.loads(manifest.read_text())
    about["attack"]["steps"] = 99
    manifest.write_text(json.dumps(about))
    (found,) = reasons(copy, copy / "submissions" / "bob")
    assert found == "en-tones_pgd_sev2-bob: not the standard attack: 'steps' is 99, the standard has 100"


def rewrite(place: Path, change) -> None:
    """Store the config with its audio changed, and with hashes that fit."""
    (path,) = place.glob("*.parquet")
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        pcm = to_pcm16(change(row["id"], read(row["audio"]["bytes"])))
        row["audio"]["bytes"] = encode_flac(pcm)
        row["sha256"] = row_digest(row["id"], row["text"], pcm)
    pq.write_table(pa.Table.from_pylist(rows, pq.read_schema(path)), path)
    about = json.loads((place / "_manifest.json").read_text())
    about["content_sha256"] = content_digest(row["sha256"] for row in rows)
    (place / "_manifest.json").write_text(json.dumps(about))


@pytest.mark.parametrize(
    ("share", "line"), [(1.1, "the bound is 40 dB"), (0.5, "half of its clips are above 46"), (1.0, None)]
)
def test_the_bound_is_measured_from_the_audio(copy, share, line) -> None:
    """Ten per cent more perturbation is 0.8 dB beyond the bound; half of it is 6 dB milder than it may be."""
    (clean,) = (copy / "srb" / CLEAN).glob("*.parquet")
    before = {row["id"]: read(row["audio"]["bytes"]) for row in pq.read_table(clean).to_pylist()}
    config = "en-tones_pgd_sev1-bob"
    rewrite(copy / "srb" / config, lambda clip, samples: before[clip] + share * (samples - before[clip]))
    found = reasons(copy, copy / "submissions" / "bob")
    if line is None:
        assert not found
    else:
        assert len(found) == 1
        assert found[0].startswith(f"{config}: ")
        assert line in found[0]
