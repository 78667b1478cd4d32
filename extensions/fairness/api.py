"""`srb.fairness`: AequeVox's tests on run folders: which groups of speakers lose more, and which words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.extensions.fairness.report import FairnessOptions, assess, choose
from speech_robust_bench.extensions.fairness.word_validation import ValidationOptions, validate_run
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.runs import open_run

__all__ = ["FairnessOptions", "fairness"]


def fairness(
    runs: Sequence[Place],
    configs: Sequence[str] = (),
    *,
    fairness_options: FairnessOptions = FairnessOptions(),
    validate: str | None = None,
    tts: str = "flite",
    snrs_db: Sequence[float] = (10, 6, 2),
    progress: bool = True,
) -> dict[str, Any]:
    """Test whether scenarios hurt some groups of speakers more than others.

    Args:
        runs: run folders; two or more are also compared in pairs.
        configs: only these names or patterns; clean configs always stay.
        fairness_options: groups, thresholds, bootstrap, the population.
        validate: a recogniser; lost and kept words are spoken to it in noise.
        tts, snrs_db: the voice and the SNRs of this validation.
        progress: show progress.
    """
    options = fairness_options
    opened = [choose(open_run(str(run)), configs) for run in runs]
    with progress_bar(not progress) as bar:
        task = bar.add_task("reading transcripts", total=sum(len(run.configs) for run in opened))
        result = assess(opened, options, lambda: bar.advance(task))
    if validate:
        how = ValidationOptions(tts, tuple(snrs_db), options.omega, options.seed)
        result["validation"] = validate_run(opened[0], validate, how)
    return result
