"""Do recognisers follow the spelling of the reference where two spellings sound the same ("any one", "anyone")?

    python benchmarks/spelling.py [--results results/librispeech.parquet]

Nobody can hear which of the two the book has. A recogniser that has only heard the speech writes them without regard to
the reference; one that has learnt the transcripts follows it. Counted are clips of LibriSpeech test-clean whose
reference has one spelling of a pair and whose transcript has as many words of the pair. The difference is that between
the rates of writing the first spelling where the reference has it and where it has the other one, within each pair; the
p-value is that of shuffling the references within each pair.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

# Pairs of which the references of test-clean have both spellings
APART = ("any one", "any body", "some one", "every one", "to day", "to night", "for ever", "up stairs", "down stairs")
PAIRS = {name: name.replace(" ", "") for name in (*APART, "court yard", "north west")}
PAIRS |= {"colour": "color", "honour": "honor", "labour": "labor", "neighbour": "neighbor", "humour": "humor"}
PAIRS |= {"grey": "gray", "theatre": "theater", "centre": "center"}
SHUFFLES = 2_000


@dataclass(frozen=True)
class Place:
    """A place where a pair was spoken: whether the reference and the transcript have its first spelling."""

    pair: str
    reference: bool
    transcript: bool


def places(reference: str, transcript: str) -> Iterator[Place]:
    """The pairs that a clip has in one spelling, and that its transcript has as often, in one spelling too."""
    texts = [" ".join(re.findall(r"[a-z']+", text.lower())) for text in (reference, transcript)]
    for first, second in PAIRS.items():
        counts = [tuple(len(re.findall(rf"\b{form}\b", text)) for form in (first, second)) for text in texts]
        spoken, written = counts
        if sum(spoken) and sum(spoken) == sum(written) and 0 in spoken and 0 in written:
            yield from [Place(first, spoken[0] > 0, written[0] > 0)] * sum(spoken)


def difference(reference: np.ndarray, transcript: np.ndarray, pairs: np.ndarray) -> float:
    """How much oftener the first spelling is written where the reference has it, over pairs (Mantel and Haenszel)."""
    total = weight = 0.0
    for pair in np.unique(pairs):
        with_it, without = transcript[(pairs == pair) & reference], transcript[(pairs == pair) & ~reference]
        if len(with_it) and len(without):
            share = len(with_it) * len(without) / (len(with_it) + len(without))
            total += share * (with_it.mean() - without.mean())
            weight += share
    return total / weight


def follows(rows: list[Place], seed: int = 0) -> tuple[float, float]:
    """The difference, and how often shuffled references have one as large."""
    reference, transcript = (np.array([getattr(row, name) for row in rows]) for name in ("reference", "transcript"))
    pairs = np.array([row.pair for row in rows])
    measured = difference(reference, transcript, pairs)
    rng, members = np.random.default_rng(seed), [np.flatnonzero(pairs == pair) for pair in np.unique(pairs)]
    larger = 0
    for _ in range(SHUFFLES):
        shuffled = reference.copy()
        for indices in members:
            shuffled[indices] = reference[rng.permutation(indices)]
        larger += difference(shuffled, transcript, pairs) >= measured
    return measured, (larger + 1) / (SHUFFLES + 1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("results/librispeech.parquet"), metavar="FILE")
    args = parser.parse_args()
    found: dict[str, list[Place]] = {}
    for row in pq.read_table(args.results, filters=[("config", "=", "clean")]).to_pylist():
        found.setdefault(row["system"], []).extend(places(row["reference"], row["transcript"] or ""))
    print("| system | places | pairs | as the reference, % | difference, points | p |\n|---|---|---|---|---|---|")
    for system, rows in found.items():
        same = np.mean([row.reference == row.transcript for row in rows])
        measured, p = follows(rows)
        cells = (len(rows), len({row.pair for row in rows}), f"{100 * same:.0f}", f"{100 * measured:+.0f}", f"{p:.2f}")
        print("|", " | ".join(map(str, (system, *cells))), "|")
    return 0


if __name__ == "__main__":
    sys.exit(main())
