"""A recogniser of two languages that loses twice as much in one of them: scores, card, page and fairness test."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from speech_robust_bench.builders.corpora.folder import DEMO_FOLDER
from speech_robust_bench.cli.main import main

WRONG = {"en": 1, "es": 2}  # words of every clip that gaussian noise turns into another
LEVELS = ("gaussian_sev1", "gaussian_sev2")


@pytest.fixture
def clips() -> dict[str, list[dict[str, str]]]:
    """The demo corpus by language."""
    with open(DEMO_FOLDER / "manifest.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    return {language: [row for row in rows if row["language"] == language] for language in WRONG}


@pytest.fixture
def folder(tmp_path: Path, clips) -> Path:
    """A run over clean and noisy speech of both languages."""
    made = tmp_path / "both"
    made.mkdir()
    configs = {}
    for language, rows in clips.items():
        clean = f"{language}-demo_clean"
        for config, wrong in {clean: 0, **{f"{language}-demo_{level}": WRONG[language] for level in LEVELS}}.items():
            lines = []
            for row in rows:
                said = row["text"].split()
                line = {"id": row["file"], "audio_filepath": row["file"], "duration": 4.0, "time": 0.1}
                line |= {"text": row["text"], "pred_text": " ".join(["zzz"] * wrong + said[wrong:])}
                lines.append(line | {key: row[key] for key in ("speaker", "gender", "language")})
            (made / f"{config}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
            about = {"language": language, "corpus": "demo", "rows": len(lines), "of": len(lines)}
            hard = {
                "category": "noise_white",
                "source": clean,
                "scenario": "gaussian",
                "severity": int(config[-1] == "2") + 1,
            }
            configs[config] = about | (
                hard if wrong else {"category": "clean", "source": None, "scenario": "clean", "severity": 0}
            )
    (made / "run.json").write_text(json.dumps({"model": "both", "configs": configs}), "utf-8")
    return made


def test_each_language_has_its_own_scores_side_by_side(folder, clips, tmp_path, capsys):
    words = {language: sum(len(row["text"].split()) for row in rows) for language, rows in clips.items()}
    werd = {language: 100 * WRONG[language] * len(rows) / words[language] for language, rows in clips.items()}
    assert main(["score", str(folder)]) == 0
    tables = json.loads((folder / "results.json").read_text("utf-8"))["languages"]
    assert {
        language: table["scenarios"]["gaussian"]["werd"]["value"] for language, table in tables.items()
    } == pytest.approx(werd, abs=1e-4)
    capsys.readouterr()
    assert main(["diagnose", str(folder), "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["across"]["rows"]
    measured = rows["noise_white werd"]
    assert measured["en"]["ratio"] == 1
    assert measured["es"]["ratio"] == pytest.approx(werd["es"] / werd["en"], rel=1e-4)
    page = tmp_path / "report.html"
    assert main(["report", str(folder), "--out", str(page)]) == 0
    gap = tables["es"]["overall"]["nwerd"]["value"] - tables["en"]["overall"]["nwerd"]["value"]
    assert f"{gap:.1f} points of NWERD between es and en" in page.read_text("utf-8")
    assert set(json.loads(page.with_suffix(".json").read_text("utf-8"))["both"]) == {"en", "es"}


def test_only_the_language_with_groups_is_tested(folder, capsys):
    assert main(["fairness", str(folder), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [one["clean"] for one in found["sets"]] == ["en-demo_clean"]
    assert found["skipped"] == [
        {"clean": "es-demo_clean", "why": "gender has one group only (female: 12); a comparison needs two"}
    ]
    assert {d["config"] for d in found["degradations"]} == {f"en-demo_{level}" for level in LEVELS}
