"""Which few configs and clips stand for the benchmark? Makes builders/data/suites/lite.json and measures its error.

    python benchmarks/lite_suite.py [--matrix results/matrix-2.parquet] [--out LITE.json] [--draws 40]

The average NWERD is the mean of categories, so every category has about the same number of clips. Ways to choose:

- `stratified`: all configs of the average, as many clips of each category, by chance;
- `lite`: every scenario, and every severity as often as any other: the severities of a scenario in turn, beginning one
  later with each scenario; the clips as `srb run --suite lite` takes them;
- `items`: configs in the order of their mean score over the other systems, which is item response theory with one
  parameter, the item's difficulty, cut into groups of one size, the middle of each;
- `clusters`: k-medoids over the configs' scores on the other systems, each weighted by the size of its cluster;
- `anchors`: single clips of single configs, and a prediction from the other systems: `srb anchors`
  (extensions/sampling/anchors.py). It needs the other systems' transcripts of the same clips.

Each is judged on the systems that have all configs of the average: what it says from 300 clips, clean ones included,
against the average over all cells, for one system after the other. Neither its results nor those of the same weights
behind another front end are used in the choice. `lite` is the suite: it looks at no result, so that it works with any
corpus.

`floor` is what nobody has: anchors with the regression fitted to all cells of the system itself, each cell drawn in
proportion to what that regression misses there. No choice of single clips with a linear prediction is nearer.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks.matrix import stored_rows  # noqa: E402
from speech_robust_bench.builders.scenarios import SCENARIOS  # noqa: E402
from speech_robust_bench.builders.suites import Suite, SuiteFile  # noqa: E402
from speech_robust_bench.core.categories import AVERAGED  # noqa: E402
from speech_robust_bench.core.records import convert  # noqa: E402
from speech_robust_bench.extensions.sampling.anchors import CellErrors, Estimate, Z, draw, estimate  # noqa: E402
from speech_robust_bench.extensions.sampling.stability import spearman  # noqa: E402

CONFIGS = {"noise_white": 4, "noise_env": 12, "spatial": 12, "sfx": 16, "audio_proc": 12}
CLIPS = {"noise_white": 12, "noise_env": 4, "spatial": 4, "sfx": 4, "audio_proc": 4}  # of each config
POOL = 44
BUDGET = 300
Choice = tuple[list[int], np.ndarray]  # configs by their number, and their weights


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


def about() -> dict:
    """The suite: what does not depend on anything measured."""
    return {
        "name": "lite",
        "version": 1,
        "made_by": "benchmarks/lite_suite.py",
        "languages": ["en"],
        "configs": {category: balanced(category) for category in AVERAGED if category in CONFIGS},
        "clips": CLIPS,
        "pool": POOL,
    }


def read_cells(path: Path) -> CellErrors:
    """The systems of a matrix that have all configs of the average on all clips."""
    rows = stored_rows(path)
    found = {(row["system"], row["config"], row["clip"]): row["errors"] for row in rows}
    words = {row["clip"]: row["words"] for row in rows if row["config"] == "clean"}
    configs = {name: category for category in CONFIGS for name in names_of(category)}
    systems = [
        system
        for system in sorted({row["system"] for row in rows})
        if all((system, config, clip) in found for config in ("clean", *configs) for clip in words)
    ]
    errors = np.array([[[found[s, c, clip] for clip in words] for c in ("clean", *configs)] for s in systems], float)
    return CellErrors(
        models=tuple(systems),
        clean_config="en_clean",
        configs=tuple(f"en_{name}" for name in configs),
        categories=tuple(configs.values()),
        clips=tuple(words),
        errors=errors[:, 1:],
        clean=errors[:, 0],
        words=np.array(list(words.values()), float),
    )


def score(cells: CellErrors, system: int, config: int, clips: Sequence[int] | np.ndarray) -> float:
    """NWERD of a config on some clips."""
    return cells.points[config] * cells.lost[system, config, clips].sum() / cells.words[clips].sum()


Way = Callable[[CellErrors, int, int, np.random.Generator], np.ndarray]  # cells, system, clips -> by category


def weights_of(name: str, systems: Sequence[str]) -> str:
    """The system without its front end: `wpe-moonshine-tiny` is `moonshine-tiny`."""
    return min((other for other in systems if name.endswith(other)), key=len)


def without(cells: CellErrors, system: int) -> list[int]:
    """The systems with other weights."""
    weights = [weights_of(name, cells.models) for name in cells.models]
    return [other for other, own in enumerate(weights) if own != weights[system]]


def middles(order: Sequence[int] | np.ndarray, size: int) -> Choice:
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


def stratified(cells: CellErrors, system: int, clips: int, rng: np.random.Generator) -> np.ndarray:
    share, perturbed = len(cells.averaged), clips - len(cells.words)
    estimates = []
    for place, member in enumerate(cells.members):
        own = np.flatnonzero(member)
        count = perturbed // share + (place < perturbed % share)
        sizes = np.full(len(own), count // len(own))
        sizes[rng.choice(len(own), count % len(own), replace=False)] += 1
        drawn = [rng.choice(len(cells.words), min(size, len(cells.words)), replace=False) for size in sizes]
        scores = [score(cells, system, config, part) for config, part in zip(own, drawn, strict=True) if len(part)]
        estimates.append(np.mean(scores))
    return np.array(estimates)


def lite(cells: CellErrors, system: int, clips: int, rng: np.random.Generator) -> np.ndarray:
    """The suite itself, on clips with other names in every draw; always of 300 clips."""
    suite, names = (
        Suite("lite", convert(about(), SuiteFile)),
        [f"{number:016x}" for number in rng.integers(2**60, size=len(cells.words))],
    )
    estimates = []
    for category in cells.averaged:
        configs = [f"en_{member}" for member in suite.about.configs[category]]
        taken = [(cells.configs.index(config), suite.choose(config, names)) for config in configs]
        estimates.append(
            np.mean([score(cells, system, config, [names.index(name) for name in part]) for config, part in taken])
        )
    return np.array(estimates)


def by_configs(choose: Callable[[np.ndarray, int], Choice]) -> Way:
    """As many configs of each category as in `lite`, chosen on the other systems' scores; always of 300 clips."""
    known: dict[tuple[int, str], Choice] = {}  # the choice is the same in every draw

    def estimate(cells: CellErrors, system: int, clips: int, rng: np.random.Generator) -> np.ndarray:
        estimates, pool = [], rng.choice(len(cells.words), POOL, replace=False)
        for category, member in zip(cells.averaged, cells.members, strict=True):
            own, size = np.flatnonzero(member), CONFIGS[category]
            if (system, category) not in known:
                known[system, category] = choose(cells.scores[np.ix_(without(cells, system), own)], size)
            chosen, weights = known[system, category]
            drawn = [rng.choice(pool, CLIPS[category], replace=False) for _ in chosen]
            estimates.append(weights @ [score(cells, system, own[c], d) for c, d in zip(chosen, drawn, strict=True)])
        return np.array(estimates)

    return estimate


def predict(cells: CellErrors, system: int, clips: int, rng: np.random.Generator) -> Estimate:
    others = cells.of(without(cells, system))
    drawn = draw(others, clips - len(cells.clips), rng)
    return estimate(others, drawn, cells.errors[system].ravel()[drawn.cells], cells.clean[system])


def anchors(cells: CellErrors, system: int, clips: int, rng: np.random.Generator) -> np.ndarray:
    return predict(cells, system, clips, rng).by_category


def missed(cells: CellErrors, system: int) -> np.ndarray:
    """Points of the average NWERD by which a regression on the other systems is wrong, in each cell.

    It is fitted to all cells of the system itself: no prediction from a part of them is better.
    """
    cost = np.repeat(cells.points * cells.members.mean(axis=0) / cells.words.sum(), len(cells.clips))
    clean = np.tile(cells.clean[system], len(cells.configs))
    known = np.vstack([cells.errors[without(cells, system)].reshape(-1, len(cost)), clean])
    own = cells.errors[system].ravel()
    slopes = np.linalg.lstsq((known * cost).T, own * cost, rcond=None)[0]
    return cost * (own - slopes @ known)


def floor(cells: CellErrors, clips: int) -> float:
    """The mean error that no choice of single clips with a linear prediction goes below, in points.

    A sample of n cells, drawn in proportion to what each misses, has the standard error sum(missed) / sqrt(n); the mean
    absolute error of a normal distribution is sqrt(2 / pi) of its standard deviation.
    """
    sums = [np.abs(missed(cells, system)).sum() for system in range(len(cells.models))]
    return round(float(np.sqrt(2 / np.pi) * np.mean(sums) / np.sqrt(clips - len(cells.clips))), 1)


WAYS: dict[str, Way] = {
    "stratified": stratified,
    "lite": lite,
    "items": by_configs(lambda scores, size: middles(np.argsort(scores.mean(axis=0), kind="stable"), size)),
    "clusters": by_configs(medoids),
    "anchors": anchors,
}


def judge(cells: CellErrors, way: Way, clips: int, draws: int) -> dict:
    """How far a way is from everything: mean absolute errors in points, and the rank correlation."""
    rng = np.random.default_rng(0)
    shape = range(draws), range(len(cells.models))
    off = np.array(
        [[way(cells, system, clips, rng) - cells.by_category[system] for system in shape[1]] for _ in shape[0]]
    )
    average, truth = off.mean(axis=2), cells.by_category.mean(axis=1)
    ranks = [spearman((truth + row).tolist(), truth.tolist()) for row in average]
    return {
        "clips": clips,
        "average": round(float(np.abs(average).mean()), 1),
        "bias": round(float(average.mean()), 1),
        "spearman": round(float(np.mean(ranks)), 2),
        **{
            name: round(float(error), 1)
            for name, error in zip(cells.averaged, np.abs(off).mean(axis=(0, 1)), strict=True)
        },
    }


def held(cells: CellErrors, clips: int, draws: int) -> dict:
    """How many of the 95 % intervals of anchors hold the average over all cells, in per cent."""
    rng, truth = np.random.default_rng(0), cells.by_category.mean(axis=1)
    hits = np.zeros(len(cells.models))
    for system in range(len(cells.models)):
        said = [predict(cells, system, clips, rng) for _ in range(draws)]
        hits[system] = np.mean([abs(one.average - truth[system]) <= Z * one.error for one in said])
    return {"all": round(100 * float(hits.mean())), "of_the_worst_system": round(100 * float(hits.min()))}


def make(path: Path, draws: int) -> dict:
    """The suite, with what was measured for it."""
    cells = read_cells(path)
    measured = {name: judge(cells, way, BUDGET, draws) for name, way in WAYS.items()}
    more = {
        f"{name} {clips}": judge(cells, WAYS[name], clips, draws)
        for clips in (600, 1_200, 2_400)
        for name in ("stratified", "anchors")
    }
    words = float(cells.words.mean())
    own = measured["lite"]
    worst = max(own[category] for category in CONFIGS)
    return {
        **about(),
        "measured": {
            "systems": dict(zip(cells.models, cells.by_category.mean(axis=1).round(1).tolist(), strict=True)),
            "words_a_clip": round(words, 1),
            "ways": measured,
            "more_clips": more,
            "anchors_held": {str(clips): held(cells, clips, draws) for clips in (300, 600, 1_200)},
            "floor": {str(clips): floor(cells, clips) for clips in (300, 600, 1_200)},
            "draws": draws,
        },
        "summary": [
            f"{POOL} clean and {BUDGET - POOL} perturbed clips, {sum(CONFIGS.values())} configs: all scenarios of the "
            "average, its severities in turn.",
            f"On clips of {words:.0f} words its average NWERD is off by {own['average']:.1f} points in the mean of "
            f"{len(cells.models)} systems, a category by up to {worst:.0f},",
            f"and ranks them with a Spearman's rho of {own['spearman']:.2f}; less on longer clips. It shows large "
            "differences; for smaller ones take --until.",
            "Measured for English alone.",
        ],
    }


def print_table(measured: dict) -> None:
    """The ways side by side, as Markdown."""
    print(f"{len(measured['systems'])} systems: {measured['systems']}")
    print("95 % intervals of anchors that hold, by clips:", measured["anchors_held"])
    print("nearer than this no such way can be, by clips:", measured["floor"])
    rows = {**measured["ways"], **measured["more_clips"]}
    heads = list(next(iter(rows.values())))
    print("| way |", " | ".join(heads), "|\n|" + "---|" * (len(heads) + 1))
    for name, row in rows.items():
        print(f"| {name.split()[0]} |", " | ".join(str(row[head]) for head in heads), "|")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=ROOT / "results/matrix-2.parquet")
    parser.add_argument("--out", type=Path, default=ROOT / "builders/data/suites/lite.json")
    parser.add_argument("--draws", type=int, default=40)
    args = parser.parse_args()
    suite = make(args.matrix, args.draws)
    args.out.write_text(json.dumps(suite, indent=1) + "\n", encoding="utf-8")
    print_table(suite["measured"])
    print(*suite["summary"], sep="\n")


if __name__ == "__main__":
    main()
