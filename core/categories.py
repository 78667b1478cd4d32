"""The categories that scenarios fall into: those of the paper's Table 1 first, in its order, then those beyond it."""

from __future__ import annotations

from dataclasses import dataclass

from speech_robust_bench.core.extensions import registered


@dataclass(frozen=True)
class Category:
    """One category. `averaged` ones make the paper's average NWERD; the adversarial ones are scored in WERD."""

    name: str
    meaning: str
    title: str = ""  # the head of its column in Table 1
    label: str = ""  # the same in words, for pages
    averaged: bool = False
    adversarial: bool = False


def _averaged(name: str, title: str, label: str, meaning: str) -> Category:
    return Category(name, meaning, title, label, averaged=True)


CLEAN = "clean"
REJECT = "reject"

_ROWS = (
    Category(CLEAN, "clean speech, the baseline"),
    _averaged("accent", "accent", "Accent", "accented speech"),
    _averaged("audio_proc", "audio proc", "Audio proc.", "audio processing"),
    _averaged("noise_env", "noise (env)", "Env. noise", "environmental noise"),
    _averaged("noise_white", "noise (white)", "White noise", "white noise"),
    _averaged("sfx", "sfx", "Effects", "special effects"),
    _averaged("social_far", "social (far)", "Social, far", "social gatherings, far microphone"),
    _averaged("social_near", "social (near)", "Social, near", "social gatherings, near microphone"),
    _averaged("spatial", "spatial", "Rooms", "rooms and echo"),
    _averaged("synth_speech", "synth speech", "Synthetic", "synthetic speech"),
    Category("adv_ua", "adversarial, utterance-agnostic", "adv (UA)", "Adv., agnostic", adversarial=True),
    Category("adv_us", "adversarial, utterance-specific", "adv (US)", "Adv., specific", adversarial=True),
    Category("adv_auto", "adversarial, the worst of an ensemble", "adv (auto)", "Adv., auto"),
    Category("adv_other", "adversarial, beyond the paper"),
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
for _name, _meaning in registered("CATEGORIES").items():
    CATEGORIES.setdefault(_name, Category(_name, _meaning))
AVERAGED = tuple(row.name for row in _ROWS if row.averaged)  # the nine of Table 1's average
ADVERSARIAL = tuple(row.name for row in _ROWS if row.adversarial)  # its two columns in WERD


def column_title(name: str) -> str:
    """The head of a category's column; a category that the paper does not have goes by its name."""
    known = CATEGORIES.get(name)
    return (known and known.title) or name.replace("_", " ")


def label(name: str) -> str:
    """The category's name as pages and tables print it."""
    known = CATEGORIES.get(name)
    return (known and known.label) or name.replace("_", " ").capitalize()


def meaning(name: str) -> str | None:
    """What a category stands for, None for one that nobody knows."""
    known = CATEGORIES.get(name)
    return known.meaning if known else None
