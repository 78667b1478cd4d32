"""What the leaderboard knows: pure functions over verified files, so that the page only has to draw.

Scores are lists [value, low, high] in points. A row is a model in one language; categories are those of the paper's
Table 1 in its order, then those beyond it. The paper's own rows come from its Tables 1 and 5 and are kept apart: they
were measured by the authors, and nobody here has their predictions.
"""

from __future__ import annotations

import csv
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from srb.builders.errors import UserError
from srb.metrics.bootstrap import holm, interval, p_value
from srb.push.leaderboard import files

Json = dict[str, Any]
Score = list[float]
DATA = Path(__file__).parent / "data"
PAPER = {
    "accent": "Accent",
    "audio_proc": "Audio proc.",
    "noise_env": "Env. noise",
    "noise_white": "White noise",
    "sfx": "Effects",
    "social_far": "Social, far",
    "social_near": "Social, near",
    "spatial": "Rooms",
    "synth_speech": "Synthetic",
}
ADVERSARIAL = {"adv_ua": "Adv., agnostic", "adv_us": "Adv., specific"}
SIZES = {
    "all": (0.0, float("inf")),
    "under 100 M": (0.0, 100.0),
    "100 M to 500 M": (100.0, 500.0),
    "500 M and more": (500.0, float("inf")),
}


def title(category: str) -> str:
    """A category's name for people."""
    return {**PAPER, **ADVERSARIAL}.get(category) or category.replace("_", " ").capitalize()


@dataclass(frozen=True)
class Entry:
    """A verified model."""

    path: Path
    made: Json = field(repr=False)

    @property
    def name(self) -> str:
        return str(self.made["model"]["name"])

    @property
    def params_m(self) -> float | None:
        return self.made["model"].get("params_m")

    @cached_property
    def draws(self) -> dict[str, np.ndarray]:
        return files.read_draws(self.path, self.made)

    def clean(self, language: str) -> float | None:
        """WER on clean speech: the mean over the language's clean configs."""
        rows = self.made["languages"][language]["clean"].values()
        values = [row["wer"][0] for row in rows if "wer" in row]
        return sum(values) / len(values) if values else None

    def category(self, language: str, name: str) -> Score | None:
        """A category's NWERD; WERD for attacks and where there is no difficulty."""
        row = self.made["languages"][language]["categories"].get(name, {})
        return row.get("nwerd") or row.get("werd")

    def overall(self, language: str) -> Score | None:
        return self.made["languages"][language]["overall"].get("nwerd")


@dataclass(frozen=True)
class Row:
    """A line of the ranking."""

    entry: Entry
    clean: float | None
    score: Score | None
    cells: dict[str, Score | None]


@dataclass(frozen=True)
class Board:
    """All verified models; `problems` are the files that were left out."""

    entries: tuple[Entry, ...]
    problems: tuple[str, ...] = ()

    @cached_property
    def languages(self) -> list[str]:
        found = {language for entry in self.entries for language in entry.made["languages"]} or {"en"}
        return sorted(found, key=lambda language: (language != "en", language))

    def categories(self, language: str) -> list[str]:
        """Those that any model was scored in."""
        found = {c for e in self.entries for c in e.made["languages"].get(language, {}).get("categories", {})}
        known = [c for c in (*PAPER, *ADVERSARIAL) if c in found]
        return known + sorted(found - set(known))

    def find(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise UserError(f"'{name}' is not on the leaderboard")

    def rows(self, language: str, categories: Sequence[str] = (), size: str = "all", text: str = "") -> list[Row]:
        """The ranking: by the mean over the chosen categories, or by the paper's average if none is chosen."""
        low, high = SIZES[size]
        made = []
        for entry in self.entries:
            if language not in entry.made["languages"] or text.lower() not in entry.name.lower():
                continue
            if size != "all" and (entry.params_m is None or not low <= entry.params_m < high):
                continue
            shown = categories or self.categories(language)
            cells = {category: entry.category(language, category) for category in shown}
            score = mean_score([cells[c] for c in categories]) if categories else entry.overall(language)
            made.append(Row(entry, entry.clean(language), score, cells))
        return sorted(made, key=lambda row: (row.score is None, row.score[0] if row.score else 0.0, row.entry.name))


def mean_score(cells: Iterable[Score | None]) -> Score | None:
    """The mean of some scores, if they are all there; without an interval, which theirs do not tell."""
    known = list(cells)
    if not known or any(cell is None for cell in known):
        return None
    return [round(sum(cell[0] for cell in known if cell) / len(known), 2)]


def load(folder: str | Path) -> Board:
    """Read a folder of verified results; what is not verified is left out and named."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; `srb verify SUBMISSION --out {folder}` makes it")
    entries, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            entries.append(Entry(path, files.read(path)))
        except UserError as problem:
            problems.append(str(problem))
    scorings = {(repr(entry.made["scoring"]), entry.made["benchmark_version"]) for entry in entries}
    if len(scorings) > 1:
        raise UserError(f"{folder}: holds results of different scorings or benchmark versions; keep one in each folder")
    return Board(tuple(entries), tuple(problems))


# --- one model -------------------------------------------------------------------------------------------------------


def grid(entry: Entry, language: str) -> dict[str, dict[str, dict[int, Json]]]:
    """Category -> scenario -> severity -> the config's scores; the mean where a language has several corpora."""
    found: dict[str, dict[str, dict[int, list[Json]]]] = {}
    for scores in entry.made["configs"].values():
        if scores["language"] == language and scores["scenario"] != "clean":
            by_scenario = found.setdefault(scores["category"], {}).setdefault(scores["scenario"], {})
            by_scenario.setdefault(scores["severity"], []).append(scores)
    order = [*PAPER, *ADVERSARIAL, *sorted(found)]
    return {
        category: {
            scenario: {level: _merged(rows) for level, rows in sorted(levels.items())}
            for scenario, levels in sorted(found[category].items())
        }
        for category in dict.fromkeys(order)
        if category in found
    }


def _merged(rows: Sequence[Json]) -> Json:
    if len(rows) == 1:
        return rows[0]
    made: Json = {}
    for measure in ("wer", "werd", "nwerd"):
        score = mean_score([row.get(measure) for row in rows])
        if score:
            made[measure] = score
    return made


# --- several ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """One row of one pair: A minus B; negative is better for A."""

    a: str
    b: str
    name: str
    measure: str
    value_a: float
    value_b: float
    difference: float
    interval: tuple[float, float]
    p: float  # corrected for the number of comparisons

    def better(self, alpha: float = 0.05) -> str | None:
        """The name of the model that is more robust, None if they cannot be told apart."""
        if self.p > alpha or self.difference == 0:
            return None
        return self.a if self.difference < 0 else self.b


def compare(entries: Sequence[Entry], language: str) -> list[Difference]:
    """Every pair in every row that both have; p-values corrected over all of them by Holm's method."""
    found = []
    for a, b in itertools.combinations(entries, 2):
        for key in sorted(set(a.draws) & set(b.draws)):
            of, name, measure = key.split("/")
            if of == language:
                values = [_value(one, language, name, measure) for one in (a, b)]
                if None not in values:
                    found.append((a, b, name, measure, values, a.draws[key].astype(float) - b.draws[key]))
    corrected = holm([p_value(draws) for *_, draws in found])
    return [
        Difference(a.name, b.name, name, measure, one, two, one - two, interval(draws), p)
        for (a, b, name, measure, (one, two), draws), p in zip(found, corrected, strict=True)
    ]


def _value(entry: Entry, language: str, name: str, measure: str) -> Any:
    rows = entry.made["languages"][language]
    row = rows[name] if name in ("overall", "adversarial") else rows["categories"].get(name, {})
    score = row.get(measure)
    return score[0] if score else None


# --- the paper's -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Published:
    """A row of the paper's Table 1, with the model's full name and size from its Table 5."""

    language: str
    model: str
    params_m: float | None
    clean: float | None
    average: float | None
    cells: dict[str, float | None]


def published() -> list[Published]:
    """The paper's rows, as they stand there."""
    with (DATA / "paper_table5_models.csv").open(encoding="utf-8", newline="") as file:
        models = {(row["lang"], row["abrv"]): row for row in csv.DictReader(file)}

    def number(text: str | None) -> float | None:
        return float(text) if text else None

    with (DATA / "paper_table1.csv").open(encoding="utf-8", newline="") as file:
        return [
            Published(
                row["lang"],
                known["model"] if (known := models.get((row["lang"], row["model"]))) else row["model"],
                number(known["params_m"]) if known else None,
                number(row["clean_wer"]),
                number(row["avg"]),
                {name: number(row[name]) for name in (*PAPER, *ADVERSARIAL)},
            )
            for row in csv.DictReader(file)
        ]
