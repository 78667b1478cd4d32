"""The OOD-ASR table of SUPERB-SG (Tsai et al., 2022, Table 9): error rates out of domain, and their mean.

WER, for Mandarin CER; the average is the unweighted mean of the four tasks. Beside it, what the paper does not have:
WERD, the difference to the clean config of the same language's default corpus (LibriSpeech, MLS), where the run has it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from speech_robust_bench.builders import suites
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.measures import Measure, TableForm


def ood_rows(result: RunResults, tasks: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """A row for each task, and the average; the average only where all tasks were run.

    `tasks` are, by the name that the paper gives them, language and corpus.
    """
    rows, rates, losses = [], [], []
    for task, (language, corpus) in tasks.items():
        rate = _rate(result, f"{language}-{corpus}_clean")
        usual = _rate(result, f"{language}_clean")
        loss = rate - usual if rate is not None and usual is not None else None
        unit = "CER" if language == "zh" else "WER"
        rows.append((f"{task} {unit}", *map(_shown, (rate, usual, loss))))
        rates.append(rate)
        losses.append(loss)
    rows.append(("AVG", _shown(_mean(rates)), "", _shown(_mean(losses))))
    return rows


def _rate(result: RunResults, config: str) -> float | None:
    entry = result.configs.get(config)
    return entry.wer.value if entry and entry.wer else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return ood_rows(result, suites.load("ood").corpora)


OOD = Measure(
    "ood",
    table=TableForm(
        "ood",
        "print error rates out of domain (after `srb run --suite ood`)",
        ("", "out of domain", "in domain", "WERD"),
        _rows,
    ),
)
