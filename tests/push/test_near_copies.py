"""A copy with some words changed is flagged; different recognisers, and the same one behind front ends, are not."""

from __future__ import annotations

import itertools
import random
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from speech_robust_bench.core.records import Prediction, RunConfig
from speech_robust_bench.push.evidence import (
    FEWEST,
    SKETCH,
    Evidence,
    Fingerprints,
    copies,
    near_copy,
    sketch,
    wrong_words,
)

MATRIX = Path(__file__).parents[2] / "results" / "matrix-2.parquet"


def fingerprints(transcripts: dict[tuple[str, str], tuple[str, str]]) -> Fingerprints:
    """Of (config, clip) -> (reference, prediction), all English."""
    evidence, entries = Evidence(), {}
    for config, rows in itertools.groupby(sorted(transcripts.items()), key=lambda item: item[0][0]):
        lines = [Prediction(id=clip, text=text, pred_text=said) for (_, clip), (text, said) in rows]
        evidence.add(f"en_{config}", lines)
        entries[f"en_{config}"] = RunConfig(scenario=config.split("_sev")[0], language="en", source="en_clean")
    return Fingerprints(evidence.digests(), evidence.sketches(entries))


@pytest.fixture(scope="module")
def matrix() -> dict[str, dict[tuple[str, str], tuple[str, str]]]:
    """What real systems wrote for human recordings, clean and at severity 3, which all of them have."""
    systems: dict[str, dict[tuple[str, str], tuple[str, str]]] = {}
    for row in pq.read_table(MATRIX, columns=["system", "config", "clip", "reference", "transcript"]).to_pylist():
        key = row["config"], row["clip"]
        if row["config"] == "clean" or row["config"].endswith("_sev3"):
            systems.setdefault(row["system"], {})[key] = row["reference"], row["transcript"]
    return systems


def changed(said: str, rng: random.Random, share: float) -> str:
    return " ".join("other" if rng.random() < share else word for word in said.split())


def test_no_two_systems_of_the_matrix_are_copies(matrix):
    for ours, theirs in itertools.combinations(matrix, 2):
        both = matrix[ours].keys() & matrix[theirs].keys()
        one, other = ({key: matrix[name][key] for key in both} for name in (ours, theirs))
        assert copies(fingerprints(one), {theirs: fingerprints(other)}) == {}, (ours, theirs)


@pytest.mark.parametrize("system", ["moonshine-tiny", "moonshine-base", "pocketsphinx", "vosk-small"])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.15])
def test_a_copy_with_words_changed_is_flagged(matrix, system, share):
    rng = random.Random(0)
    copy = {key: (text, changed(said.upper() + ".", rng, share)) for key, (text, said) in matrix[system].items()}
    flags = copies(fingerprints(copy), {system: fingerprints(matrix[system])})
    assert f"are those of {system}, on the same clips" in flags[system]


@pytest.mark.parametrize("improved", [0.3, 0.6])
def test_a_copy_corrected_with_the_references_is_flagged(matrix, improved):
    rng, original = random.Random(0), matrix["moonshine-tiny"]
    copy = {key: (text, text if rng.random() < improved else said) for key, (text, said) in original.items()}
    assert copies(fingerprints(copy), {"it": fingerprints(original)})


def test_one_that_writes_every_word_there_is_makes_nobody_a_copy(matrix):
    original = matrix["moonshine-tiny"]
    words = " ".join(sorted({word for _, said in original.values() for word in said.split()})[:2000])
    salad = {key: (text, f"{said} {words}") for key, (text, said) in list(original.items())[:100]}
    part = {key: original[key] for key in salad}
    assert len(fingerprints(part).sketches["en"]) >= FEWEST
    assert copies(fingerprints(part), {"salad": fingerprints(salad)}) == {}


def test_wrong_words_are_those_that_the_reference_lacks():
    assert wrong_words("The cat sat.", "the CAT sat") == ()
    assert set(wrong_words("the cat sat", "the mat sat mat")) == {"mat 0", "mat 1"}
    assert set(wrong_words("the cat the", "the the the cat")) == {"the 0"}
    assert wrong_words("the cat", None) == wrong_words("", "...") == ()


def test_errors_of_clean_speech_do_not_count():
    line = Prediction(id="a", text="anne said so", pred_text="ann said so")
    evidence = Evidence()
    evidence.add("en_clean", [line])
    evidence.add("en_noise_sev1", [Prediction(id="a", text="anne said so", pred_text="ann sat so")])
    evidence.add("en_recorded", [line])
    entries = {
        "en_clean": RunConfig(language="en", scenario="clean", source="en_clean"),
        "en_noise_sev1": RunConfig(language="en", scenario="noise", source="en_clean"),
        "en_recorded": RunConfig(language="en", scenario="recorded", source=None),
    }
    assert evidence.sketches(entries) == {"en": sketch(["en_noise_sev1\x1fa\x1fsat 0", "en_recorded\x1fa\x1fann 0"])}


@pytest.mark.parametrize("size", [FEWEST, 300, 20_000])
def test_a_sample_tells_the_share_of_all(size):
    ours = [f"word {number}" for number in range(size)]
    theirs = ours[: round(0.9 * size)] + [f"other {number}" for number in range(size // 2)]
    assert len(sketch(ours)) == min(size, SKETCH)
    assert near_copy(sketch(ours), sketch(theirs))
    assert near_copy(sketch(theirs), sketch(ours))
    assert near_copy(sketch(ours), sketch(theirs[size // 2 :])) is None


def test_a_few_words_say_nothing():
    words = [f"word {number}" for number in range(FEWEST - 1)]
    assert near_copy(sketch(words), sketch(words)) is None
    assert near_copy([], []) is None
