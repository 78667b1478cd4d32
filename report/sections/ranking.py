"""The ranking: models by average NWERD, with intervals, beside what else decides about a recogniser."""

from __future__ import annotations

from collections.abc import Sequence

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED, column_title
from speech_robust_bench.report.charts import spanning, track
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import LESS, all_bounds, axis, clip_count, name, number, score, section
from speech_robust_bench.scoring.material import stand_in_notes
from speech_robust_bench.scoring.ranking import RULE, Standing
from speech_robust_bench.scoring.results import all_entries
from speech_robust_bench.scoring.table1 import clean_wer


def ranking(report: Report, language: str) -> Html | None:
    """The models by average NWERD, with intervals, beside what else decides about a recogniser."""
    standings = report.standings(language)
    models = [model for model, _ in standings]
    scale = spanning(all_bounds([model.average(language) for model in models]))
    level = 100 * report.models[0].results["options"]["level"]
    rows = []
    for last, (model, standing) in enumerate(standings, 1):
        average = model.average(language)
        mark = track(scale, average["value"], average["interval"], model.index, dot=True) if average else ""
        numbers = model.rows(language) or {}
        invented = numbers["hallucination"]["reject"]
        rows.append(
            [
                (str(standing.place or "–"), standing.place or last),
                name(model),
                score(average),
                mark,
                score(clean_wer(numbers)),
                number(_percent(numbers["hallucination"]["insertions_per_word"]), 1, " %"),
                number(invented["words_per_minute"] if invented else None),
                number(model.results["speed"]["rtf"], 3),
                number(_failed(model, language), 0),
            ]
        )
    heads = [
        "",
        "model",
        "NWERD",
        axis(scale),
        "clean WER",
        "inserted words",
        "words/min, no speech",
        "real-time factor",
    ]
    return section(
        "ranking",
        "Ranking",
        "NWERD: points of word error rate lost to hard conditions, each scenario divided by how hard it is, averaged "
        f"over the paper's categories that were run. {LESS} Lines and small figures are {level:.0f} % intervals, over "
        f"{clip_count(models, language)}.",
        table([*heads, "failed clips"], rows, class_="ranking"),
        _not_averaged(standings, language),
    )


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _failed(model: ReportedModel, language: str) -> float:
    entries = all_entries(model.results).values()
    return float(sum(entry["failed"] for entry in entries if entry["language"] == language))


def _not_averaged(standings: Sequence[tuple[ReportedModel, Standing]], language: str) -> Html | None:
    """Which of the paper's categories nobody ran, who has fewer configs than the others, and who is not ranked."""
    models = [model for model, _ in standings]
    missing = set(AVERAGED)
    for model in models:
        missing -= set((model.rows(language) or {})["overall"]["members"])
    notes = []
    if missing:
        notes.append(
            "Not in the average, because not scored: " + ", ".join(column_title(c) for c in AVERAGED if c in missing)
        )
    most = {c for model in models for c, e in model.results["configs"].items() if e["language"] == language}
    for model in models:
        lost = sorted(c for c in most - set(model.results["configs"]) if most_category(models, c) not in ADVERSARIAL)
        if lost:
            notes.append(f"{model.name} lacks {', '.join(lost[:4])}{', ...' if len(lost) > 4 else ''}")
    if any("lacks" in note for note in notes):
        shared = standings[0][1].configs
        notes.append(f"The order is by the {shared} configs with an NWERD that all models share ({RULE}).")
    notes += [f"{model.name} is not ranked: {standing.why}" for model, standing in standings if standing.why]
    notes += stand_in_notes([c for model in models for c in model.results["configs"].values()], language)
    return tag("ul", [tag("li", note) for note in notes], class_="notes") if notes else None


def most_category(models: Sequence[ReportedModel], config: str) -> str:
    """The category that some model's results give a config."""
    return next(m.results["configs"][config]["category"] for m in models if config in m.results["configs"])
