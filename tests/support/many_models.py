"""Verified files of many models that nobody ran: the size of a full leaderboard, with scores drawn by chance."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable
from pathlib import Path

import numpy as np
from support.built_data import many_configs

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.result_records import digest
from speech_robust_bench.push.leaderboard.verified_files import SCHEMA
from speech_robust_bench.push.model_results import MEANS

REPLICATES = 1000


def write_models(folder: Path, models: int = 200, configs: int = 114, seed: int = 0) -> Path:
    """That many verified models over that many configs in English; every fourth in Spanish too, over white noise."""
    folder.mkdir(parents=True)
    names = many_configs(configs)
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((16, REPLICATES))  # the part of the chance that all models share: the same clips
    for index in range(models):
        skill = float(rng.uniform(0.3, 1.6))
        made = _model(f"recogniser-{index:03d}", skill, names, rng)
        if index % 4 == 0:
            _add_spanish(made)
        draws = io.BytesIO()
        arrays = {
            f"{language}/{row}/nwerd": (scores["nwerd"][0] + noise[i] + 0.5 * rng.standard_normal(REPLICATES)).astype(
                "f4"
            )
            for language, rows in made["languages"].items()
            for i, (row, scores) in enumerate({**rows["categories"], "overall": rows["overall"]}.items())
        }
        np.savez(draws, **arrays)
        stem = f"acme--{made['model']['name']}"
        (folder / f"{stem}.npz").write_bytes(draws.getvalue())
        made["draws_sha256"] = hashlib.sha256(draws.getvalue()).hexdigest()
        made["sha256"] = digest(made)
        (folder / f"{stem}.json").write_text(json.dumps(made), encoding="utf-8")
    return folder


def _add_spanish(made: dict) -> None:
    """The white noise of the English configs, once more."""
    english = made["languages"]["en"]
    white = {"noise_white": english["categories"]["noise_white"]}
    made["languages"]["es"] = {
        **english,
        "clean": {"es_clean": english["clean"]["en_clean"]},
        "categories": white,
        "overall": white["noise_white"],
        "categories_missing": 8,
    }
    made["configs"] |= {
        name.replace("en_", "es_"): {**entry, "language": "es", "corpus": "mls"}
        for name, entry in made["configs"].items()
        if entry["scenario"] in ("clean", "gaussian")
    }


def _mean(values: Iterable[float]) -> float:
    known = list(values)
    return sum(known) / len(known)


def _score(value: float) -> list[float]:
    return [round(v, 2) for v in (value, value - 1.2, value + 1.2)]


def _model(name: str, skill: float, configs: list[str], rng: np.random.Generator) -> dict:
    clean = 3 + 4 * skill
    entries = {}
    for config in configs:
        parts = parse(config)
        category = SCENARIOS[parts.scenario].category
        lost = (
            0.0
            if parts.scenario == "clean"
            else skill * (2 + 6 * max(parts.severity, 1)) * float(rng.uniform(0.5, 1.5))
        )
        entries[config] = {
            "language": "en",
            "corpus": "librispeech",
            "scenario": parts.scenario,
            "severity": parts.severity,
            "category": category,
            "wer": _score(clean + lost),
            "clean_wer": None if parts.scenario == "clean" else clean,
            "difficulty": None if parts.scenario == "clean" else 100 / 1.4,
            "bank": None,
            "empty": 0,
            "utterances": 2620,
        }
        if parts.scenario != "clean":
            measures = {"nwer": (clean + lost) * 1.4, "werd": lost, "nwerd": lost * 1.4}
            entries[config] |= {measure: _score(value) for measure, value in measures.items()}
    by_category: dict[str, list[dict]] = {}
    for entry in entries.values():
        if "nwerd" in entry:
            by_category.setdefault(entry["category"], []).append(entry)
    categories = {c: {m: _score(_mean(r[m][0] for r in rows)) for m in MEANS} for c, rows in by_category.items()}
    paper = [categories[c] for c in AVERAGED if c in categories]
    return {
        "schema": SCHEMA,
        "model": {
            "owner": "acme",
            "name": name,
            "id": f"acme/{name}",
            "params_m": float(rng.choice([39, 74, 244, 769, 1550])),
            "licence": "MIT",
            "url": None,
            "training_data": "960 hours of read books",
        },
        "reproduce": f"srb run --model hf:acme/{name} --data ORG/srb && srb score runs/{name}",
        "predictions": f"https://huggingface.co/datasets/acme/results/tree/main/submissions/{name}",
        "verified_with": "0.1.0",
        "benchmark_version": "1",
        "scoring": {"normaliser": "srb-paper-1", "difficulty": {"name": "paper-table3", "sha256": "0" * 64}},
        "revision": "0" * 40,
        "failed": 0,
        "rerun": None,
        "flags": [],
        "error_digests": {},
        "version": 1,
        "history": [],
        "rtf": 0.05 * skill,
        "languages": {
            "en": {
                "clean": {"en_clean": {"wer": _score(clean)}},
                "categories": categories,
                "overall": {measure: _score(_mean(row[measure][0] for row in paper)) for measure in MEANS},
                "median": {"nwerd": _score(sorted(row["nwerd"][0] for row in paper)[len(paper) // 2])},
                "adversarial": {},
                "categories_missing": 0,
            }
        },
        "configs": entries,
        "reject": {},
    }
