"""How the authors' Table 3 comes out of their quality scores, and how `srb-1` differs from it.

The study behind it: each column of Table 3 is a straight line of the mean raw score over LibriSpeech, TED-LIUM and
Spanish MLS, and the lines' slopes and offsets tell what was done (docs/concepts/difficulty.md).
Nothing scores with this module; it is here so that the claim can be checked by running it: `srb difficulty --explain`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from speech_robust_bench.scoring.difficulty import Difficulty, DifficultyTable, Quality, compute, means, read_quality

QUALITY_FILE = Path(__file__).parent / "data" / "quality_authors.csv"
PESQ_OFFSET = 12.5
# Two PESQ means of other clips ended up in two cells: the printed PESQ of each is the mean of four values, not three.
POLLUTED = ("gaussian_sev4", "pitch_down_sev3")
_CORPORA = ("LibriSpeech", "TEDLIUM", "MLS-ES")
_STRAY = ("librispeech_asr", "tedlium")  # the data set names under which the two stray PESQ means are filed


def quality_scores() -> list[Quality]:
    """The authors' published quality scores."""
    return read_quality(QUALITY_FILE)


def srb_1(lines: Sequence[Quality]) -> DifficultyTable:
    """`srb-1`: the stated rule on LibriSpeech, with the real recordings beside it; no stray rows, no other corpora."""
    recordings = [line for line in lines if line.dataset in ("ami", "chime", "common_voice") or line.key == "clean"]
    english = [line for line in recordings if line.dataset != "TEDLIUM"]
    return compute(means([*(line for line in lines if line.dataset == "LibriSpeech"), *english]), "srb-1")


def paper_table(lines: Sequence[Quality]) -> DifficultyTable:
    """Table 3 as the authors computed it.

    Differences from the stated rule: PESQ has mean 62.5; the Spanish DNSMOS and PESQ of one scenario stayed two rows,
    so that they count twice as much as an English corpus in the average, and the Spanish DNSMOS that have a PESQ row
    beside them count twice in the mean and standard deviation.
    """
    spanish_pesq = {line.key for line in lines if line.dataset == "MLS-ES" and line.measure == "pesq"}
    normal = {}
    for measure, mean in (("dnsmos", 50.0), ("pesq", 50.0 + PESQ_OFFSET)):
        rows = [
            line
            for line in lines
            if line.measure == measure
            and (line.key == "clean" or (line.dataset in _CORPORA + _STRAY and "_sev" in line.key))
        ]
        twice = [line for line in rows if measure == "dnsmos" and line.dataset == "MLS-ES" and line.key in spanish_pesq]
        values = np.array([line.value for line in [*rows, *twice]])
        for line in rows:
            normal[line.dataset, line.key, measure] = mean - 25 * (line.value - values.mean()) / values.std()
    table = {}
    for key in dict.fromkeys(key for _, key, _ in normal if "_sev" in key):
        columns = {
            m: [normal[corpus, key, m] for corpus in _CORPORA if (corpus, key, m) in normal] for m in ("dnsmos", "pesq")
        }
        english = [np.mean([normal[c, key, m] for m in ("dnsmos", "pesq")]) for c in ("LibriSpeech", "TEDLIUM")]
        spanish = [normal["MLS-ES", key, m] for m in ("dnsmos", "pesq") if ("MLS-ES", key, m) in normal]
        table[key] = Difficulty(
            float(np.mean([*english, *spanish])), float(np.mean(columns["dnsmos"])), float(np.mean(columns["pesq"]))
        )
    return DifficultyTable("paper-table3 recomputed", table)
