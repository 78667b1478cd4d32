"""The clips that lost most, one of each scenario, word by word, to listen to where audio is embedded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speech_robust_bench.report.charts import series_class
from speech_robust_bench.report.html import Html, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import name
from speech_robust_bench.report.word_study import ComparedClip, Edit


def worst_clips(report: Report, language: str) -> Html | None:
    """The clips that lost most, one of each scenario, word by word, to listen to where audio is embedded."""
    cards = []
    for model in report.ranked(language):
        study = model.studies.get(language)
        cards += [_card(report, model, clip) for clip in study.clips] if study else []
    if not cards:
        return None
    lead = tag(
        "span",
        "Against what was said: ",
        tag("del", "missed"),
        ", ",
        tag("ins", "written instead"),
        ". The worst clip of each scenario.",
    )
    body = tag("div", cards, class_="cards")
    return tag("section", tag("h2", "Worst clips"), tag("p", lead, class_="lead"), body, id="clips")


def _card(report: Report, model: ReportedModel, clip: ComparedClip) -> Html:
    source = model.results["configs"][clip.config]["source"]
    sides = [("perturbed", clip.config, clip.edits), ("clean", source, clip.clean_edits)]
    parts = [
        tag(
            "div",
            tag("h4", label),
            _player(report, config, clip.id, f"{label}: {clip.id}"),
            tag("p", "no transcript: the recogniser failed") if label == "perturbed" and clip.failed else _diff(edits),
        )
        for label, config, edits in sides
        if config and edits is not None
    ]
    worse = f"{clip.errors} errors in {clip.words} words, clean {clip.clean_errors}"
    head = tag("h3", name(model), tag("span", clip.config))
    return tag("article", head, tag("p", f"{clip.id}: {worse}", class_="lead"), parts, class_=series_class(model.index))


def _player(report: Report, config: str, clip: str, label: str) -> Html | None:
    source = report.audio.get((config, clip))
    return tag("audio", controls="", preload="none", src=source, aria_label=label) if source else None


def _diff(edits: Sequence[Edit]) -> Html:
    pieces: list[Any] = []
    for edit in edits:
        if edit.kind == "equal":
            pieces.append(" ".join(edit.said))
        else:
            pieces += [tag("del", " ".join(edit.said))] if edit.said else []
            pieces += [tag("ins", " ".join(edit.hypothesis))] if edit.hypothesis else []
        pieces.append(" ")
    return tag("p", pieces, class_="diff")
