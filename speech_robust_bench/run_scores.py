"""`srb.read_run` and `srb.score_run`: the results of a run folder. `srb.score`: the error rate of some transcripts."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.run_results import Results, Score
from speech_robust_bench.scoring.results import score_run as score_predictions
from speech_robust_bench.scoring.score_options import ScoreOptions


def score_run(
    run: str | os.PathLike, score_options: ScoreOptions = ScoreOptions(), *, allow_changed: bool = False
) -> Results:
    """Score a run folder and write its results.json.

    Args:
        run: the folder, `runs/<model>`.
        score_options: normaliser, unit, difficulty table, bootstrap and so on.
        allow_changed: accept predictions that were edited after the run.
    """
    score_predictions(Path(run), score_options, allow_changed=allow_changed)
    return Results(Path(run), allow_changed=allow_changed)


def read_run(folder: str | os.PathLike, *, allow_changed: bool = False) -> Results:
    """The results of a run folder, made by `srb run` or by `Results.save`; it is scored if it was not yet."""
    return Results(Path(folder), allow_changed=allow_changed)


def score(
    references: Sequence[str],
    predictions: Sequence[str],
    *,
    normaliser: str = "srb-paper-1",
    unit: str | None = None,
    language: str | None = None,
    ids: Sequence[str] | None = None,
    replicates: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Score:
    """The error rate of some transcripts, with its bootstrap interval.

    Args:
        references, predictions: texts that pair one to one.
        normaliser: "srb-paper-1", "whisper-en", "whisper-basic" or "none".
        unit: "word", "char" or "char-nospace"; by default what the language calls for.
        language: of the texts, for the unit.
        ids: of the utterances; two scores over the same ids and seed are resampled alike.
        replicates, level, seed: of the bootstrap.
    """
    from speech_robust_bench.scoring import bootstrap
    from speech_robust_bench.scoring.scoring import align

    counts = align(references, predictions, normaliser=normaliser, unit=unit, language=language)
    if not len(counts):
        raise UserError("there is nothing to score: references and predictions are empty")
    names = [str(i) for i in range(len(counts))] if ids is None else list(ids)
    low = high = None
    if replicates:
        draws = bootstrap.weights(names, None, replicates=replicates, seed=seed)
        low, high = bootstrap.interval(bootstrap.rates(draws, [counts])[:, 0], level)
    return Score("all", "wer", counts.rate, low, high, counts.totals())
