"""`srb.diagnose`: the system report card of a recogniser: which words, clips and speakers it fails on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import replacing
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.options import Options, normaliser_option, option
from speech_robust_bench.data_source import Place
from speech_robust_bench.report.html import tag
from speech_robust_bench.report.page import document
from speech_robust_bench.report.sections.words import LEAD
from speech_robust_bench.report.sections.words import card as card_section
from speech_robust_bench.scoring.disparity import languages
from speech_robust_bench.scoring.report_card import aligned, card
from speech_robust_bench.scoring.results import load
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.word_errors import read_frequencies, read_names


@dataclass(frozen=True)
class DiagnoseOptions(Options):
    """Of which language, and how words are told apart."""

    language: str | None = option(None, "only this language (default: every language of the run)")
    minimum: int = option(10, "clips that a group needs", metavar="N")
    frequencies: str | None = option(
        None, "how common words are: CSV of word,count (default: as in the run)", metavar="CSV"
    )
    names: str | None = option(
        None, "words that are names, one on a line (default: words with capitals)", metavar="FILE"
    )
    normaliser: str = normaliser_option()


@dataclass(frozen=True)
class Diagnosis:
    """A report card for each language, and what differs between languages."""

    model: str
    cards: dict[str, dict[str, Any]]
    across: dict[str, Any] | None

    def to_json(self) -> str:
        """Everything as JSON."""
        content = {"cards": self.cards, "across": self.across}
        return json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False)

    def write(self, out: Place) -> Path:
        """Write the card as a page (.html) or as data (.json)."""
        path, text = Path(out), self.to_json()
        if path.suffix not in (".html", ".json"):
            raise UserError(f"--out {out}: a card is a page, .html, or data, .json")
        if path.suffix == ".html":
            parts = [tag("section", tag("h2", language), card_section(own)) for language, own in self.cards.items()]
            text = document(tag("div", tag("p", LEAD, class_="lead"), parts), f"System report card: {self.model}")
        with replacing(path) as part:
            part.write_text(text, encoding="utf-8")
        return path


def diagnose(run: Place, diagnose_options: DiagnoseOptions = DiagnoseOptions()) -> Diagnosis:
    """The system report card of a run folder: which words, clips and speakers the recogniser fails on."""
    options, opened = diagnose_options, open_run(Path(run))
    there = sorted({parse(config).language for config in opened.configs})
    if options.language and options.language not in there:
        raise UserError(f"{run} has nothing in '{options.language}'; it has {', '.join(there)}")
    cards = {
        language: card(
            aligned(opened, language, options.normaliser),
            minimum=options.minimum,
            frequency=read_frequencies(options.frequencies, options.normaliser) if options.frequencies else None,
            names=read_names(options.names, options.normaliser) if options.names else None,
        )
        for language in ([options.language] if options.language else there)
    }
    return Diagnosis(opened.model, cards, languages(load(Path(run))) if len(cards) > 1 else None)
