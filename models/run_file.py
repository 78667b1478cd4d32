"""`run.json`: which model was run, with which options and versions, on what machine, over which configs."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import numpy as np
from msgspec import structs

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import locked, write_atomically
from speech_robust_bench.core.records import (
    ConfigData,
    Prediction,
    RunConfig,
    RunRecord,
    Settings,
    read_run_record,
    to_json,
)
from speech_robust_bench.core.secrets import redacted
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


def record_of(data: ConfigData, clips: int, lines: Iterable[Prediction]) -> RunConfig:
    """A config's entry in run.json; `clips` is how many the whole config has."""
    rows = list(lines)
    seconds, durations = np.array([(row.time or 0, row.seconds) for row in rows], float).reshape(-1, 2).T
    transcribed = np.array([row.error is None for row in rows], dtype=bool)
    timed = transcribed & (durations > 0)
    factors = seconds[timed] / durations[timed]
    return RunConfig(
        **structs.asdict(data),
        rows=len(rows),
        of=clips,
        failed=int((~transcribed).sum()),
        audio_s=round(float(durations.sum()), 3),
        seconds=round(float(seconds.sum()), 6),
        rtf=round(float(seconds[timed].sum() / durations[timed].sum()), 6) if timed.any() else None,
        rtf_quantiles={f"p{q}": round(float(np.percentile(factors, q)), 6) for q in QUANTILES} if timed.any() else {},
    )


class RunFile:
    """Reads, checks and updates the `run.json` of one run folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "run.json"

    def read(self) -> RunRecord | None:
        """What the file holds; None if there is none yet."""
        return read_run_record(self.path) if self.path.is_file() else None

    def update(self, change: Callable[[RunRecord], RunRecord]) -> None:
        """Read, change and rename into place, while no other process does."""
        with locked(self.folder / ".locks" / "run.json", "", wait=True):
            record = change(self.read() or RunRecord())
            write_atomically(self.path, to_json(record.replace(updated=_now()), indent=2))

    def check(self, spec: Spec, environment: Sequence[str] = ()) -> None:
        """Refuse to mix the predictions of two models, or of one under two settings, in one folder."""
        known = self.read()
        if known is None:
            return
        masked = spec.masked
        if (known.adapter, known.target, known.asked) != (masked.adapter, masked.target, masked.decisive):
            raise UserError(
                f"{self.folder} holds a run of {known.spec}, not of this model with these options; "
                "--name gives this one a folder of its own"
            )
        before, now = (redacted(sorted(e)) for e in ((known.options or {}).get("environment", []), environment))
        if known.configs and before != now:
            raise UserError(
                f"{self.folder} holds a run with --env {before}, now it is {now}; "
                "--name gives this one a folder of its own"
            )

    def check_loaded(self, recogniser: Recogniser) -> None:
        """The same for what only the loaded model knows: its revision, and the options it chose itself."""
        known = self.read()
        if known is None or not known.configs:
            return
        if known.revision != recogniser.revision:
            raise UserError(
                f"{self.folder} holds predictions of revision {known.revision}, and the model is now "
                f"{recogniser.revision}; --name gives it a folder of its own"
            )
        before, now = (_decisive(redacted(options)) for options in (known.options or {}, recogniser.options))
        if before != now:
            raise UserError(f"{self.folder} holds a run with options {before}, now they are {now}; use --name")


def _decisive(options: Settings) -> Settings:
    return {key: value for key, value in options.items() if key not in PERFORMANCE_OPTIONS}


def describe(spec: Spec, recogniser: Recogniser, where: str, name: str | None = None) -> RunRecord:
    """The part of run.json that is about the model and the machine; `name` is what the user calls the model."""
    spec = spec.masked
    return RunRecord(
        model=name or recogniser.name,
        spec=str(spec),
        adapter=spec.adapter,
        target=spec.target,
        asked=spec.decisive,
        revision=recogniser.revision,
        options=redacted(recogniser.options),
        data=where,
        versions={
            "speech-robust-bench": metadata.version("speech-robust-bench"),
            "python": platform.python_version(),
            **{name: _version(name) for name in ALWAYS},
            **{package: _version(package) for name, package in IF_USED.items() if name in sys.modules},
            **_versions_elsewhere(recogniser),
        },
        machine={
            "system": platform.platform(),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
            "accelerator": _accelerator(),
        },
    )


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
