"""The categories that scenarios fall into: those of the paper's Table 1 first, in its order, then those beyond it.

A category has one name, in files, flags, tables and pages, and a label that explains it where there is room.
"""

from __future__ import annotations

from dataclasses import dataclass

from speech_robust_bench.core.extensions import registered


@dataclass(frozen=True)
class Category:
    """One category. `averaged` ones make the paper's average NWERD; the adversarial ones are scored in WERD."""

    name: str
    label: str
    averaged: bool = False
    adversarial: bool = False


CLEAN = "clean"
REJECT = "reject"

_ROWS = (
    Category(CLEAN, "clean speech, the baseline"),
    Category("accent", "accented speech", averaged=True),
    Category("audio_proc", "audio processing", averaged=True),
    Category("noise_env", "environmental noise", averaged=True),
    Category("noise_white", "white noise", averaged=True),
    Category("sfx", "special effects", averaged=True),
    Category("social_far", "social gatherings, far microphone", averaged=True),
    Category("social_near", "social gatherings, near microphone", averaged=True),
    Category("spatial", "rooms and echo", averaged=True),
    Category("synth_speech", "synthetic speech", averaged=True),
    Category("adv_ua", "adversarial, utterance-agnostic", adversarial=True),
    Category("adv_us", "adversarial, utterance-specific", adversarial=True),
    Category("codec", "encoding formats"),
    Category("transmission", "transmission losses"),
    Category("capture", "level control, sample rates, beginnings and ends cut off"),
    Category("noise_other", "noise, beyond the paper"),
    Category("chain", "several degradations, one after the other"),
    Category("extreme", "speech rate and loudness extremes"),
    Category(REJECT, "no speech at all: every word is a hallucination"),
    Category("aequevox", "AequeVox fairness transformations"),
    Category("custom", "the user's own"),
)

# ours, then those of extensions
CATEGORIES: dict[str, Category] = {row.name: row for row in _ROWS}
for _name, _label in registered("CATEGORIES").items():
    CATEGORIES.setdefault(_name, Category(_name, _label))
AVERAGED = tuple(row.name for row in _ROWS if row.averaged)  # the nine of Table 1's average
ADVERSARIAL = tuple(row.name for row in _ROWS if row.adversarial)  # its two columns in WERD


def label(name: str) -> str:
    """What a category stands for; a category that nobody registered is its own label."""
    return CATEGORIES[name].label if name in CATEGORIES else name
