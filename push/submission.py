"""A submission: a run folder's predictions and results, with hashes and what the leaderboard says about the model.

One flat folder: `<config>.jsonl` (or `.parquet`, the same packed), `run.json`, `results.json` as docs/formats.md has
them, and `submission.json`: `schema`, `model` (name, id, params_m, licence, url, training_data), `benchmark_version`,
`software`, `reproduce` (the command), and `files`: name -> sha256 and size. Hashes and scores in `run.json` and
`results.json` are of the `.jsonl`, packed or not.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

from srb.builders.errors import UserError
from srb.builders.public import without_folders
from srb.builders.seeding import BENCHMARK_VERSION
from srb.metrics import results
from srb.metrics.runs import open_run
from srb.push import packed

SCHEMA = 1
NAME = "submission.json"
MODEL_NAME = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,79}"
MODEL_KEYS = ("name", "id", "params_m", "licence", "url", "training_data")
Json = dict[str, Any]
_SECRET = re.compile(r"\b(hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}|(?i:bearer) [A-Za-z0-9._-]{16,})")


def file_facts(path: Path) -> Json:
    """A file's hash and size."""
    with path.open("rb") as file:
        return {"sha256": hashlib.file_digest(file, "sha256").hexdigest(), "size": path.stat().st_size}


def make(run_folder: str | Path, out: Path, model: Json, configs: Iterable[str] = (), parquet: bool = False) -> Path:
    """Write the submission of a run into a new folder; scores are computed anew with the leaderboard's options."""
    run = open_run(run_folder)
    chosen = sorted(configs) or list(run.configs)
    about = {**run.about, "configs": {c: run.about.get("configs", {}).get(c) for c in chosen}}
    about = json.loads(without_folders(json.dumps(about)))
    name = model.get("name") or run.model
    if not re.fullmatch(MODEL_NAME, name):
        raise UserError(f"'{name}': a model's name here has letters, digits and ._+- only; give another with --name")
    if _SECRET.search(json.dumps(about)):
        raise UserError(f"{run.folder / 'run.json'}: holds what looks like a secret key; take it out of the options")
    try:
        out.mkdir(parents=True)
    except FileExistsError:
        raise UserError(f"{out}: is there already; name another folder with --out") from None
    for config in chosen:
        shutil.copyfile(run.folder / f"{config}.jsonl", out / f"{config}.jsonl")
    about["model"] = name
    _write(out / "run.json", about)
    _write(out / results.NAME, results.results(open_run(out)))
    if parquet:
        for config in chosen:
            packed.pack(out / f"{config}.jsonl")
    files = {path.name: file_facts(path) for path in sorted(out.iterdir())}
    _write(
        out / NAME,
        {
            "schema": SCHEMA,
            "model": {**dict.fromkeys(MODEL_KEYS), **model, "name": name},
            "benchmark_version": BENCHMARK_VERSION,
            "software": {"speech-robust-bench": metadata.version("speech-robust-bench")},
            "reproduce": f"srb run --model {about.get('spec')} --data ORG/srb && srb score runs/{name}",
            "files": files,
        },
    )
    return out


def _write(path: Path, made: Json) -> None:
    path.write_text(json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")


def send(hub: Any, folder: Path, repo: str) -> str:
    """A pull request with the folder's files under `submissions/<model>/`; returns its address."""
    from huggingface_hub import CommitOperationAdd

    name = json.loads((folder / NAME).read_text("utf-8"))["model"]["name"]

    def operations() -> list:
        paths = sorted(folder.iterdir())
        return [CommitOperationAdd(path_in_repo=f"submissions/{name}/{p.name}", path_or_fileobj=p) for p in paths]

    return hub.pull_request(repo, "dataset", operations, f"Submit {name}")
