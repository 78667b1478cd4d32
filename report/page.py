"""The page: the sections in a template with its style and its script inside, so that it needs nothing but itself.

A content security policy forbids every request and every script but ours, which it knows by its hash.
"""

from __future__ import annotations

import hashlib
import json
from base64 import b64encode
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing
from speech_robust_bench.report.html import Html, join, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.attacks import attacks
from speech_robust_bench.report.sections.overview import categories, languages, ranking, trade_off
from speech_robust_bench.report.sections.parts import measure_sections, provenance
from speech_robust_bench.report.sections.severities import correlates, curves, heat_map, perturbations
from speech_robust_bench.report.sections.speakers import speakers
from speech_robust_bench.report.sections.words import report_cards, untranscribed, worst_clips, worst_words
from speech_robust_bench.scoring.measures import measures

# The order of the sections of one language; those of measures stand in between.
SCORES = (ranking, categories, heat_map, perturbations, curves, trade_off, correlates, speakers, attacks)
WORDS = (worst_words, worst_clips, report_cards)
_TEMPLATE = files("speech_robust_bench.report") / "template"


def write(report: Report, path: str | Path, title: str = "Speech Robust Bench") -> tuple[Path, Path]:
    """Write the page, and beside it the report cards as JSON; return where they are."""
    path = Path(path)
    if path.suffix == ".json":
        raise UserError(
            f"--out {path}: the report is a page, name it .html; its report cards go to {path} by themselves"
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    cards_path = path.with_suffix(".json")
    cards = {
        model.name: {language: card.as_json() for language, card in model.cards.items()} for model in report.models
    }
    data = json.dumps(cards, indent=1, ensure_ascii=False)
    for where, text in ((path, page(report, title)), (cards_path, data)):
        with replacing(where) as part:
            part.write_text(text, encoding="utf-8")
    return path, cards_path


def page(report: Report, title: str) -> str:
    """The whole page as text."""
    added = [path for measure in measures().values() for path in measure.page_files]
    return document(_body(report), title, added)


def document(body: Html, title: str, added: Sequence[Path] = ()) -> str:
    """A whole HTML page around any body, with further CSS and JavaScript files."""
    style, script = (
        "".join([_read(name), *(path.read_text("utf-8") for path in added if path.suffix == Path(name).suffix)])
        for name in ("style.css", "script.js")
    )
    template = _read("page.html")
    digest = b64encode(hashlib.sha256(script.encode()).digest()).decode()
    fills = {"digest": digest, "style": style, "script": script, "title": tag("span", title), "body": body}
    head, *rest = template.split("{{")  # one pass: what is filled in is never looked at again
    return head + "".join(fills[name] + tail for name, tail in (piece.split("}}", 1) for piece in rest))


def _read(name: str) -> str:
    return (_TEMPLATE / name).read_text(encoding="utf-8")


def _body(report: Report) -> Html:
    parts = []
    several = len(report.languages) > 1
    for language in report.languages:
        body = [section for build in (*SCORES, *measure_sections(), *WORDS) if (section := build(report, language))]
        parts.append(tag("div", tag("h1", language) if several else None, body, id=f"language-{language}"))
    return join([*parts, languages(report), untranscribed(report), provenance(report)])
