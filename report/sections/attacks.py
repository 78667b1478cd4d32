"""Attacks: success and WER of every adversarial config beside white noise at the same SNR, success over SNR, who is
fooled by whose perturbations, and attacked clips to listen to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speech_robust_bench.core.names import parse
from speech_robust_bench.report.charts import Point, Scale, Series, fixed, line_chart, series_class
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import AttackedClip, Report, ReportedModel
from speech_robust_bench.report.sections.parts import legend, name, number, section
from speech_robust_bench.scoring.attack_success import RATES, AttackRow, attacks_of, by_attack

LEAD = (
    "UASR is the share of words (or characters) that an attack destroyed, at most 100 %; TASR the share of its target "
    "that the model wrote. Noise is the WER under white noise at the same SNR: the effect of the perturbation's energy "
    "alone. SNR is the mean that was reached; heard is the share of the perturbation's time-frequency bins above the "
    "masking threshold of the clip. Compare only attacks with the same name and bound."
)
TRANSFER_LEAD = (
    "UASR in %: a column is the model whose adversarial configs were made, a row the model that transcribed them; "
    "a model under its own attack is framed."
)
TITLES = {
    "snr_db": "SNR dB",
    "above_threshold": "heard %",
    "uasr": "UASR words",
    "uasr_char": "UASR chars",
    "tasr": "TASR words",
    "tasr_char": "TASR chars",
    "exact": "exact",
}
Attacked = list[tuple[ReportedModel, list[AttackRow]]]


def attacks(report: Report, language: str) -> Html | None:
    """The section, where some model was attacked."""
    attacked = [(model, rows) for model in report.ranked(language) if (rows := attacks_of(model.results, language))]
    if not attacked:
        return None
    rates = [rate for rate in RATES if any(rate in row.rates for _, rows in attacked for row in rows)]
    heads = ["model", "attack", "bound, dB", "clips", "WER, %", "noise WER, %", *(TITLES[rate] for rate in rates)]
    body = [_cells(model, row, rates) for model, rows in attacked for row in rows]
    figures = success_curves([(model.index, rows) for model, rows in attacked])
    return section(
        "attacks",
        "Attacks",
        LEAD,
        table(heads, body),
        legend([model for model, _ in attacked]) if figures else None,
        tag("div", figures, class_="multiples"),
        _transfer(attacked),
        _examples([model for model, _ in attacked], language),
    )


def _cells(model: ReportedModel, row: AttackRow, rates: list[str]) -> list:
    numbers = [number(value) for value in (row.wer, row.noise_wer, *(row.rates.get(key) for key in rates))]
    return [name(model), row.attack, number(row.snr_db, 0), number(row.clips, 0), *numbers]


def success_curves(attacked: Sequence[tuple[int, list[AttackRow]]]) -> list[Html]:
    """For each attack success over SNR, the faintest perturbations on the left; `attacked` has each model's number."""
    names = dict.fromkeys(attack for _, rows in attacked for attack in by_attack(rows))
    return [figure for attack in names if (figure := _curve(attack, attacked))]


def _curve(attack: str, attacked: Sequence[tuple[int, list[AttackRow]]]) -> Html | None:
    series = []
    for index, rows in attacked:
        points = {row.snr_db: row for row in by_attack(rows).get(attack, []) if row.snr_db is not None}
        if len(points) > 1:
            series.append(Series(index, [_point(snr_db, row) for snr_db, row in sorted(points.items())]))
    if not series:
        return None
    chart = line_chart(series, Scale(0, 100), f"success of {attack} over SNR")
    return tag("figure", tag("figcaption", f"{attack}: UASR in % over the SNR in dB"), chart)


def _point(snr_db: float, row: AttackRow) -> Point:
    return Point(snr_db, row.rates["uasr"], f"{row.model}, {snr_db:g} dB: UASR {fixed(row.rates['uasr'])}", None)


def _transfer(attacked: Attacked) -> list[Html]:
    """For each attack and bound whose clips were run by another model too: who is fooled by whose clips."""
    cells: dict[tuple[str, str], dict[tuple[int, str], AttackRow]] = {}
    for model, rows in attacked:
        for row in rows:
            parsed = parse(row.config)
            if parsed.model:
                corpus = str(parsed.clean).removesuffix("_clean")
                kind = f"{corpus}, {row.attack}" + (f" at {row.snr_db:g} dB" if row.snr_db is not None else "")
                cells.setdefault((row.attack, kind), {})[model.index, parsed.model] = row
    figures = []
    for (_, kind), cell in sorted(cells.items()):
        owners = sorted({owner for _, owner in cell})
        rows_here = [model for model, _ in attacked if any(index == model.index for index, _ in cell)]
        if any(owner != row.model for (_, owner), row in cell.items()):
            lines = [[name(m), *(_heat(cell.get((m.index, owner)), m, owner) for owner in owners)] for m in rows_here]
            figures.append(tag("figure", tag("figcaption", kind), table(["model", *owners], lines, class_="heat")))
    if not figures:
        return []
    head = [tag("h3", "Transfer"), tag("p", TRANSFER_LEAD, class_="lead")]
    return [*head, tag("div", figures, class_="columns")]


def _heat(row: AttackRow | None, model: ReportedModel, owner: str) -> Html:
    if row is None:
        return tag("td", "", data_sort="")
    share = min(row.rates["uasr"], 100.0)
    class_ = "cell hot" if share > 82 else "cell warm" if share > 50 else "cell"
    own = {"style": f"--v:{share:.0f}%; outline: 2px solid"} if owner == row.model else {"style": f"--v:{share:.0f}%"}
    title = f"{model.name} on clips made for {owner}: WER {fixed(row.wer)}, UASR {fixed(share)}"
    return tag("td", fixed(share), class_=class_, title=title, data_sort=share, **own)


def _examples(models: list[ReportedModel], language: str) -> list[Html]:
    """The most damaged clip of each adversarial config whose audio was at hand."""
    cards = [
        _card(model, clip) for model in models for clip in model.attacked if parse(clip.config).language == language
    ]
    lead = "The most damaged clip of a config, before and after, and what was added, raised so that it can be heard."
    if not cards:
        return []
    return [tag("h3", "Attacked clips"), tag("p", lead, class_="lead"), tag("div", cards, class_="cards")]


def _card(model: ReportedModel, clip: AttackedClip) -> Html:
    sides: list[tuple[str, str, Any]] = [
        ("clean", clip.clean, clip.clean_hypothesis),
        ("attacked", clip.attacked, clip.hypothesis),
        ("added", clip.added, f"raised by {clip.gain_db:.0f} dB"),
    ]
    figures = [
        tag(
            "figure",
            tag("figcaption", tag("b", label), ": ", said if said is not None else "no transcript"),
            tag("img", alt=f"spectrogram, {label}: {clip.id}", loading="lazy", src=clip.spectrograms[label]),
            tag("audio", controls="", preload="none", src=source, aria_label=f"{label}: {clip.id}"),
        )
        for label, source, said in sides
    ]
    said = f"{clip.id}: {clip.text}" + (f" (target: {clip.target})" if clip.target else "")
    head = tag("h3", name(model), tag("span", clip.config))
    return tag("article", head, tag("p", said, class_="lead"), figures, class_=series_class(model.index))
