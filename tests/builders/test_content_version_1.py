"""The data of benchmark version 1: every config has the content that it had when the version was made.

The hashes are the `content_sha256` of the manifests that the program wrote at the commit and with the commands that the
file names. Should a test here fail, the data has changed: undo the change, or raise `BENCHMARK_VERSION`.
"""

import json
import platform
from functools import cache
from pathlib import Path

import pytest
import soundfile
import soxr

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.plan import DEMO, clips, job_named, plan
from speech_robust_bench.builders.row_generator import RowGenerator
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.rows import content_digest
from speech_robust_bench.core.seeding import BENCHMARK_VERSION

PINNED = json.loads((Path(__file__).parent / "data" / "content_version_1.json").read_text())
CLIPS = {"en": 2, "es": 1}
# Codecs of a library: another version of it, or another processor, may round in another way. G.711 is a table.
OF_A_LIBRARY = {row.name for row in SCENARIOS.values() if row.category == "codec"} - {"mulaw", "alaw"}


@cache
def built(language: str) -> dict[str, str]:
    """The content hash of every config of the demo corpus, of its first clips."""
    jobs, banks = [job_named(name) for name in pinned(language)], Banks()
    _, utterances = clips(jobs[0].selection, DEMO, CLIPS[language])
    loaded = [(utterance, utterance.load()) for utterance in utterances]
    return {
        str(job.name): content_digest(
            row.sha256 for clip, samples in loaded for row in RowGenerator((job,), banks).rows(clip, samples)
        )
        for job in jobs
    }


def of_a_library(config: str) -> bool:
    return parse(config).scenario in OF_A_LIBRARY


def pinned(language: str) -> dict[str, str]:
    """The hashes of rows that are still in their first version; later ones are in `content_later_rows.json`."""
    names = {name: parse(name) for name in PINNED["content_sha256"]}
    first = [name for name, parts in names.items() if SCENARIOS[parts.scenario].edition == "1"]
    return {name: PINNED["content_sha256"][name] for name in first if names[name].language == language}


def test_the_pinned_version_is_the_one_in_force():
    assert PINNED["benchmark_version"] == BENCHMARK_VERSION == "1"


@pytest.mark.parametrize("language", CLIPS)
def test_nothing_of_version_1_is_gone(language):
    """A scenario may be added to the table, and here with its hashes; none may leave it."""
    assert len(pinned(language)) >= 180  # of the 181 at the commit that the file names; A-law has a later version
    assert set(pinned(language)) <= {str(job.name) for job in plan([f"{language}-demo_*"], DEMO)}


@pytest.mark.parametrize("language", CLIPS)
def test_the_content_is_that_of_version_1(language):
    changed = {
        name for name, digest in pinned(language).items() if not of_a_library(name) and built(language)[name] != digest
    }
    assert changed == set()


@pytest.mark.parametrize("language", CLIPS)
def test_the_codecs_content_is_that_of_version_1(language):
    here = {
        "libsndfile": soundfile.__libsndfile_version__,
        "libsoxr": soxr.__libsoxr_version__,
        "machine": platform.machine(),
    }
    if any(PINNED[name] != value for name, value in here.items()):
        pytest.skip(f"pinned with { ({name: PINNED[name] for name in here}) }, this is {here}")
    codecs = {name: digest for name, digest in pinned(language).items() if of_a_library(name)}
    assert len(codecs) == 14
    assert {name for name, digest in codecs.items() if built(language)[name] != digest} == set()
