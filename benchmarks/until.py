"""Does stopping when the interval is narrow move the average? `srb run --until` simulated on the matrix, many times.

    python benchmarks/until.py [--matrix results/matrix-2.parquet] [--trials 400] [--widths 8 4 2]

Each system's cells of the matrix are a population: a config's next clip is drawn from the cells measured for it, with
replacement, and its clean transcript with it. A trial begins with a few clips of every config, adds more where
`models.run_plan` says, and stops when the interval of the average is narrow enough; intervals are by the normal
approximation here, since a bootstrap in every round of thousands of trials takes too long. Against the average over the
whole population: the mean error (the bias, with its standard error), how often the interval holds the truth, and how
many clips equal shares would have taken for the same width.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.models.run_plan import FIRST, grow, shares

ROOT = Path(__file__).parent.parent
Z = 1.96
MOST = 2_000  # clips of a config


@dataclass(frozen=True)
class Cells:
    """A config's clips: errors, words and errors on clean speech."""

    config: str
    category: str
    clips: np.ndarray  # (clips, 3)

    def drawn(self, rng: np.random.Generator) -> np.ndarray:
        """Sums over the first clips of an order by chance: of words, lost words, and their products."""
        errors, words, clean = self.clips[rng.integers(0, len(self.clips), MOST)].T
        lost = errors - clean
        return np.cumsum([words, lost, lost * lost, lost * words, words * words], axis=1)


def trial(
    cells: list[Cells], share: dict[str, float], width: float, rng: np.random.Generator, *, equal: bool = False
) -> tuple[float, bool, int]:
    """The average that is reached, whether its interval holds the truth, and the clips that it took."""
    weight = np.array([share[c.config] for c in cells])
    sums = np.array([c.drawn(rng) for c in cells])
    sizes, there = {c.config: FIRST for c in cells}, {c.config: MOST for c in cells}
    while True:
        counts = np.array(list(sizes.values()))
        words, lost, lost_lost, lost_words, words_words = sums[np.arange(len(cells)), :, counts - 1].T
        rate = lost / words
        residuals = (lost_lost - 2 * rate * lost_words + rate**2 * words_words) / (counts - 1)  # the delta method
        variances = 1e4 * residuals * counts / words**2
        value, half = float(weight @ (100 * rate)), Z * float(np.sqrt(weight**2 @ variances))
        if 2 * half < width or not grow(sizes, dict.fromkeys(share, 1.0) if equal else share, there):
            return value, abs(value - average(cells, share)) <= half, int(counts.sum())


def average(cells: list[Cells], share: dict[str, float]) -> float:
    """The average NWERD over the whole population."""
    return sum(share[c.config] * 100 * (c.clips[:, 0] - c.clips[:, 2]).sum() / c.clips[:, 1].sum() for c in cells)


def read_cells(path: Path, least: int = 5) -> dict[str, list[Cells]]:
    """The systems of a matrix, each with the configs of the average that have enough clips."""
    import pyarrow.parquet as pq

    rows = pq.read_table(path).to_pylist()
    clean = {(row["system"], row["clip"]): row["errors"] for row in rows if row["config"] == "clean"}
    counts: dict[tuple[str, str, str], list[tuple[int, int, int]]] = {}
    for row in rows:
        if row["category"] in AVERAGED:
            key = row["system"], row["config"], row["category"]
            counts.setdefault(key, []).append((row["errors"], row["words"], clean[row["system"], row["clip"]]))
    systems: dict[str, list[Cells]] = {}
    for (system, config, category), clips in counts.items():
        if len(clips) >= least:
            cells = Cells(f"en_{config}", category, np.array(clips, float))
            systems.setdefault(system, []).append(cells)
    return systems


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=ROOT / "results/matrix-2.parquet")
    parser.add_argument("--trials", type=int, default=400)
    parser.add_argument("--widths", type=float, nargs="+", default=[8.0, 4.0, 2.0])
    args = parser.parse_args()
    print(
        "| system | configs | average | width | bias | held | clips | equal shares |\n|---|---|---|---|---|---|---|---|"
    )
    for system, cells in read_cells(args.matrix).items():
        if len(cells) < 20:
            continue
        share = shares({c.config: c.category for c in cells})
        truth = average(cells, share)
        for width in args.widths:
            rng = np.random.default_rng(0)
            reached = np.array([trial(cells, share, width, rng) for _ in range(args.trials)], float)
            equal = np.mean([trial(cells, share, width, rng, equal=True)[2] for _ in range(max(5, args.trials // 20))])
            off = reached[:, 0] - truth
            error = off.std(ddof=1) / np.sqrt(len(off))
            print(
                f"| {system} | {len(cells)} | {truth:.1f} | {width:g} | {off.mean():+.2f} ± {error:.2f} "
                f"| {100 * reached[:, 1].mean():.0f} % | {reached[:, 2].mean():.0f} | {equal:.0f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
