"""Attacks: success and WER of every adversarial config beside white noise at the same SNR, and success over SNR."""

from __future__ import annotations

from srb.metrics.attack_success import AttackRow, attack_rows, by_attack
from srb.report.charts import Point, Scale, Series, fixed, line_chart
from srb.report.html import Html, table, tag
from srb.report.report_data import Model, Report
from srb.report.sections.parts import legend, name, number, section

LEAD = (
    "UASR is the share of words (or characters) that an attack destroyed, at most 100 %; TASR the share of its target "
    "that the model wrote. Noise is the WER under white noise at the same SNR: what the perturbation's loudness alone "
    "would do. Only attacks of equal name and bound can be compared."
)
Attacked = list[tuple[Model, list[AttackRow]]]


def attacks(report: Report, language: str) -> Html | None:
    """The section, where some model was attacked."""
    attacked = [(model, rows) for model in report.ranked(language) if (rows := attack_rows(model.results, language))]
    if not attacked:
        return None
    heads = ["model", "attack", "bound dB", "clips", "WER", "noise WER", "UASR words", "UASR chars"]
    targeted = any("tasr" in row.rates for _, rows in attacked for row in rows)
    heads += ["TASR words", "TASR chars", "exact"] if targeted else []
    body = [_cells(model, row, targeted) for model, rows in attacked for row in rows]
    figures = [_curve(attack, attacked) for attack in _attacks(attacked)]
    return section(
        "attacks",
        "Attacks",
        LEAD,
        table(heads, body),
        legend([model for model, _ in attacked]) if any(figures) else None,
        tag("div", [figure for figure in figures if figure], class_="multiples"),
    )


def _cells(model: Model, row: AttackRow, targeted: bool) -> list:
    rates = ["uasr", "uasr_char", *(["tasr", "tasr_char", "exact"] if targeted else [])]
    numbers = [number(value) for value in (row.wer, row.noise_wer, *(row.rates.get(key) for key in rates))]
    return [name(model), row.attack, number(row.snr_db, 0), number(row.clips, 0), *numbers]


def _attacks(attacked: Attacked) -> list[str]:
    return list(dict.fromkeys(attack for _, rows in attacked for attack in by_attack(rows)))


def _curve(attack: str, attacked: Attacked) -> Html | None:
    """Success over SNR: the faintest perturbations on the left."""
    series = []
    for model, rows in attacked:
        points = {row.snr_db: row for row in by_attack(rows).get(attack, []) if row.snr_db is not None}
        if len(points) > 1:
            series.append(Series(model.index, [_point(snr_db, row) for snr_db, row in sorted(points.items())]))
    if not series:
        return None
    chart = line_chart(series, Scale(0, 100), f"success of {attack} over SNR")
    return tag("figure", tag("figcaption", f"{attack}: UASR in % over the SNR in dB"), chart)


def _point(snr_db: float, row: AttackRow) -> Point:
    return Point(snr_db, row.rates["uasr"], f"{row.model}, {snr_db:g} dB: UASR {fixed(row.rates['uasr'])}", None)
