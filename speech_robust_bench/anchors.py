"""Fewer clips for the next recogniser, where others were run on everything: `srb anchors` from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path


def choose_anchors(
    runs: Sequence[str | Path],
    suite: str | Path,
    *,
    clips: int = 300,
    clean: str | None = None,
    normaliser: str = "srb-paper-1",
    seed: int = 0,
) -> dict[str, float]:
    """Choose the clips that tell most about the next recogniser, for `srb run --suite FILE`.

    Args:
        runs: three or more run folders, each on all clips of the same configs.
        suite: the JSON file that is written; one that is there with other anchors is not replaced.
        clips: how many clips of perturbed speech, beside all of clean speech.
        clean: which corpus, by its clean config, where the runs have several.
        normaliser: of the transcripts, as in `srb.score`.
        seed: another seed draws other clips.

    Returns:
        By how many points the average NWERD of each run is off, where it is predicted from the others.
    """
    from speech_robust_bench.extensions.sampling import anchors
    from speech_robust_bench.scoring.runs import open_run

    return anchors.choose(
        [open_run(run) for run in runs], Path(suite), clips, normaliser=normaliser, seed=seed, clean=clean
    )


def predict_from_anchors(
    run: str | Path, runs: Sequence[str | Path], suite: str | Path
) -> dict[str, tuple[float, float]]:
    """What all clips would say of a run that has only the anchors: NWERD and its standard error.

    Args:
        run: the run folder of the new recogniser, made with `srb run --suite FILE`.
        runs: the run folders that the anchors were chosen from.
        suite: the file of `choose_anchors`.

    Returns:
        Score and standard error of each category that the anchors stand for, and of the `average` of these.
    """
    from speech_robust_bench.builders.suites import load
    from speech_robust_bench.extensions.sampling import anchors
    from speech_robust_bench.scoring.runs import open_run

    return anchors.predict(open_run(run), [open_run(known) for known in runs], load(os.fspath(suite)).about)
