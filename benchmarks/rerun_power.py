"""How often `srb verify --rerun` tells a changed submission, and how often it wrongs an honest one.

    python benchmarks/rerun_power.py [--draws 400]

The models are the systems of the matrix (results/), whose errors on every clip are known. A rerun differs from what was
sent on 4.6 % of the clips, as on another machine (results/README.md): there another system's errors stand, in either
direction alike. Clips are drawn with replacement, half of them clean, the others evenly over the categories; only the
tests of the errors are tried, not the bound on the words that differ.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT)]

from speech_robust_bench.core.categories import AVERAGED, CLEAN  # noqa: E402
from speech_robust_bench.push.rerun import ALPHA, PAYING, sign_flip_p  # noqa: E402

OTHER_MACHINE = 0.046
SAMPLES = (50, 100, 200, 400)
Clips = dict[str, np.ndarray]  # category -> (clips, 3): errors, those of another system, words
Change = Callable[[str, np.ndarray, np.ndarray, np.random.Generator], np.ndarray]


def read_systems(path: Path) -> list[Clips]:
    """The errors of every system on every clip of the average, beside those of another one."""
    columns = ["system", "config", "category", "clip", "errors", "words"]
    rows = [row for row in pq.read_table(path, columns=columns).to_pylist() if row["category"] in (CLEAN, *AVERAGED)]
    errors = {(row["system"], row["config"], row["clip"]): row["errors"] for row in rows}
    names = sorted({row["system"] for row in rows} - {"pocketsphinx"})
    other = {name: names[i - 1] for i, name in enumerate(names)}
    systems: dict[str, dict[str, list[tuple[int, int, int]]]] = {name: {} for name in names}
    for row in rows:
        if row["system"] in systems:
            beside = errors[other[row["system"]], row["config"], row["clip"]]
            systems[row["system"]].setdefault(row["category"], []).append((row["errors"], beside, row["words"]))
    return [{category: np.array(clips) for category, clips in own.items()} for own in systems.values()]


def honest(kind: str, errors: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """What an honest submission has of the model's errors: all."""
    return errors


def corrected(share: float) -> Change:
    """A share of the wrong clips outside clean speech, replaced by the references."""

    def change(kind: str, errors: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where((rng.random(len(errors)) < share) & (kind != CLEAN), 0, errors)

    return change


def spoilt(share: float) -> Change:
    """A share of the clean clips, every word of them wrong."""

    def change(kind: str, errors: np.ndarray, words: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        return np.where((rng.random(len(errors)) < share) & (kind == CLEAN), np.maximum(errors, words), errors)

    return change


def told(system: Clips, sample: int, change: Change, rng: np.random.Generator) -> bool:
    """Whether a rerun of that many clips tells the submission from the model."""
    others = [category for category in system if category != CLEAN]
    each = [sample // 2 // len(others) + (i < sample // 2 % len(others)) for i in range(len(others))]
    drawn = {CLEAN: system[CLEAN][rng.integers(len(system[CLEAN]), size=sample - sample // 2)]}
    parts = [system[c][rng.integers(len(system[c]), size=n)] for c, n in zip(others, each, strict=True)]
    drawn["perturbed"] = np.concatenate(parts)
    for kind, clips in drawn.items():
        model, beside, words = clips.T
        sent = change(kind, model, words, rng)
        differ = rng.random(len(model)) < OTHER_MACHINE
        way = rng.choice((-1, 1), size=len(model))
        more = sent - model + np.where(differ & (sent == model), way * np.abs(model - beside), 0)
        if any(sign_flip_p(int(pays * d) for d in more) < ALPHA for pays in PAYING[kind]):
            return True
    return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--matrix", type=Path, default=ROOT / "results" / "matrix-2.parquet")
    parser.add_argument("--draws", type=int, default=400, metavar="N", help="samples of each system (default: 400)")
    args = parser.parse_args()
    systems = read_systems(args.matrix)
    changes: dict[str, Change] = {
        "honest": honest,
        "a quarter of the wrong clips corrected": corrected(0.25),
        "a tenth of the wrong clips corrected": corrected(0.1),
        "a fifth of the clean clips spoilt": spoilt(0.2),
        "a tenth of the clean clips spoilt": spoilt(0.1),
    }
    print("| submission | " + " | ".join(f"{sample} clips" for sample in SAMPLES) + " |\n|---|" + "---|" * len(SAMPLES))
    for name, change in changes.items():
        shares = []
        for sample in SAMPLES:
            rng = np.random.default_rng(sample)
            shares.append(np.mean([told(s, sample, change, rng) for s in systems for _ in range(args.draws)]))
        print(f"| {name} | " + " | ".join(f"{100 * share:.1f} %" for share in shares) + " |")


if __name__ == "__main__":
    main()
