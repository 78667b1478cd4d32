"""What the leaderboard knows: pure functions over verified files, so that the page only has to draw.

Scores are lists [value, low, high] in points. A row is a model in one language; categories are those of the paper's
Table 1 in its order, then those beyond it. The paper's own rows come from its Tables 1 and 5 and are kept apart: they
were measured by the authors, and nobody here has their predictions.
"""

from __future__ import annotations

import csv
import itertools
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

import numpy as np

from speech_robust_bench.core.categories import ADVERSARIAL, AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.result_records import MEASURES, Measures, VerifiedConfig, VerifiedResults
from speech_robust_bench.push.leaderboard import verified_files
from speech_robust_bench.scoring.attack_success import AttackRow, attack_rows
from speech_robust_bench.scoring.bootstrap import holm
from speech_robust_bench.scoring.measures import measures
from speech_robust_bench.scoring.ranking import Candidate, Standing, make_candidate, rank

Score = list[float]
HUNDREDTH = 0.011  # what rounding in a verified file may do to an average
DATA = Path(__file__).parent / "data"
SIZES = {
    "all": (0.0, float("inf")),
    "under 100 M": (0.0, 100.0),
    "100 M to 500 M": (100.0, 500.0),
    "500 M and more": (500.0, float("inf")),
}


@dataclass(frozen=True)
class Entry:
    """A verified model."""

    path: Path
    content: VerifiedResults = field(repr=False)

    @property
    def name(self) -> str:
        """`owner/name`."""
        return self.content.model.full_name

    @property
    def stem(self) -> str:
        """The name of its files, here and on the site."""
        return self.path.stem

    @property
    def params_m(self) -> float | None:
        return self.content.model.params_m

    @cached_property
    def draws(self) -> dict[str, np.ndarray]:
        return verified_files.read_draws(self.path, self.content)

    @cached_property
    def edition(self) -> str:
        """The private edition that it was run on, `private-3fa1c2d4`; empty for the public one."""
        try:
            return verified_files.edition_of(self.content.configs)
        except UserError as problem:
            raise UserError(f"{self.path.name}: {problem}") from None

    @property
    def suite(self) -> str | None:
        """The suite that it was run on, `lite-1`; None for the whole benchmark."""
        return self.content.suite

    @cached_property
    def clean_clips(self) -> dict[str, int]:
        """Language -> clips of its smallest clean config."""
        clean = [config for config in self.content.configs.values() if config.scenario == "clean"]
        return {c.language: min(o.utterances for o in clean if o.language == c.language) for c in clean}

    def clips(self, language: str) -> int:
        """How many predictions were scored, over all configs of a language."""
        return sum(entry.utterances for entry in self.content.configs.values() if entry.language == language)

    def clean(self, language: str) -> float | None:
        """WER on clean speech: the mean over the language's clean configs."""
        rows = self.content.languages[language].clean.values()
        values = [row["wer"][0] for row in rows if "wer" in row]
        return sum(values) / len(values) if values else None

    def category(self, language: str, name: str) -> Score | None:
        """A category's NWERD; WERD for attacks and where there is no difficulty."""
        row = self.content.languages[language].categories.get(name, {})
        return row.get("nwerd") or row.get("werd")

    def overall(self, language: str, measure: str = "nwerd") -> Score | None:
        """The average over the paper's categories: NWERD, or the NWER that ranks."""
        return self.content.languages[language].overall.get(measure)

    def score(self, language: str, standing: Standing) -> Score | None:
        """The NWER that ranks it; with its interval where that is of the same configs."""
        own = self.overall(language, "nwer")
        if standing.nwer is None or (own and abs(own[0] - standing.nwer) <= HUNDREDTH):
            return own
        return [round(standing.nwer, 2)]

    def ranks_by(self, language: str, standing: Standing) -> dict[str, float | None]:
        """What each category counts with when a visitor chooses some: NWER, or WER where there is no difficulty."""
        rows = self.content.languages[language].categories
        wer = {name: row["wer"][0] if "wer" in row else None for name, row in rows.items() if name not in AVERAGED}
        return wer | {name: round(value, 2) for name, value in standing.categories.items()}

    def median(self, language: str) -> Score | None:
        """The robust view: the median NWERD over configs."""
        return (self.content.languages[language].median or {}).get("nwerd")

    def attacks(self, language: str) -> list[AttackRow]:
        """How well attacks on it worked; none, if it was not attacked."""
        wer = {config: entry.wer[0] for config, entry in self.content.configs.items() if entry.wer}
        return attack_rows(
            self.name,
            {
                config: (entry.utterances, entry.attack)
                for config, entry in self.content.configs.items()
                if entry.attack and entry.language == language
            },
            wer,
        )

    def candidate(self, language: str) -> Candidate:
        """Its entry in the ranking."""
        configs = {c: e for c, e in self.content.configs.items() if e.language == language}
        clips = sum(entry.utterances for entry in self.content.configs.values())
        failed = self.content.failed / clips if clips else 0.0
        return make_candidate(self.name, configs, lambda entry: entry.wer[0] if entry.wer else None, failed)


@dataclass(frozen=True)
class Row:
    """A line of the ranking; without a place where the model is not ranked, and `why` says why.

    `score` is the NWER that sorts, `ranks_by` the part of each category in it, `cells` its NWERD as shown.
    """

    entry: Entry
    place: int | None
    clean: float | None
    score: Score | None
    average: Score | None
    median: Score | None
    cells: dict[str, Score | None]
    ranks_by: dict[str, float | None]
    why: str = ""


@dataclass(frozen=True)
class Board:
    """All verified models; `problems` are the files that were left out."""

    entries: tuple[Entry, ...]
    problems: tuple[str, ...] = ()

    @property
    def private_editions(self) -> list[str]:
        """The private editions that models were run on."""
        return sorted({entry.edition for entry in self.entries} - {""})

    def edition(self, name: str) -> Board:
        """The models that were run on one edition; the public one has no name."""
        return Board(tuple(entry for entry in self.entries if entry.edition == name), self.problems if not name else ())

    @cached_property
    def languages(self) -> list[str]:
        known = {language for entry in self.entries for language in entry.content.languages} or {"en"}
        return sorted(known, key=lambda language: (language != "en", language))

    def categories(self, language: str) -> list[str]:
        """Those that any model was scored in."""
        known = self._categories.get(language, set())
        papers = [c for c in (*AVERAGED, *ADVERSARIAL) if c in known]
        return papers + sorted(known - set(papers))

    @cached_property
    def _categories(self) -> dict[str, set[str]]:
        known: dict[str, set[str]] = {}
        for entry in self.entries:
            for language, scores in entry.content.languages.items():
                known.setdefault(language, set()).update(scores.categories)
        return known

    def find(self, name: str) -> Entry:
        for entry in self.entries:
            if entry.name == name:
                return entry
        raise UserError(f"'{name}' is not on the leaderboard")

    @cached_property
    def _standings(self) -> dict[str, list[Standing]]:
        """For each language, all of its models in order.

        Flagged ones are not ranked, and neither are those of a suite beside those of the whole benchmark: places are by
        the configs that all have. Where nobody ran the whole, those of the commonest suite are ranked.
        """
        ordered = {}
        for language in self.languages:
            own = [entry for entry in self.entries if language in entry.content.languages]
            counted = Counter(entry.suite for entry in own)
            suite = None if counted[None] else max(counted, key=lambda label: (counted[label], label), default=None)
            why = {entry.name: _unranked(entry, suite) for entry in own}
            standings = rank([entry.candidate(language) for entry in own if not why[entry.name]])
            ordered[language] = [*standings, *(Standing(name, None, why=why[name]) for name in why if why[name])]
        return ordered

    def rows(self, language: str, categories: Sequence[str] = (), size: str = "all", text: str = "") -> list[Row]:
        """The ranking. With chosen categories the score is the mean of their NWER, and the places are by it."""
        low, high = SIZES[size]
        by_name = {entry.name: entry for entry in self.entries}
        rows, shown = [], self.categories(language)
        for standing in self._standings.get(language, []):
            entry = by_name[standing.name]
            if text.lower() not in entry.name.lower():
                continue
            if size != "all" and (entry.params_m is None or not low <= entry.params_m < high):
                continue
            rows.append(
                Row(
                    entry,
                    standing.place,
                    entry.clean(language),
                    entry.score(language, standing),
                    entry.overall(language),
                    entry.median(language),
                    {category: entry.category(language, category) for category in categories or shown},
                    entry.ranks_by(language, standing),
                    standing.why,
                )
            )
        return _by_categories(rows, categories) if categories else rows


def _by_categories(rows: Sequence[Row], categories: Sequence[str]) -> list[Row]:
    """The rows by the mean of some categories."""
    parts = [[row.ranks_by.get(category) for category in categories] for row in rows]
    scored = [
        replace(row, score=mean_score([None if value is None else [value] for value in part]))
        for row, part in zip(rows, parts, strict=True)
    ]
    ranked = [row for row in scored if row.place and row.score]
    ranked.sort(key=lambda row: (row.score[0] if row.score else 0.0, row.entry.name))
    others = [replace(row, place=None) for row in scored if not (row.place and row.score)]
    return [*(replace(row, place=place) for place, row in enumerate(ranked, 1)), *others]


def _unranked(entry: Entry, suite: str | None) -> str:
    """Why a model is not ranked among those of a suite, or of the whole benchmark; empty if it is."""
    if entry.content.flags:
        return f"flagged: {entry.content.flags[0]}"
    if entry.suite != suite:
        return f"suite {entry.suite}: a part of the configs and clips" if entry.suite else "the whole benchmark"
    return ""


def mean_score(cells: Iterable[Score | None]) -> Score | None:
    """The mean of some scores, if they are all there; without an interval, which theirs do not tell."""
    known = list(cells)
    if not known or any(cell is None for cell in known):
        return None
    return [round(sum(cell[0] for cell in known if cell) / len(known), 2)]


def load(folder: str | Path) -> Board:
    """Read a folder of verified results; what is not verified, or not like the others, is left out and named."""
    folder = Path(folder)
    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder; `srb verify SUBMISSION --out {folder}` makes it")
    entries, problems = [], []
    for path in sorted(folder.glob("*.json")):
        try:
            entries.append(_entry(path))
        except UserError as problem:
            problems.append(str(problem))
    scorings = Counter(_scoring(entry) for entry in entries)
    most = max(scorings, key=lambda scoring: (scorings[scoring], scoring), default=None)
    for entry in entries:
        if _scoring(entry) != most:
            problems.append(f"{entry.path.name}: of another scoring or benchmark version than most models here")
    return Board(tuple(entry for entry in entries if _scoring(entry) == most), tuple(problems))


def _entry(path: Path) -> Entry:
    """A verified file that has all that a page shows."""
    entry = Entry(path, verified_files.read(path))
    try:
        for key in entry.draws:
            row_value(entry, *key.split("/"))
        for language in entry.content.languages:
            entry.candidate(language)
            entry.overall(language)
            grid(entry, language)
        for config in entry.content.configs.values():
            for measure in measures().values():
                measure.of(config)
        _scoring(entry)
        assert entry.edition is not None
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise UserError(f"{path.name}: lacks what the leaderboard shows ({type(error).__name__}: {error})") from None
    return entry


def _scoring(entry: Entry) -> str:
    scoring = entry.content.scoring.replace(intervals=None)  # the scores are alike whatever the intervals
    return f"{scoring!r} {entry.content.benchmark_version}"


# --- one model -------------------------------------------------------------------------------------------------------


def grid(entry: Entry, language: str) -> dict[str, dict[str, dict[int, Measures]]]:
    """Category -> scenario -> severity -> the config's scores; the mean where a language has several corpora."""
    by_category: dict[str, dict[str, dict[int, list[VerifiedConfig]]]] = {}
    for scores in entry.content.configs.values():
        if scores.language == language and scores.scenario != "clean":
            by_scenario = by_category.setdefault(scores.category, {}).setdefault(scores.scenario, {})
            by_scenario.setdefault(scores.severity, []).append(scores)
    order = [*AVERAGED, *ADVERSARIAL, *sorted(by_category)]
    return {
        category: {
            scenario: {level: _merged(rows) for level, rows in sorted(levels.items())}
            for scenario, levels in sorted(by_category[category].items())
        }
        for category in dict.fromkeys(order)
        if category in by_category
    }


def _merged(rows: Sequence[VerifiedConfig]) -> Measures:
    merged = {}
    for measure in MEASURES:
        scores = [getattr(row, measure) for row in rows]
        if score := scores[0] if len(scores) == 1 else mean_score(scores):
            merged[measure] = score
    return merged


# --- several ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PairDifference:
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
    units: int
    why: str = ""  # there is no verdict

    def better(self, alpha: float = 0.05) -> str | None:
        """The name of the model that is more robust, None if they cannot be told apart."""
        if self.why or self.p > alpha or self.difference == 0:
            return None
        return self.a if self.difference < 0 else self.b


def compare(entries: Sequence[Entry], language: str) -> list[PairDifference]:
    """Every pair in every row that both have; p-values corrected over all of them by Holm's method."""
    pairs = []
    for a, b in itertools.combinations(entries, 2):
        if a.edition != b.edition:
            continue
        for key in sorted(set(a.draws) & set(b.draws)):
            of, name, measure = key.split("/")
            units = [paired_units(entry, of, name) for entry in (a, b)]
            if of == language and a.draws[key].shape == b.draws[key].shape and units[0] == units[1]:
                x, y = (row_value(entry, language, name, measure) for entry in (a, b))
                if x is not None and y is not None:
                    draws = a.draws[key].astype(float) - b.draws[key]
                    pairs.append((a, b, name, measure, (x, y), units[0][1], draws))
    tests = [student_test(values[0] - values[1], draws, n) for *_, values, n, draws in pairs]
    corrected = holm([p for _, p in tests])
    return [
        PairDifference(
            a=a.name,
            b=b.name,
            name=name,
            measure=measure,
            value_a=x,
            value_b=y,
            difference=x - y,
            interval=span,
            p=p,
            units=n,
            why=no_verdict(a, language, n) or no_verdict(b, language, n),
        )
        for (a, b, name, measure, (x, y), n, _), (span, _), p in zip(pairs, tests, corrected, strict=True)
    ]


FEWEST_COMPARED = 12  # speakers or clips: below, only the signs of each one's difference would make an exact test


def student_test(difference: float, draws: np.ndarray, units: int) -> tuple[tuple[float, float], float]:
    """The interval of a difference, and its p-value, by Student's t with the standard error of its replicates.

    A bootstrap has the variance with 1/n, hence the factor; of n units no p-value is below 2 / 2^n.
    """
    from scipy.special import stdtr, stdtrit

    freedom = max(units - 1, 1)
    error = float(draws.std()) * math.sqrt(units / freedom)
    half = float(stdtrit(freedom, 0.975)) * error
    p = 2 * float(stdtr(freedom, -abs(difference) / error)) if error else 1.0
    return (difference - half, difference + half), max(p, min(1.0, 2.0 ** (1 - min(units, 1000))))


def paired_units(entry: Entry, language: str, name: str) -> tuple[str, int]:
    """What the replicates of a row drew, and how many; files from before speakers were drawn have clips."""
    rows = entry.content.languages.get(language)
    told = (rows.resampled or {}).get(name) if rows else None
    if told:
        return told.unit, told.units
    return "clips of version 1", entry.clean_clips.get(language, 1)


def no_verdict(entry: Entry, language: str, units: int) -> str:
    """Why a model is called neither more nor less robust than another; empty if it may be."""
    if why := entry.candidate(language).refusal:
        return f"{entry.name}: {why}"
    return f"{units} speakers or clips, fewer than {FEWEST_COMPARED}" if units < FEWEST_COMPARED else ""


def row_value(entry: Entry, language: str, name: str, measure: str) -> float | None:
    rows = entry.content.languages[language]
    own = {**rows.categories, "overall": rows.overall, "adversarial": rows.adversarial or {}}
    score = own.get(name, {}).get(measure)
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
                {name: number(row[name]) for name in (*AVERAGED, *ADVERSARIAL)},
            )
            for row in csv.DictReader(file)
        ]
