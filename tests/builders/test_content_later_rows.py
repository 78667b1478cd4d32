"""Rows that came after the first edition of the data, and what a new version of a row changes: itself and its chains.

The hashes are those of `srb build 'en-demo_*' --limit 2`, as in test_content_version_1.py.
"""

import importlib.metadata
import json
import platform
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
import soundfile
import soxr

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.plan import DEMO, Job, Listing, clips, config_inputs, fingerprint, job_named, plan
from speech_robust_bench.builders.row_generator import RowGenerator
from speech_robust_bench.builders.scenario import missing_packages
from speech_robust_bench.builders.scenarios import SCENARIOS, chain, perturbations
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.rows import content_digest

DATA = Path(__file__).parent / "data"
PINNED = json.loads((DATA / "content_later_rows.json").read_text())
FIRST = json.loads((DATA / "content_version_1.json").read_text())["content_sha256"]
CLIPS = 2
PROCESSOR_PROBE = "en-demo_lc3_sev1"


@cache
def loaded():
    corpus, utterances = clips(ConfigName("en", "clean", corpus="demo"), DEMO, CLIPS)
    return corpus, [(utterance, utterance.load()) for utterance in utterances]


def content(job: Job) -> str:
    return content_digest(
        row.sha256 for clip, samples in loaded()[1] for row in RowGenerator((job,), Banks()).rows(clip, samples)
    )


def libraries() -> dict[str, str]:
    """What the bytes of a codec depend on."""
    known = {"libsndfile": soundfile.__libsndfile_version__, "libsoxr": soxr.__libsoxr_version__}
    known["machine"] = platform.machine()
    for package in ("av", "lc3py"):
        try:
            known[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            known[package] = ""
    return known


def of_a_library(config: str) -> bool:
    row = SCENARIOS[parse(config).scenario]
    return any(part.category == "codec" or part.packages for part in (row, *row.parts))


def test_every_row_is_pinned_in_one_of_the_two_files():
    here = {str(job.name) for job in plan(["en-demo_*"], DEMO)}
    missing = {c for c in PINNED["content_sha256"] if missing_packages(SCENARIOS[parse(c).scenario])}
    first = {c for c in FIRST if c.startswith("en-")}
    assert here == first | set(PINNED["content_sha256"]) - missing
    changed = {c for c in first if SCENARIOS[parse(c).scenario].edition != "1"}
    assert first & set(PINNED["content_sha256"]) == changed == {"en-demo_alaw"}


def test_the_content_is_what_it_was():
    pinned = {c: digest for c, digest in PINNED["content_sha256"].items() if not of_a_library(c)}
    assert len(pinned) >= 24
    assert {c for c, digest in pinned.items() if content(job_named(c)) != digest} == set()


def test_the_content_of_codecs_is_what_it_was():
    """LC3 and Opus take square roots by `rsqrtss` and `rsqrtps`, estimates that differ between makers of processors."""
    if libraries() != PINNED["libraries"]:
        pytest.skip(f"pinned with {PINNED['libraries']}, this is {libraries()}")
    pinned = {c: digest for c, digest in PINNED["content_sha256"].items() if of_a_library(c)}
    contents = {c: content(job_named(c)) for c in pinned}
    processors = [pinned, *(pinned | changed for changed in PINNED["other_processors"].values())]
    of_this = [digests for digests in processors if digests[PROCESSOR_PROBE] == contents[PROCESSOR_PROBE]]
    if not of_this:
        pytest.skip("the codecs are not pinned for this kind of processor")
    assert {c for c, digest in of_this[0].items() if contents[c] != digest} == set()


def test_a_new_version_of_a_row_leaves_all_others_as_they_are():
    """`noise` in version 2: its own data changes, that of its chains too, and no other fingerprint or hash."""
    table = {**SCENARIOS, "noise": replace(SCENARIOS["noise"], version=2)}
    for row in SCENARIOS.values():
        if row.parts:
            table[row.name] = chain(row.name, row.help, row.source, row.severities, table)
    corpus, _ = loaded()

    def inputs(job: Job) -> str:
        return fingerprint(config_inputs(job, corpus, Listing("clips", CLIPS, None), Banks(), seed=""))

    jobs = [(str(job.name), job, job_named(str(job.name), table)) for job in plan(["en-demo_*"], DEMO)]
    changed = {parse(name).scenario for name, before, after in jobs if inputs(before) != inputs(after)}
    assert changed == {"noise", "street_call", "mobile_call"}
    assert content(job_named("en-demo_noise_sev3", table)) != FIRST["en-demo_noise_sev3"]
    for name in ("en-demo_noise_musan_sev3", "en-demo_gaussian_sev1"):
        assert content(job_named(name, table)) == FIRST[name]
    assert table["street_call"].edition == "1, noise 2"


def test_the_first_version_is_written_nowhere():
    corpus, _ = loaded()
    for row in perturbations():
        job = job_named(f"en-demo_{row.name}{'_sev1' if row.graded else ''}")
        inputs = config_inputs(job, corpus, Listing("", 0, None), Banks(), seed="")
        if row.name == "alaw":
            assert inputs["scenario_version"] == row.edition == "2"
        else:
            assert "scenario_version" not in inputs
            assert (row.edition, row.rng_key) == ("1", row.name)
