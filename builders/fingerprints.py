"""What the content of a config depends on, and the hash of it."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from importlib import metadata
from typing import Any

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.checked_clips import Listing
from speech_robust_bench.builders.corpora import Corpus
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.builders.scenarios import SCENARIOS, Scenario
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, later_version

LIBRARIES = ("speech-robust-bench", "numpy", "scipy", "numba", "soundfile", "soxr", "pyarrow")


@cache
def library_version(library: str) -> str:
    return metadata.version(library)  # parses a file each time


def config_inputs(job: Job, corpus: Corpus, listing: Listing, banks: Banks, seed: str) -> dict[str, Any]:
    """Everything that a config's content depends on and that can change between two runs."""
    scenario = job.scenario
    inputs = {
        "benchmark_version": BENCHMARK_VERSION,
        "software": library_version("speech-robust-bench"),
        "config": str(job.name),
        "value": scenario.value(job.severity),
        "transform": _own_transforms(scenario),
        "bank": banks.describe(*scenario.banks) or listing.voices,
        "recordings": banks.fingerprint(*scenario.banks),
        "corpus": corpus.name,
        "clips": [listing.digest, listing.count],
    }
    return {**inputs, **later_version(scenario.edition_with(banks.version)), **({"seed": seed} if seed else {})}


def _own_transforms(scenario: Scenario) -> str | None:
    """The functions of a scenario that are the user's own; those of the table are known by its name and version."""
    own = (row for row in (scenario, *scenario.parts) if row.name not in SCENARIOS and row.function)
    return " + ".join(repr(row.function) for row in own) or None


def fingerprint(inputs: dict[str, Any]) -> str:
    """One hash over everything that goes into a config."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
