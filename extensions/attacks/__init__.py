"""Attacks beyond the paper's two: auto, Carlini-Wagner, psychoacoustic, transfer, black-box and language confusion."""

ATTACKS = {
    name: f"{__name__}.rows:{name.upper()}"
    for name in (
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
}
