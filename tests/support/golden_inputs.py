"""What the golden files are made from: runs of real systems (`results/matrix-2.parquet`) and submissions, some forged.

Everything here is written by hand in the documented file formats, or by the commands themselves, so that it stays the
same when modules move.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from support.built_data import make_built
from support.fake_runs import make_run

MATRIX = Path(__file__).parents[2] / "results" / "matrix-2.parquet"
COLUMNS = ["system", "config", "category", "clip", "speaker", "gender", "age", "accent", "reference", "transcript"]
COLUMNS += ["audio_s", "compute_s"]
FRONT_ENDS = ("asnr-", "noisereduce-", "webrtc+asnr-", "webrtc-", "wpe-")
BUILT_CONFIGS = ("en_clean", "en_noise_sev1", "en_noise_sev3", "en_gaussian_sev2", "en_rir_sev2", "en_silence")
NOISE = "en_noise_sev3"
Json = dict[str, Any]


def write_matrix_runs(folder: Path, systems: Collection[str] = (), configs: Collection[str] = ()) -> list[str]:
    """A run folder for each system of the matrix; only those systems and configs that are named, if any are.

    A system behind a front end gets a third of the configs, to save time: those of severity 3 or without a severity.
    """
    wanted = {"system": systems, "config": configs}
    filters = [(column, "in", set(names)) for column, names in wanted.items() if names]
    runs: dict[str, dict[str, list[Json]]] = {}
    for row in pq.read_table(MATRIX, columns=COLUMNS, filters=filters or None).to_pylist():
        if not row["system"].startswith(FRONT_ENDS) or re.search("_sev[1245]$", row["config"]) is None:
            runs.setdefault(row["system"], {}).setdefault(row["config"], []).append(row)
    for system, rows_by_config in runs.items():
        _write_run(folder / system, system, rows_by_config)
    return sorted(runs)


def _write_run(folder: Path, system: str, rows_by_config: dict[str, list[Json]]) -> None:
    folder.mkdir(parents=True)
    entries = {}
    for short_name, rows in rows_by_config.items():
        config = f"en-human_{short_name}"
        data = "".join(json.dumps(_prediction(config, row)) + "\n" for row in rows).encode()
        (folder / f"{config}.jsonl").write_bytes(data)
        entries[config] = _config_entry(short_name, rows) | {"sha256": hashlib.sha256(data).hexdigest()}
    about = {
        "model": system,
        "spec": f"hf:acme/{system}",
        "adapter": "hf",
        "target": f"acme/{system}",
        "asked": {},
        "revision": "0" * 40,
        "options": {"dtype": "float32"},
        "data": "srb",
        "versions": {"numpy": "2.0.0"},
        "machine": {"cpu": "test"},
        "updated": "2026-01-01T00:00:00Z",
        "configs": entries,
    }
    (folder / "run.json").write_text(json.dumps(about), encoding="utf-8")


def _prediction(config: str, row: Json) -> Json:
    return {
        "id": row["clip"],
        "audio_filepath": f"{config}/{row['clip']}.flac",
        "duration": round(row["audio_s"], 6),
        "time": round(row["compute_s"], 6),
        "text": row["reference"],
        "pred_text": row["transcript"],
        "speaker": row["speaker"],
        "gender": row["gender"],
        "age": row["age"],
        "accent": row["accent"],
        "language": "en",
        "loudness_dbfs": None,
    }


def _config_entry(short_name: str, rows: list[Json]) -> Json:
    scenario, _, severity = short_name.partition("_sev")
    seconds, audio_s = (sum(row[column] for row in rows) for column in ("compute_s", "audio_s"))
    return {
        "language": "en",
        "corpus": "human",
        "scenario": scenario,
        "severity": int(severity or 0),
        "category": rows[0]["category"],
        "source": None if scenario == "clean" else "en-human_clean",
        "benchmark_version": "1",
        "content_sha256": hashlib.sha256(short_name.encode()).hexdigest(),
        "rows": len(rows),
        "of": len(rows),
        "failed": 0,
        "audio_s": round(audio_s, 3),
        "seconds": round(seconds, 6),
        "rtf": round(seconds / audio_s, 6),
        "rtf_quantiles": {},
    }


def write_built_data(folder: Path) -> Path:
    """The benchmark that the submissions are checked against."""
    return make_built(folder, BUILT_CONFIGS, clips=30)


def write_submission_runs(folder: Path, data: Path) -> list[str]:
    """Complete runs of three models over that benchmark, from good to poor, and a copy of the last one."""
    rates = {"good": 0.1, "fair": 0.2, "poor": 0.4, "copy": 0.4}
    for name, rate in rates.items():
        make_run(folder / name, data, name, rate, seed=round(100 * rate))
    return list(rates)


def forge(honest: Path, folder: Path) -> list[str]:
    """A copy of an honest submission for each forgery, with hashes that fit unless the forgery is about them."""
    for name, change in FORGERIES.items():
        forged = shutil.copytree(honest, folder / name)
        change(forged)
        if name != "old-hash":
            _seal(forged)
    return list(FORGERIES)


def _seal(folder: Path) -> None:
    """Bring the hashes of run.json and submission.json in line, as somebody who cheats would."""

    def hash_predictions(run: Json) -> None:
        for config, entry in run["configs"].items():
            if (folder / f"{config}.jsonl").is_file():
                entry["sha256"] = _facts(folder / f"{config}.jsonl")["sha256"]

    _edit("run.json", hash_predictions)(folder)
    names = [path.name for path in folder.iterdir() if path.is_file() and path.name != "submission.json"]
    _edit("submission.json", lambda made: made.update(files={name: _facts(folder / name) for name in names}))(folder)


def _facts(path: Path) -> Json:
    return {"sha256": hashlib.sha256(path.read_bytes()).hexdigest(), "size": path.stat().st_size}


def _edit(name: str, change: Callable[[Json], Any]) -> Callable[[Path], None]:
    """Change one JSON file of a submission."""

    def apply(folder: Path) -> None:
        content = json.loads((folder / name).read_text())
        change(content)
        (folder / name).write_text(json.dumps(content))

    return apply


def _edit_lines(change: Callable[[list[Json]], list[Json]]) -> Callable[[Path], None]:
    """Change the predictions of one config of a submission."""

    def apply(folder: Path) -> None:
        path = folder / f"{NOISE}.jsonl"
        lines = change([json.loads(line) for line in path.read_text().splitlines()])
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    return apply


def _each_line(**values: Any) -> Callable[[Path], None]:
    return _edit_lines(lambda lines: [line | values for line in lines])


FORGERIES: dict[str, Callable[[Path], Any]] = {
    "edited-score": _edit("results.json", lambda made: made["configs"][NOISE]["wer"].update(value=1.0)),
    "edited-average": _edit("results.json", lambda made: made["languages"]["en"]["overall"]["nwerd"].update(value=0.5)),
    "edited-interval": _edit("results.json", lambda made: made["configs"][NOISE]["wer"].update(interval=[0.0, 1.0])),
    "edited-audio": _edit("run.json", lambda made: made["configs"][NOISE].update(content_sha256="0" * 64)),
    "edited-name": _edit("submission.json", lambda made: made["model"].update(name="../../etc/passwd")),
    "references-as-predictions": _edit_lines(lambda lines: [line | {"pred_text": line["text"]} for line in lines]),
    "other-references": _each_line(text="the cat"),
    "clip-missing": _edit_lines(lambda lines: lines[:-1]),
    "config-missing": lambda folder: (folder / f"{NOISE}.jsonl").unlink(),
    "config-swapped": lambda folder: shutil.copyfile(folder / "en_noise_sev1.jsonl", folder / f"{NOISE}.jsonl"),
    "impossible-speed": _each_line(time=1e-9),
    "old-hash": _each_line(pred_text="x"),
}
