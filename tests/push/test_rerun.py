"""A rerun looks at clean speech as much as at the rest, and tells changes in the direction that pays from chance."""

from __future__ import annotations

import itertools
import random
from collections import Counter

import pytest
from scipy.stats import binom, binomtest

from speech_robust_bench.push.rerun import ALPHA, Rerun, draw, gains, power, sign_flip_p

CATEGORIES = {"en_clean": "clean", "en_noise_sev1": "noise_env", "en_noise_sev3": "noise_env", "en_rir_sev2": "spatial"}
WORDS = "the quick brown fox jumps over the lazy dog again"


def keys(clips):
    return [(config, f"{config}-{n}") for config in CATEGORIES for n in range(clips)]


def test_half_of_the_clips_of_a_rerun_are_clean():
    """The old draw took the clean config as one of all: 1 clip of 13."""
    drawn = draw(keys(100), CATEGORIES, 80, seed=1)
    assert len(set(drawn)) == 80
    assert Counter(CATEGORIES[config] for config, _ in drawn) == {"clean": 40, "noise_env": 20, "spatial": 20}
    assert drawn == draw(keys(100), CATEGORIES, 80, seed=1) != draw(keys(100), CATEGORIES, 80, seed=2)


@pytest.mark.parametrize(
    ("clips", "sample", "clean"), [(10, 1000, 10), (10, 36, 10), (10, 38, 10), (2, 8, 2), (5, 1, 0)]
)
def test_where_one_kind_has_too_few_clips_the_other_fills_up(clips, sample, clean):
    drawn = draw(keys(clips), CATEGORIES, sample, seed=0)
    assert len(set(drawn)) == len(drawn) == min(sample, len(keys(clips)))
    assert sum(config == "en_clean" for config, _ in drawn) == clean


@pytest.mark.parametrize("differences", [[], [0, 0], [3], [-3], [1, 1, 1], [5, -1, 2, 2], [4, 3, -2, -1, 1, 7, -7, 2]])
def test_the_test_is_exact(differences):
    """Against every choice of signs."""
    sums = [sum(s * abs(d) for s, d in zip(signs, differences, strict=True)) for signs in _signs(len(differences))]
    assert sign_flip_p(differences) == pytest.approx(sum(s >= sum(differences) for s in sums) / len(sums))


def _signs(count):
    return list(itertools.product((-1, 1), repeat=count))


@pytest.mark.parametrize(("up", "down"), [(7, 0), (9, 3), (2, 6)])
def test_of_single_words_it_is_the_sign_test(up, down):
    wanted = binomtest(up, up + down, 0.5, alternative="greater").pvalue
    assert sign_flip_p([1] * up + [-1] * down) == pytest.approx(wanted)


@pytest.mark.parametrize(("clips", "changed"), [(25, 0.1), (100, 0.1), (100, 0.125), (200, 0.05), (3, 0.5)])
def test_the_power_is_the_binomial_one(clips, changed):
    """Seven changed clips, all in the direction that pays, have p = 1/128 < 0.01."""
    assert power(clips, changed) == pytest.approx(binom.sf(6, clips, changed), abs=1e-9)


def submission(rng, *, spoilt=0.0, corrected=0.0, machine=0.05):
    """What was sent for 100 clean and 100 noisy clips, and what the rerun gives; half of the noisy ones are wrong."""
    drawn, sent, now = [], [], []
    for kind, config in (("clean", "en_clean"), ("noisy", "en_noise_sev1")):
        for n in range(100):
            heard = WORDS if kind == "clean" or n % 2 else WORDS.replace("fox", "box").replace("again", "")
            other = heard.replace("lazy", "hazy")  # what another machine writes now and then
            told = [other if rng.random() < machine / 2 else heard for _ in range(2)]
            if kind == "clean" and rng.random() < spoilt:
                told[0] = ""
            if kind == "noisy" and heard != WORDS and rng.random() < corrected:
                told[0] = WORDS
            drawn.append((config, str(n)))
            sent.append(told[0])
            now.append(told[1])
    return gains(drawn, [WORDS] * len(drawn), sent, now)


def agreeing(times=60, **change):
    """In how many of some reruns the tests find nothing; the words themselves are close enough."""
    rng = random.Random(7)
    return sum(Rerun("m", None, 0, 200, 190, 2.0, submission(rng, **change)).agrees for _ in range(times)) / times


def test_an_honest_submission_agrees():
    assert agreeing(times=200) >= 1 - 3 * ALPHA


def test_clean_speech_made_worse_is_found():
    """It lowers NWERD. Five of five such submissions passed when only the distance of the words was looked at."""
    assert agreeing(spoilt=0.15) <= 0.1


def test_a_quarter_of_the_errors_corrected_is_found():
    """Three of five such submissions were found before, by the distance of the words."""
    assert agreeing(corrected=0.25) <= 0.1


def test_what_was_found_is_said():
    rng = random.Random(0)
    [found] = Rerun("m", None, 0, 200, 150, 2.0, submission(rng, spoilt=0.5, machine=0.0)).paid
    assert (found.kind, found.clips) == ("clean", 100)
    assert str(found).startswith(
        f"on 100 clean clips the predictions sent have {found.errors} errors more than the model"
    )
    assert "fewer" in str(Rerun("m", None, 0, 200, 150, 2.0, submission(rng, corrected=0.9, machine=0.0)).paid[0])


def test_clips_without_a_reference_tell_nothing_about_errors():
    tests = gains([("en_clean", "a"), ("en_noise_sev1", "b")], [None, "one"], ["x", "one"], ["y", "two"])
    assert {(gain.kind, gain.clips, gain.errors) for gain in tests} == {("clean", 0, 0), ("perturbed", 1, -1)}
