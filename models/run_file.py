"""`run.json`: which model was run, with which options and versions, on what machine, over which configs."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders.configs import Config
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.folder_lock import locked
from speech_robust_bench.core.run_files import read_run_json
from speech_robust_bench.models.interface import PERFORMANCE_OPTIONS, Recogniser, Spec

QUANTILES = (5, 25, 50, 75, 95, 99)
# packages whose versions go into run.json
ALWAYS = ("numpy", "pyarrow", "soundfile")
IF_USED = {
    "torch": "torch",
    "transformers": "transformers",
    "tokenizers": "tokenizers",
    "onnxruntime": "onnxruntime",
    "pocketsphinx": "pocketsphinx",
    "vosk": "vosk",
    "nemo": "nemo_toolkit",
    "mistral_common": "mistral-common",
    "speechbrain": "speechbrain",
    "faster_whisper": "faster-whisper",
    "ctranslate2": "ctranslate2",
}


def record_of(config: Config, lines: Iterable[bytes]) -> dict[str, Any]:
    """A config's entry in run.json: what it is, and how fast and how well it went."""
    rows = [json.loads(line) for line in lines]
    seconds, durations = (np.array([row.get(key) or 0 for row in rows], float) for key in ("time", "duration"))
    transcribed = np.array([row.get("error") is None for row in rows], dtype=bool)
    timed = transcribed & (durations > 0)
    factors = seconds[timed] / durations[timed]
    return {
        **config.about,
        "rows": len(rows),
        "of": len(config.rows),
        "failed": int((~transcribed).sum()),
        "audio_s": round(float(durations.sum()), 3),
        "seconds": round(float(seconds.sum()), 6),
        "rtf": round(float(seconds[timed].sum() / durations[timed].sum()), 6) if timed.any() else None,
        "rtf_quantiles": {f"p{q}": round(float(np.percentile(factors, q)), 6) for q in QUANTILES}
        if timed.any()
        else {},
    }


def same_data(known: Mapping[str, Any], about: Mapping[str, Any]) -> bool:
    """Whether two entries of a config are of the same data, as far as both tell.

    The fingerprint decides where the content of one is not known yet.
    """
    certain = known.get("content_sha256") and about.get("content_sha256")
    keys = ("content_sha256", "rows_sha256", *(() if certain else ("fingerprint",)))
    return all(known[key] == about[key] for key in keys if known.get(key) and about.get(key))


class RunFile:
    """Reads, checks and updates the `run.json` of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "run.json"

    def read(self) -> dict[str, Any]:
        return read_run_json(self.path) if self.path.is_file() else {}

    def update(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Read, change and rename into place, while no other process does."""
        with locked(self.folder / ".locks" / "run.json", "", wait=True):
            content = self.read()
            change(content)
            content["updated"] = _now()
            write_atomically(self.path, (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode())

    def check(self, spec: Spec, environment: Sequence[str] = ()) -> None:
        """Refuse to mix the predictions of two models, or of one under two settings, in one folder."""
        known = self.read()
        if not known:
            return
        masked = spec.masked
        ours = {"adapter": masked.adapter, "target": masked.target, "asked": masked.decisive}
        for key, value in ours.items():
            if known.get(key) != value:
                raise UserError(
                    f"{self.folder} holds a run of {known.get('spec')}, not of this model with these options; "
                    "--name gives this one a folder of its own"
                )
        before = known.get("options", {}).get("environment", [])
        if known.get("configs") and sorted(environment) != before:
            raise UserError(
                f"{self.folder} holds a run with --env {before}, now it is {sorted(environment)}; "
                "--name gives this one a folder of its own"
            )

    def check_loaded(self, recogniser: Recogniser) -> None:
        """The same for what only the loaded model knows: its revision, and the options it chose itself."""
        known = self.read()
        if known.get("configs") and known.get("revision", recogniser.revision) != recogniser.revision:
            raise UserError(
                f"{self.folder} holds predictions of revision {known['revision']}, and the model is now "
                f"{recogniser.revision}; --name gives it a folder of its own"
            )
        before, now = (_decisive(options) for options in (known.get("options", {}), recogniser.options))
        if known.get("configs") and before != now:
            raise UserError(f"{self.folder} holds a run with options {before}, now they are {now}; use --name")


def _decisive(options: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if key not in PERFORMANCE_OPTIONS}


def describe(spec: Spec, recogniser: Recogniser, where: str, name: str | None = None) -> dict[str, Any]:
    """The part of run.json that is about the model and the machine; `name` is what the user calls the model."""
    spec = spec.masked
    return {
        "model": name or recogniser.name,
        "spec": str(spec),
        "adapter": spec.adapter,
        "target": spec.target,
        "asked": spec.decisive,
        "revision": recogniser.revision,
        "options": recogniser.options,
        "data": where,
        "versions": {
            "speech-robust-bench": metadata.version("speech-robust-bench"),
            "python": platform.python_version(),
            **{name: _version(name) for name in ALWAYS},
            **{package: _version(package) for name, package in IF_USED.items() if name in sys.modules},
            **_versions_elsewhere(recogniser),
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "accelerator": _accelerator(),
        },
    }


def _versions_elsewhere(recogniser: Recogniser) -> dict[str, str]:
    """Of a recogniser in an environment of its own: the versions there, which are the ones that count."""
    there = getattr(recogniser, "versions", None) or {}
    return {package: there[package] for package in (*ALWAYS, *IF_USED.values()) if package in there}


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _accelerator() -> str | None:
    torch = sys.modules.get("torch")
    return torch.cuda.get_device_name() if torch and torch.cuda.is_available() else None


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
