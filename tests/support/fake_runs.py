"""Run folders over built data, as `srb run` writes them, of a recogniser that drops and changes words by chance."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.config_sources import BuiltFolder
from speech_robust_bench.models.run_folder import line_of, record_of
from speech_robust_bench.models.transcriber import Transcription


def with_errors(text: str, rate: float, rng: np.random.Generator) -> str:
    """A text in which so many words are lost or mistaken, each for another one."""
    draws = rng.random(len(text.split()))
    words = ["" if d < rate / 2 else f"w{d:.6f}" if d < rate else w for w, d in zip(text.split(), draws, strict=True)]
    return " ".join(word for word in words if word)


def make_run(folder: Path, data: Path, model: str, rate: float = 0.2, seed: int = 0) -> Path:
    """A complete run over every config of a built folder; the harder the severity, the more is lost."""
    folder.mkdir(parents=True)
    configs = {}
    place = BuiltFolder(data)
    for name in place.names():
        config = place.config(name)
        rng = np.random.default_rng([seed, *name.encode()])
        lost = rate * (1 + config.about.severity) / 2 if config.about.scenario != "clean" else rate / 4
        outcomes = [
            Transcription(with_errors(row.text, lost, rng), None, 0.001 + row.duration / 30) for row in config.rows
        ]
        lines = [line_of(name, row, one) for row, one in zip(config.rows, outcomes, strict=True)]
        data_bytes = b"".join(json.dumps(line.as_json()).encode() + b"\n" for line in lines)
        (folder / f"{name}.jsonl").write_bytes(data_bytes)
        record = record_of(config.about, len(config.rows), lines)
        configs[name] = record.replace(sha256=hashlib.sha256(data_bytes).hexdigest()).as_json()
    about = {
        "model": model,
        "spec": f"hf:acme/{model}",
        "adapter": "hf",
        "target": f"acme/{model}",
        "asked": {},
        "revision": "0" * 40,
        "options": {"dtype": "float32"},
        "data": "srb",
        "versions": {"numpy": np.__version__},
        "machine": {"cpu": "test"},
        "updated": "2026-01-01T00:00:00Z",
        "configs": configs,
    }
    (folder / "run.json").write_text(json.dumps(about, indent=2))
    return folder
