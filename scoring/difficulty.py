"""How hard a scenario is, from speech quality: what NWER and NWERD divide by.

Paper, Section 3.2: DNSMOS and PESQ of a scenario, negated, each brought to mean 50 and standard deviation 25 over the
scenarios, and averaged. A table has one row per key: `noise_sev3`, `rir_sev1`, and for recordings, which have no
severity, `social_ami_far` or `accent_en`. Tables carry a version in their name: `paper-table3` is Table 3 as printed,
`srb-1` follows the stated rule on the LibriSpeech rows of the authors' published quality scores.
"""

from __future__ import annotations

import csv
import difflib
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.untrusted_files import csv_rows, finite, read_text, whole
from speech_robust_bench.scoring.scenario_facts import ATTACKS, VALUES
from speech_robust_bench.scoring.tables import shipped

DEFAULT = "paper-table3"
MEASURES = ("dnsmos", "pesq")


@dataclass(frozen=True)
class Difficulty:
    """One row: the difficulty and the two normalised scores behind it; a score that was not measured is None."""

    avg: float
    dnsmos: float | None = None
    pesq: float | None = None


@dataclass(frozen=True)
class DifficultyTable:
    """A difficulty table: its name (which carries its version) and its rows by key."""

    name: str
    rows: Mapping[str, Difficulty]

    def of(self, key: str) -> float:
        """The difficulty of a key (`noise_sev3`) or of a config (`en-tedlium_noise_sev3`, `es_accent`).

        >>> load("paper-table3").of("en_noise_sev3")
        77.0
        """
        refuse_adversarial(key)
        for candidate in _keys(key):
            if candidate in self.rows:
                return self.rows[candidate].avg
        near = [str(k) for candidate in _keys(key) for k in difflib.get_close_matches(candidate, self.rows, 3)]
        raise UserError(
            f"the difficulty table '{self.name}' has no entry for '{key}'"
            + (f" (nearest: {', '.join(dict.fromkeys(near))})" if near else "")
            + "; give the difficulty as a number, or make a table with `srb difficulty`"
        )

    def to_csv(self) -> str:
        """The table as text, in the format that `load` reads."""
        out = io.StringIO()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(["scenario", "severity", "avg", *MEASURES])
        for key, row in self.rows.items():
            scenario, _, severity = key.partition("_sev")
            cells = ["" if v is None else f"{v:.3f}" for v in (row.avg, row.dnsmos, row.pesq)]
            writer.writerow([scenario, severity, *cells])
        return out.getvalue()


def refuse_adversarial(key: str) -> None:
    """Raise, with the paper's reason, if a key or config is adversarial."""
    if any(candidate.split("_sev")[0] in ATTACKS for candidate in _keys(key)):
        raise UserError(
            f"'{key}' is adversarial and has no difficulty: an attack is made for one model, so the quality of its "
            "audio differs from model to model and normalised scores cannot be compared (paper, Section 3.2); use WERD"
        )


def _keys(name: str) -> list[str]:
    """The keys under which a key or a config may be found, most particular first."""
    keys = [name]
    try:
        config = parse(name)
    except UserError:
        return keys
    values = VALUES.get(config.scenario, ())
    number = values.index(config.value) + 1 if config.value in values else config.severity
    if config.value is not None and not number:
        return keys
    severity = f"_sev{number}" if number else ""
    return [*keys, f"{config.scenario}_{config.language}{severity}", f"{config.scenario}{severity}"]


def resolve(difficulty: float | str, table: str | Path = DEFAULT) -> tuple[float, str]:
    """The difficulty to divide by and its source: a positive number as given, or looked up by key or config.

    >>> resolve("en_noise_sev3")
    (77.0, 'paper-table3')
    >>> resolve(50)
    (50.0, 'given')
    """
    if isinstance(difficulty, str):
        source = load(table)
        value, label = source.of(difficulty), source.name
    elif isinstance(difficulty, (int, float)) and not isinstance(difficulty, bool):
        value, label = float(difficulty), "given"
    else:
        raise UserError(f"difficulty is a number or a key such as 'noise_sev3', not {difficulty!r}")
    if not value > 0:
        raise UserError(f"the difficulty {difficulty!r} is {value:g}; a score can only be divided by a positive one")
    return value, label


def load(name: str | Path = DEFAULT) -> DifficultyTable:
    """A table that comes with SRB by its name, or a CSV file by its path."""
    tables = shipped()
    if str(name) in tables:
        return _read(str(name), tables[str(name)])
    path = Path(name)
    if path.is_file():
        return _read(path.stem.removeprefix("difficulty_"), read_text(path))
    raise UserError(
        f"there is no difficulty table '{name}'; shipped are {', '.join(tables)}, and a path to a CSV file of "
        "`srb difficulty` is taken too"
    )


def _read(name: str, text: str) -> DifficultyTable:
    where = f"difficulty table '{name}'"
    rows = {}
    for line, row in csv_rows(text, ("scenario", "severity", "avg", *MEASURES), where):
        here = f"{where}, line {line}"
        average = finite(row["avg"], here)
        rows[_key(row, here)] = Difficulty(average, *(finite(row[m], here) if row[m] else None for m in MEASURES))
    return DifficultyTable(name, rows)


def _key(row: Mapping[str, str], where: str) -> str:
    """`noise_sev3`, or without a severity `social_ami_far`."""
    return f"{row['scenario']}_sev{whole(row['severity'], where)}" if row["severity"] else row["scenario"]


# --- from quality scores to a table ----------------------------------------------------------------------------------


def compute(quality: Mapping[str, Mapping[str, float]], name: str) -> DifficultyTable:
    """The stated rule: `quality` has the mean DNSMOS and PESQ of each key, and clean speech under `clean`.

    Mean and standard deviation are taken over the scenarios that have every score there is, so that both scores are
    normalised over the same set. Clean speech, and recordings that have no clean original and so no PESQ, are placed on
    the scale that this gives.

    >>> table = compute({"a_sev1": {"dnsmos": 4.0, "pesq": 4.0}, "a_sev2": {"dnsmos": 2.0, "pesq": 2.0}}, "mine-1")
    >>> table.rows["a_sev2"]
    Difficulty(avg=75.0, dnsmos=75.0, pesq=75.0)
    """
    measures = [m for m in MEASURES if any(m in scores for scores in quality.values())]
    base = [k for k, scores in quality.items() if k.split("_")[0] != "clean" and all(m in scores for m in measures)]
    scale = {}
    for measure in measures:
        values = np.array([quality[key][measure] for key in base])
        if len(values) < 2 or not values.std() > 0:
            raise UserError(
                f"a difficulty table needs {' and '.join(measures)} of at least two scenarios that differ; "
                f"there are {len(values)}"
            )
        scale[measure] = values.mean(), values.std()
    rows = {}
    for key, scores in quality.items():
        normal = {m: float(50 - 25 * (scores[m] - scale[m][0]) / scale[m][1]) for m in measures if m in scores}
        rows[key] = Difficulty(sum(normal.values()) / len(normal), normal.get("dnsmos"), normal.get("pesq"))
    return DifficultyTable(name, rows)


def compute_from_ratings(ratings: Mapping[str, float], name: str) -> DifficultyTable:
    """A table from how good people say that a scenario sounds: their mean ratings under the same rule, negated.

    >>> compute_from_ratings({"a_sev1": 9.0, "a_sev2": 5.0}, "people-1").rows["a_sev2"]
    Difficulty(avg=75.0, dnsmos=None, pesq=None)
    """
    values = np.array([rating for key, rating in ratings.items() if key.split("_")[0] != "clean"])
    if len(values) < 2 or not values.std() > 0:
        raise UserError(
            f"a difficulty table needs ratings of at least two scenarios that differ; there are {len(values)}"
        )
    scale = values.mean(), values.std()
    return DifficultyTable(
        name, {k: Difficulty(float(50 - 25 * (r - scale[0]) / scale[1])) for k, r in ratings.items()}
    )


def read_ratings(path: str | Path) -> dict[str, float]:
    """The mean rating of each scenario and severity: a CSV file with the columns scenario, severity and rating.

    A line is what one person said of one clip, or already a mean; more means better, on any scale.
    """
    judged: dict[str, list[float]] = {}
    for line, row in csv_rows(read_text(path), ("scenario", "severity", "rating"), path):
        where = f"{path}, line {line}"
        key = _key(row, where)
        refuse_adversarial(key)
        judged.setdefault(key, []).append(finite(row["rating"], where))
    return {key: float(np.mean(ratings)) for key, ratings in judged.items()}


# The authors' names of what is not called the same here (their published data, `mshah1/speech_robust_bench_public`).
_AUTHORS_NAMES = {
    "voice_conversion_vctk": "tts_en",
    "voice_conversion_bark": "tts_es",
    "itw_ff": "social_chime_far",
    "itw_nf": "social_chime_near",
    "itw_ff_ami": "social_ami_far",
    "itw_nf_ami": "social_ami_near",
    "clean": "clean",
}


@dataclass(frozen=True)
class Quality:
    """One line of a quality file: the mean score of one scenario at one severity in one data set."""

    dataset: str
    key: str
    measure: str
    value: float


def read_quality(path: str | Path) -> list[Quality]:
    """Read quality scores: a CSV file with the columns dataset, augmentation, severity, metric, value.

    Adversarial rows are left out, and Common Voice's American speakers (`accent` at severity 0), who are no scenario.
    """
    lines = []
    for line, row in csv_rows(read_text(path), ("dataset", "augmentation", "severity", "metric", "value"), path):
        where = f"{path}, line {line}"
        scenario, severity, measure = row["augmentation"], whole(row["severity"], where), row["metric"].lower()
        if scenario.startswith(("universal", "pgd")) or (scenario == "accent" and severity == 0):
            continue
        if measure not in MEASURES:
            raise UserError(f"{where}: the metric '{measure}' is none of {', '.join(MEASURES)}")
        key = "accent_en" if scenario == "accent" else _AUTHORS_NAMES.get(scenario, f"{scenario}_sev{severity}")
        lines.append(Quality(row["dataset"], key, measure, finite(row["value"], where)))
    return lines


def means(lines: Iterable[Quality]) -> dict[str, dict[str, float]]:
    """The mean over data sets of each score of each key."""
    values: dict[str, dict[str, list[float]]] = {}
    for line in lines:
        values.setdefault(line.key, {}).setdefault(line.measure, []).append(line.value)
    return {key: {m: float(np.mean(v)) for m, v in scores.items()} for key, scores in values.items()}


def differences(table: DifficultyTable, base: DifficultyTable) -> dict[str, float]:
    """`table` minus `base`, for the keys of both."""
    return {key: table.rows[key].avg - base.rows[key].avg for key in table.rows if key in base.rows}
