"""Results for Every Eval Ever (schema 0.3.0) and Croissant metadata, by their own validators if installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import uuid
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from support.fake_runs import make_run

import speech_robust_bench as srb


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "srb"
    srb.build(["en-demo_clean", "en-demo_echo_sev1"], limit=2, out=folder)
    return folder


@pytest.fixture(scope="module")
def record(built: Path) -> Path:
    run = make_run(built.parent / "runs" / "tiny", built, "tiny")
    return srb.export_results(run, model_id="acme/tiny", organisation="Acme", out=built.parent)[0]


def test_the_model_has_what_version_0_3_0_asks_for(record: Path) -> None:
    content = json.loads(record.read_text("utf-8"))
    assert content["schema_version"] == "0.3.0"
    details = content["model_info"]["additional_details"]
    assert details["deployment_type"] == "self_deployed"  # run here, by the adapter hf:
    assert details["model_availability"] == "open_weights"
    assert all(isinstance(value, str) for value in details.values())
    assert record.parent.parts[-4:] == ("data", "speech-robust-bench", "acme", "tiny")
    assert uuid.UUID(record.stem).version == 4


@pytest.mark.skipif(not shutil.which("every_eval_ever"), reason="the validator of Every Eval Ever is not installed")
def test_the_collections_own_validator_accepts_it(record: Path, tmp_path: Path) -> None:
    """A program in an environment of its own: it needs Python 3.12 and a huggingface_hub before 1.0 (see .ci/run)."""

    def validate(path: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["every_eval_ever", "validate", path], capture_output=True, text=True)

    accepted = validate(record)
    assert accepted.returncode == 0, accepted.stdout
    assert "1 passed" in accepted.stdout
    content = json.loads(record.read_text("utf-8"))
    del content["model_info"]
    (tmp_path / record.name).write_text(json.dumps(content), encoding="utf-8")
    assert validate(tmp_path / record.name).returncode != 0


def test_croissant_has_the_day_of_the_build(built: Path) -> None:
    path, configs = srb.export_croissant(built)
    published = json.loads(path.read_text("utf-8"))["datePublished"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", published)
    assert abs(date.fromisoformat(published) - datetime.now(UTC).date()).days <= 1
    assert configs == 2


def test_mlcroissant_has_no_complaint(built: Path) -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    path, _ = srb.export_croissant(built, url="https://example.org/srb")
    issues = mlcroissant.Dataset(jsonld=str(path)).metadata.ctx.issues
    assert not issues.errors, issues.report()
    assert not issues.warnings, issues.report()
