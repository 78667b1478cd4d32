"""Attacks beyond the paper's two: auto, Carlini-Wagner, psychoacoustic, transfer, black-box and language confusion."""

_NAMES = (
    "auto",
    "genetic",
    "kenansville",
    "transfer",
    "transfer_cw",
    "cw",
    "psychoacoustic",
    "language",
    "language_universal",
)
ATTACKS = {name: f"{__name__}.rows:{name.upper()}" for name in _NAMES}
CATEGORIES = {"adv_auto": "adversarial, the worst of an ensemble", "adv_other": "adversarial, beyond the paper"}
SCENARIOS = {name: f"{__name__}.scenarios:{name.upper()}" for name in _NAMES}
