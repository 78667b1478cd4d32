"""Which few configs and clips stand for the whole benchmark? Makes diagnosis/data/lite.json and measures its error.

    python benchmarks/lite_suite.py [--matrix results/matrix-1.parquet] [--out diagnosis/data/lite.json]

The average NWERD is the mean of categories, so every category has about the same number of clips. Ways to choose the
configs of a category:

- `random`: plain stratified sampling, that many configs of the category by chance;
- `balanced`: every scenario, and every severity as often as any other: the severities of a scenario in turn, beginning
  one later with each scenario;
- `published`: in the order of their difficulty in the paper's table, cut into groups of one size, the middle of each;
- `items`: the same in the order of their mean score over the other systems, which is item response theory with one
  parameter, the item's difficulty;
- `clusters`: k-medoids over the vectors of the other systems' scores, each weighted by the size of its cluster.

The last two look at results. They are judged leave one system out, on the configs that several systems have. The first
three look at none, so that no system has to be left out. What the clips add is computed apart, by the delta method, as
for a corpus of the same kind and any size. `balanced` is the suite: with few systems measured, a choice that was fitted
to them says little about the next one.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.until import Cells, read_cells  # noqa: E402
from srb.builders.scenarios import SCENARIOS  # noqa: E402
from srb.core.categories import AVERAGED  # noqa: E402
from srb.core.names import parse  # noqa: E402
from srb.diagnosis.rank_stability import spearman  # noqa: E402
from srb.metrics.difficulty import load  # noqa: E402

CONFIGS = {"noise_white": 4, "noise_env": 12, "spatial": 12, "sfx": 16, "audio_proc": 12}
CLIPS = {"noise_white": 12, "noise_env": 4, "spatial": 4, "sfx": 4, "audio_proc": 4}  # of each config
POOL = 44
DRAWS = 200
Choice = tuple[list[int], np.ndarray]  # the configs by their number, and their weights


def names_of(category: str) -> list[str]:
    """Every config of a category, as scenario and severity."""
    rows = [row for row in SCENARIOS.values() if row.category == category and row.maker == "perturbation"]
    return [f"{row.name}_sev{severity}" for row in rows for severity in row.levels]


def balanced(category: str) -> list[str]:
    """Every scenario, its severities in turn."""
    rows = [row for row in SCENARIOS.values() if row.category == category and row.maker == "perturbation"]
    later = (0, 2, 1, 3)
    chosen = []
    for number in range(CONFIGS[category]):
        turn, place = divmod(number, len(rows))
        chosen.append(f"{rows[place].name}_sev{1 + (place + later[turn]) % 4}")
    return sorted(chosen, key=names_of(category).index)


def middles(order: Sequence[int], size: int) -> Choice:
    """The middle of each of some groups of the same size."""
    groups = np.array_split(np.array(order), size)
    return [int(group[len(group) // 2]) for group in groups], np.array([len(g) for g in groups]) / len(order)


def medoids(scores: np.ndarray, size: int) -> Choice:
    """k-medoids by swaps; each medoid stands for its cluster. Systems are rows."""
    distance = np.abs(scores[:, :, None] - scores[:, None, :]).mean(axis=0)
    chosen = list(np.argsort(distance.sum(axis=0))[:size])
    best, improved = distance[chosen].min(axis=0).sum(), True
    while improved:
        improved = False
        for place in range(size):
            for other in range(len(distance)):
                swapped = [*chosen[:place], other, *chosen[place + 1 :]]
                if (cost := distance[swapped].min(axis=0).sum()) < best - 1e-9:
                    chosen, best, improved = swapped, cost, True
    nearest = distance[chosen].argmin(axis=0)
    return [int(c) for c in chosen], np.bincount(nearest, minlength=size) / len(distance)


def nwerd(cells: Cells) -> float:
    errors, words, clean = cells.clips.sum(axis=0)
    return 100 * 100 * (errors - clean) / words / load().of(cells.config)


def rms(errors: Sequence[float] | np.ndarray) -> float:
    return round(float(np.sqrt(np.mean(np.square(errors)))), 1)


def on_all_configs(systems: dict[str, dict[str, Cells]]) -> dict:
    """How far the chosen configs are from all, for the systems that have all; by ways that look at no result."""
    rng = np.random.default_rng(0)
    whole = {s: cells for s, cells in systems.items() if all(n in cells for c in CONFIGS for n in names_of(c))}
    off: dict[str, dict[str, list[float]]] = {
        way: {c: [] for c in CONFIGS} for way in ("random", "balanced", "published")
    }
    averages: dict[str, list[float]] = {way: [] for way in off}
    for cells in whole.values():
        errors: dict[str, dict[str, np.ndarray]] = {way: {} for way in off}
        for category, size in CONFIGS.items():
            names = names_of(category)
            scores = np.array([nwerd(cells[name]) for name in names])
            draws = [rng.choice(len(names), size, replace=False) for _ in range(DRAWS)]
            chosen, weight = middles(np.argsort([load().of(f"en_{name}") for name in names], kind="stable"), size)
            errors["random"][category] = np.array([scores[draw].mean() - scores.mean() for draw in draws])
            errors["published"][category] = np.array([weight @ scores[chosen] - scores.mean()])
            errors["balanced"][category] = np.array(
                [np.mean([scores[names.index(name)] for name in balanced(category)]) - scores.mean()]
            )
        for way, by_category in errors.items():
            averages[way].extend(np.mean(list(by_category.values()), axis=0))
            for category, values in by_category.items():
                off[way][category].extend(values)
    return {
        "systems": list(whole),
        **{way: {"average": rms(averages[way])} | {c: rms(v) for c, v in off[way].items()} for way in off},
    }


def left_out(systems: dict[str, dict[str, Cells]], severity: int = 3) -> dict:
    """Half of the configs of one severity, chosen on the other systems, against all of them."""
    rng = np.random.default_rng(0)
    names = {c: [n for n in names_of(c) if parse(f"en_{n}").severity == severity] for c in CONFIGS}
    some = {s: cells for s, cells in systems.items() if all(n in cells for ns in names.values() for n in ns)}
    tables = {c: np.array([[nwerd(cells[n]) for n in ns] for cells in some.values()]) for c, ns in names.items()}
    full = np.mean([table.mean(axis=1) for table in tables.values()], axis=0)
    estimates: dict[str, list[np.ndarray]] = {way: [] for way in ("random", "items", "clusters")}
    for way, runs in (("random", DRAWS), ("items", 1), ("clusters", 1)):
        for _ in range(runs):
            estimate = np.zeros(len(some))
            for table in tables.values():
                size = (table.shape[1] + 1) // 2
                for system in range(len(some)):
                    others = np.delete(table, system, axis=0)
                    if way == "random":
                        chosen, weight = list(rng.choice(table.shape[1], size, replace=False)), np.full(size, 1 / size)
                    elif way == "items":
                        chosen, weight = middles(np.argsort(others.mean(axis=0), kind="stable"), size)
                    else:
                        chosen, weight = medoids(others, size)
                    estimate[system] += weight @ table[system, chosen] / len(tables)
            estimates[way].append(estimate)
    return {
        "systems": dict(zip(some, full.round(1).tolist(), strict=True)),
        "configs": sum(map(len, names.values())),
        **{
            way: {
                "average": rms(np.concatenate([estimate - full for estimate in values])),
                "spearman": round(float(np.mean([spearman(e.tolist(), full.tolist()) for e in values])), 2),
            }
            for way, values in estimates.items()
        },
    }


def clip_errors(systems: dict[str, dict[str, Cells]]) -> dict:
    """The standard error that the suite's clips bring into each category and the average: the mean over systems."""
    errors: dict[str, float] = {}
    for category in CONFIGS:
        variances = []
        for cells in systems.values():
            known = [cells[name] for name in names_of(category) if name in cells]
            lost = np.concatenate([c.clips[:, 0] - c.clips[:, 2] for c in known])
            words = np.concatenate([c.clips[:, 1] for c in known])
            scale = np.concatenate([np.full(len(c.clips), 1e4 / load().of(c.config)) for c in known])
            inside = np.concatenate(
                [(c.clips[:, 0] - c.clips[:, 2]) - nwerd(c) * load().of(c.config) / 1e4 * c.clips[:, 1] for c in known]
            )
            freedom = len(lost) / max(1, len(lost) - len(known))
            variances.append(freedom * float(np.mean((scale * inside) ** 2)) / words.mean() ** 2)
        errors[category] = float(np.sqrt(np.mean(variances) / (CONFIGS[category] * CLIPS[category])))
    average = float(np.sqrt(np.sum(np.square(list(errors.values()))))) / len(errors)
    return {"average": round(average, 1), **{category: round(error, 1) for category, error in errors.items()}}


def make(path: Path) -> dict:
    """The suite, with what was measured for it."""
    systems = {s: {c.config.removeprefix("en_"): c for c in cells} for s, cells in read_cells(path, least=3).items()}
    systems = {s: cells for s, cells in systems.items() if len(cells) >= 20}
    words = np.mean([row.clips[:, 1].mean() for cells in systems.values() for row in cells.values()])
    clips = sum(CONFIGS[c] * CLIPS[c] for c in CONFIGS)
    configs_off, clips_off = on_all_configs(systems), clip_errors(systems)
    # of the average, had the categories' errors not happened to cancel
    from_configs = float(np.sqrt(sum(configs_off["balanced"][c] ** 2 for c in CONFIGS))) / len(CONFIGS)
    together = float(np.hypot(from_configs, clips_off["average"]))
    return {
        "name": "lite",
        "version": 1,
        "made_by": "benchmarks/lite_suite.py",
        "configs": {category: balanced(category) for category in AVERAGED if category in CONFIGS},
        "clips": CLIPS,
        "pool": POOL,
        "measured": {
            "words_a_clip": round(float(words), 1),
            "configs": configs_off,
            "left_out": left_out(systems),
            "clips": clips_off,
        },
        "summary": [
            f"{POOL} clean and {clips} perturbed clips, {sum(CONFIGS.values())} configs: all scenarios of the average, "
            "its severities in turn.",
            f"On clips of {words:.0f} words its average NWERD has a standard error of about {together:.0f} points: "
            f"{clips_off['average']:.1f} from the clips,",
            f"{from_configs:.1f} from the configs; less on longer clips. It shows large differences; for smaller ones "
            "take --until.",
        ],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=ROOT / "results/matrix-1.parquet")
    parser.add_argument("--out", type=Path, default=ROOT / "diagnosis/data/lite.json")
    args = parser.parse_args()
    suite = make(args.matrix)
    args.out.write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(suite["measured"], indent=1), *suite["summary"], sep="\n")


if __name__ == "__main__":
    main()
