"""Which few configs rank recognisers as the whole benchmark does? Makes builders/data/suites/fast.json.

    python benchmarks/fast_subset.py [--out builders/data/suites/fast.json]

Categories are chosen on the paper's Table 1 (tests/scoring/data/paper_table1.csv, nine English models), among those
that are made from clean speech and so need no other corpus. Of each size, the best set is the one whose least
correlation with the average over all nine categories is highest when any one model is left out. Within a category, two
configs of different scenarios are taken whose difficulty is nearest to the category's mean. Of the sets within 0.01 of
the best, the one is recommended that keeps the ranking best in the simulation. The six Spanish models play no part in
the choice.

The paper gives no scores of single configs. What one or two configs of a category cost in correlation is therefore
simulated: the NWERD of a model on a config is that of Table 1 times a lognormal deviation for its scenario and a half
as large one for its severity, and WER is then counted on some hundred clips. The deviation is an assumption, so several
are tried, and the number of clips is varied.
"""

from __future__ import annotations

import argparse
import csv
import json
from functools import cache
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.sampling.stability import spearman, subsets
from speech_robust_bench.scoring.difficulty import load

ROOT = Path(__file__).parent.parent
TABLE1 = ROOT / "tests/scoring/data/paper_table1.csv"
TOLERANCE = 0.01
DEVIATIONS = (0.1, 0.2, 0.4)
CLIPS = (50, 100, 200, 500, 2620)
WORDS = 20  # of a LibriSpeech clip
SPREAD = 1.0  # of the clips' own difficulty: variance over mean squared
TRIALS = 300
TYPICAL = (0.2, 200)  # the deviation and the clips by which sets are compared


@cache
def table1(language: str) -> tuple[list[str], np.ndarray, np.ndarray]:
    """Models, NWERD by category (nan where there is none) and clean WER."""
    with open(TABLE1, encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["lang"] == language]
    scores = [[float(row[c]) if row[c] else np.nan for c in AVERAGED] for row in rows]
    return [row["model"] for row in rows], np.array(scores), np.array([float(row["clean_wer"]) for row in rows])


def made_from_clean() -> list[str]:
    """The categories that need no corpus of their own."""
    needs = {row.category for row in SCENARIOS.values() if row.maker == "recording"}
    return [c for c in AVERAGED if c not in needs]


@cache
def levels(category: str) -> dict[tuple[str, int], float]:
    """The difficulty of each config of a category."""
    difficulty = load()
    difficulties = {}
    for row in SCENARIOS.values():
        for severity in row.levels if row.category == category else ():
            key = f"{row.name}_sev{severity}" if severity else row.name
            try:
                difficulties[row.name, severity] = difficulty.of(f"en_{key}")
            except UserError:  # no difficulty: not in the paper's averages
                continue
    return difficulties


def best_of_each_size(scores: np.ndarray) -> list[dict]:
    """The best set of categories of each size, judged by the least correlation without any one model."""
    columns = [AVERAGED.index(c) for c in made_from_clean()]
    best = []
    everything = np.nanmean(scores, axis=1)
    for size in range(1, len(columns) + 1):
        ranked = [
            (least, spearman(scores[:, chosen].mean(axis=1).tolist(), everything.tolist()), chosen)
            for least, chosen in subsets(scores, size, among=columns)
        ]
        least, rho, chosen = max(ranked, key=lambda subset: subset[:2])
        best.append(
            {
                "categories": [AVERAGED[i] for i in chosen],
                "spearman": round(rho, 3),
                "spearman_least_without_one_model": round(least, 3),
            }
        )
    return best


def recommend(best: list[dict], trials: int) -> dict:
    """Of the sets within the tolerance, the one that keeps the ranking best when configs and clips are simulated."""
    top = max(subset["spearman_least_without_one_model"] for subset in best)
    rng = np.random.default_rng(1)
    for subset in best:
        chosen = {category: choose_configs(category) for category in subset["categories"]}
        rhos = [simulate(chosen, TYPICAL[0], TYPICAL[1], rng) for _ in range(trials)]
        subset["spearman_simulated"] = round(float(np.mean(rhos)), 3)
    near = [subset for subset in best if subset["spearman_least_without_one_model"] >= top - TOLERANCE]
    return max(near, key=lambda subset: subset["spearman_simulated"])


def choose_configs(category: str) -> list[str]:
    """Two configs of different scenarios (one if there is one scenario) of about the category's mean difficulty."""
    difficulties = levels(category)
    middle = np.mean(list(difficulties.values()))
    chosen: dict[str, str] = {}
    for (name, severity), _ in sorted(difficulties.items(), key=lambda item: abs(item[1] - middle)):
        chosen.setdefault(name, f"{name}_sev{severity}" if severity else name)
    return list(chosen.values())[:2]


def simulate(chosen: dict[str, list[str]], deviation: float, clips: int, rng: np.random.Generator) -> float:
    """One draw: the correlation of the ranking on the chosen configs with that of Table 1."""
    _, scores, clean = table1("en")
    estimates = []
    hard = rng.gamma(1 / SPREAD, SPREAD, clips)  # the same clips for all
    words = np.maximum(rng.poisson(WORDS, clips), 1)

    def measured(wer: np.ndarray) -> np.ndarray:
        chance = np.clip(wer[:, None] / 100 * hard, 0, 0.98)
        return 100 * rng.binomial(words, chance).sum(axis=1) / words.sum()

    clean_wer = measured(clean)
    for category, configs in chosen.items():
        true = scores[:, AVERAGED.index(category)]
        values = []
        known = {f"{n}_sev{s}" if s else n: d for (n, s), d in levels(category).items()}
        for config in configs:
            off = rng.lognormal(0, deviation, len(true)) * rng.lognormal(0, deviation / 2, len(true))
            wer = clean + true * off * known[config] / 100
            values.append(100 * (measured(wer) - clean_wer) / known[config])
        estimates.append(np.mean(values, axis=0))
    return spearman(np.mean(estimates, axis=0).tolist(), np.nanmean(scores, axis=1).tolist())


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--out", default=str(ROOT / "builders/data/suites/fast.json"))
    args = options.parse_args()
    measured = measure()
    Path(args.out).write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(measured, indent=1))


def measure(trials: int = TRIALS) -> dict:
    """Everything that fast.json holds."""
    models, scores, _ = table1("en")
    best = best_of_each_size(scores)
    chosen_set = recommend(best, trials)
    categories = chosen_set["categories"]
    columns = [AVERAGED.index(c) for c in categories]
    chosen = {category: choose_configs(category) for category in categories}
    spanish_models, spanish, _ = table1("es")
    part = spanish[:, columns].mean(axis=1).tolist()
    accent = AVERAGED.index("accent")
    without_accent = np.nanmean(np.delete(spanish, accent, axis=1), axis=1)
    rng = np.random.default_rng(0)
    simulated = [
        {
            "deviation": deviation,
            "clips": clips,
            "spearman_mean": round(float(np.mean(rhos)), 3),
            "spearman_low": round(float(np.quantile(rhos, 0.05)), 3),
        }
        for deviation in DEVIATIONS
        for clips in CLIPS
        for rhos in [[simulate(chosen, deviation, clips, rng) for _ in range(trials)]]
    ]
    return {
        "name": "fast",
        "made_by": "benchmarks/fast_subset.py",
        "configs": chosen,
        "measured": {
            "source": "SRB Table 1, NWERD by category against the average of all categories",
            "models": len(models),
            "spearman": chosen_set["spearman"],
            "spearman_least_without_one_model": chosen_set["spearman_least_without_one_model"],
            "other_language": {
                "language": "es",
                "models": len(spanish_models),
                "spearman": round(spearman(part, np.nanmean(spanish, axis=1).tolist()), 3),
                "spearman_without_accent": round(spearman(part, without_accent.tolist()), 3),
            },
            "best_of_each_size": best,
        },
        "simulated": {
            "source": "Table 1 with a lognormal deviation per model and scenario, counted on so many clips of 20 words",
            "trials": trials,
            "rows": simulated,
        },
    }


if __name__ == "__main__":
    main()
