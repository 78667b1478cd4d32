"""Words and clips that went wrong, and the report card of each model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from speech_robust_bench.core.card_records import CardPart, ReportCard
from speech_robust_bench.report.charts import fixed, series_class
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report, ReportedModel
from speech_robust_bench.report.sections.parts import counted, name, number, score, section
from speech_robust_bench.report.word_study import ComparedClip, Edit
from speech_robust_bench.scoring.word_errors import folded


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
        "Compared with the reference: ",
        tag("del", "missed"),
        ", ",
        tag("ins", "written instead or inserted"),
        ". The worst clip of each scenario.",
    )
    body = tag("div", cards, class_="cards")
    return tag("section", tag("h2", "Worst clips"), tag("p", lead, class_="lead"), body, id="clips")


def _card(report: Report, model: ReportedModel, clip: ComparedClip) -> Html:
    source = model.results.configs[clip.config].source
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
            pieces += [tag("ins", folded(edit.hypothesis))] if edit.hypothesis else []
        pieces.append(" ")
    return tag("p", pieces, class_="diff")


def _of(part: int, whole: int) -> tuple[str, float | None]:
    return (f"{part} of {whole}", part / whole) if whole else ("–", None)


def worst_words(report: Report, language: str) -> Html | None:
    """The words that hard conditions cost most, and those that were inserted most often."""
    figures = []
    for model in report.ranked(language):
        study = model.studies.get(language)
        if not study or not study.words:
            continue
        rows = [
            [
                word.word,
                _of(word.missed, word.said),
                _of(word.clean_missed, word.clean_said),
                ", ".join(text for text, _ in word.recognised_as.most_common(3)) or "nothing",
            ]
            for word in study.words
        ]
        inserted = ", ".join(f"{text} ({count})" for text, count in study.inserted) or "none"
        figures.append(
            tag(
                "figure",
                tag("figcaption", name(model)),
                table(["word", "missed", "missed, clean", "recognised as"], rows),
                tag("p", "Inserted most often (aligned with no word of the reference): ", inserted, class_="lead"),
            )
        )
    if not figures:
        return None
    lead = "Words missed most often, beyond the misses expected from clean speech."
    return section("words", "Worst words", lead, tag("div", figures, class_="columns"))


TITLES = {"length_s": "length, s", "words_per_s": "words per second", "loudness_dbfs": "loudness, dBFS"}
LEAD = (
    "A system report card after Aksenova et al. (2021): errors by kind of word and of clip, inserted words, "
    "and the speakers with the highest WER. One column is clean speech, the other all hard conditions together."
)


def report_cards(report: Report, language: str) -> Html | None:
    """One card per recogniser, to unfold."""
    unfolding = [
        tag("details", tag("summary", model.name), card(model.cards[language]), class_="card")
        for model in report.ranked(language)
        if language in model.cards
    ]
    if not unfolding:
        return None
    return tag("section", tag("h2", "Report cards"), tag("p", LEAD, class_="lead"), unfolding, id="cards")


def card(values: ReportCard) -> Html:
    """The card of one recogniser in one language."""
    parts = list(values.parts)
    figures = [
        _figure("Errors", ["", *parts], _headline(values)),
        _figure("Words missed", ["kind of word", *parts], _kinds(values)),
        *(_figure(f"WER by {title}", ["", *parts], _conditions(values, what)) for what, title in TITLES.items()),
        _figure("Worst speakers", ["speaker", "speech", "clips", "WER, %"], _speakers(values)),
        _figure(
            "Groups of speakers", ["by", "speech", "best", "worst", "gap, points", "too few clips"], _groups(values)
        ),
        _figure("LWERR, women over men", ["data", "category", "severity", "LWERR", "interval", "over"], _lwerr(values)),
        _figure("Inserted words in a row", ["speech", "what", "config", "clip", "written"], _examples(values)),
    ]
    notes = [f"No verdict on this recogniser: {values.no_verdict}"] if values.no_verdict else []
    notes += [f"{kind}: {why}" for kind, why in values.unknown.items()]
    if invented := values.reject:
        rate = fixed(invented.words_per_minute)
        notes.append(
            f"Clips without speech: words in {invented.clips_with_words} of {invented.clips} clips, "
            f"{rate} a minute, {counted(invented.loops, 'loop')}"
            + "".join(f"; “{text}” × {times}" for text, times in invented.phrases)
        )
    listed = tag("ul", [tag("li", note) for note in notes], class_="notes") if notes else None
    return tag("div", tag("div", [f for f in figures if f is not None], class_="columns"), listed)


def _figure(title: str, heads: list[str], rows: list[list[Any]]) -> Html | None:
    return tag("figure", tag("figcaption", title), table(heads, rows)) if rows else None


def _cell(value: float | None, note: str = "", digits: int = 1) -> tuple[Html, float | None]:
    return tag("span", fixed(value, digits), tag("small", f" {note}") if note and value is not None else None), value


def _headline(values: ReportCard) -> list[list[Any]]:
    rows: list[tuple[str, Callable[[CardPart], float | None], int]] = [
        ("WER, %", lambda part: part.wer, 1),
        ("clips", lambda part: part.clips, 0),
        ("clips without an error, %", lambda part: 100 * part.spread.without_error, 0),
        ("WER of the 50th percentile clip, %", lambda part: part.spread.p50, 0),
        ("WER of the 90th percentile clip, %", lambda part: part.spread.p90, 0),
        ("WER of the 99th percentile clip, %", lambda part: part.spread.p99, 0),
        ("standard deviation of WER over clips", lambda part: part.spread.sd, 1),
        ("bursts of inserted words", lambda part: part.hallucination.bursts, 0),
        ("repetition loops", lambda part: part.hallucination.loops, 0),
        ("inserted words", lambda part: part.insertions, 0),
        ("of them in loops", lambda part: part.hallucination.looped_words, 0),
    ]
    parts = values.parts.values()
    return [[title, *(_cell(of(part), digits=digits) for part in parts)] for title, of, digits in rows]


def _kinds(values: ReportCard) -> list[list[Any]]:
    parts = values.parts.values()
    kinds = dict.fromkeys(kind for part in parts for kind in part.kinds)
    cells = {kind: [part.kinds[kind] for part in parts] for kind in kinds}
    return [
        [kind, *(_cell(cell.rate, f"% of {cell.said}") for cell in row)]
        for kind, row in cells.items()
        if any(cell.said for cell in row)
    ]


def _conditions(values: ReportCard, what: str) -> list[list[Any]]:
    rows = []
    for label, bins in values.bins(what).items():
        cells = [bins.get(part) for part in values.parts]
        rows.append([label, *(_cell(c.wer if c else None, counted(c.clips, "clip") if c else "") for c in cells)])
    return rows


def _speakers(values: ReportCard) -> list[list[Any]]:
    return [
        [row.speaker, name, _cell(row.clips, digits=0), _cell(row.wer)]
        for name, part in values.parts.items()
        for row in part.speakers.worst
    ]


def _groups(values: ReportCard) -> list[list[Any]]:
    return [
        [column, name, row.sized(row.best), row.sized(row.worst), _cell(row.gap), ", ".join(row.too_small)]
        for name, part in values.parts.items()
        for column, row in part.groups.items()
        if row.gap is not None
    ]


def _lwerr(values: ReportCard) -> list[list[Any]]:
    rows = []
    for row in values.lwerr:
        severity = "all" if row.severity is None else row.severity
        between = f"{fixed(row.interval[0], 2)} to {fixed(row.interval[1], 2)}" if row.interval else ""
        rows.append([row.corpus, row.category, str(severity), _cell(row.lwerr, digits=2), between, row.over])
    return rows


def _examples(values: ReportCard) -> list[list[Any]]:
    return [
        [name, example.kind, example.config, example.id, example.text]
        for name, part in values.parts.items()
        for example in part.hallucination.examples
    ]


def untranscribed(report: Report) -> Html | None:
    """One row a model and config; None where every clip has a reference."""
    rows = [
        [
            name(model),
            config,
            number(entry.clips, 0),
            number(entry.words_per_minute),
            number(entry.clips - entry.clips_with_words, 0),
            score(entry.difference),
        ]
        for model in report.models
        for config, entry in (model.results.untranscribed or {}).items()
    ]
    if not rows:
        return None
    lead = (
        "Clips without a reference have no error rate. The difference is between the transcript under the scenario and "
        "that of the clean clip: the words that differ, in per cent of the longer transcript."
    )
    heads = ["model", "config", "clips", "words per minute", "clips without words", "difference, %"]
    return section("untranscribed", "Without transcripts", lead, table(heads, rows))
