"""The paper's published numbers as a report: its Table 1 as results, its Table 5 as what is known of the models.

The figures that the paper draws from these numbers can so be drawn again and laid beside it.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from support.part_records import part_of

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.report.report_data import Report, ReportedModel, read_metadata

TESTS = Path(__file__).parents[1]
TABLE_1 = TESTS / "scoring" / "data" / "paper_table1.csv"
TABLE_5 = TESTS / "report" / "data" / "paper_table5.csv"
Json = dict[str, Any]


def score(text: str) -> Json | None:
    """A published number; the paper gives no intervals."""
    return {"value": float(text), "interval": None} if text else None


def table_1() -> list[dict[str, str]]:
    """The lines of Table 1."""
    with open(TABLE_1, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def of_language(line: dict[str, str]) -> Json:
    """One line of Table 1 in the form that `srb score` gives one language."""
    nothing = {"wer": None, "nwer": None, "werd": None, "nwerd": None, "members": [], "missing": {}}
    rows = {
        **{c: {**nothing, "nwerd": score(line[c])} for c in AVERAGED if line[c]},
        **{c: {**nothing, "werd": score(line[c])} for c in ADVERSARIAL if line[c]},
    }
    return {
        "clean": {f"{line['lang']}_clean": {**nothing, "wer": score(line["clean_wer"])}},
        "categories": rows,
        "scenarios": {},
        "severities": {},
        "corpora": {},
        "overall": {**nothing, "nwerd": score(line["avg"]), "members": list(rows)},
        "median": nothing,
        "adversarial": {**nothing, "werd": score(line["adv_avg"])},
        "missing": {},
        "slices": {},
        "hallucination": {"insertions_per_word": None, "reject": None},
    }


def results(model: str, languages: dict[str, Json], **more: Any) -> RunResults:
    """A results.json of published numbers."""
    made = {
        "schema": 1,
        "model": model,
        "run": {"spec": model, "revision": None, "options": None, "versions": None},
        "software": {"speech-robust-bench": "the paper"},
        "options": {"level": 0.95, "replicates": 0, "normaliser": "srb-paper-1"},
        "scoring": {"normaliser": "srb-paper-1", "difficulty": {"name": "paper-table3", "sha256": "0" * 64}},
        "speed": {"rtf": None},
        "configs": {},
        "reject": {},
        "languages": languages,
    }
    return part_of(RunResults, made | more)


def paper_report() -> Report:
    """Every model of Table 1, in the languages that it was tested in."""
    about = read_metadata(TABLE_5)
    languages: dict[str, dict[str, Json]] = {}
    for line in table_1():
        languages.setdefault(line["model"], {})[line["lang"]] = of_language(line)
    models = [
        ReportedModel(index, name, results(name, rows), {}, about[name])
        for index, (name, rows) in enumerate(languages.items())
    ]
    return Report(models)
