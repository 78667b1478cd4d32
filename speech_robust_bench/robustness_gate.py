"""`srb.gate`: is a new recogniser less robust than the one in use? It ends as soon as that is clear."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from speech_robust_bench.evaluation import Corpora, EvaluationData, recogniser_of
from speech_robust_bench.extensions.gate.result import CLIPS, GateResult
from speech_robust_bench.one_clip import Folder
from speech_robust_bench.run_results import Results


def gate(
    model: Any,
    baseline: str | os.PathLike | Results,
    configs: str | Sequence[str] = (),
    *,
    suite: str | None = None,
    worst: float = 0.0,
    detect: float | None = None,
    alpha: float = 0.05,
    clips: int = CLIPS,
    normaliser: str = "srb-paper-1",
    seed: int = 0,
    corpus: Corpora = None,
    data: str | os.PathLike | None = None,
    out: str | os.PathLike | None = None,
    name: str | None = None,
    batch_size: int | None = None,
    device: str | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    file: Folder = None,
    workers: int | None = None,
    pay: bool = False,
    progress: bool = True,
) -> GateResult:
    """Run a new model on the clips of a baseline until it is clear whether it is less robust.

    Args:
        model: what `srb.evaluate` takes, or the `Results` of a run that was made before.
        baseline: the run folder, or the `Results`, of the model in use.
        configs: names or patterns of the baseline's configs; without any, all with perturbed or hard speech.
        suite: instead of configs, a suite that the baseline was run on (`srb ls --suite`).
        worst: the relative rise of the noisy WER that is allowed; 0.05 is 5 %.
        detect: the relative rise that must not be missed; without it, 10 % above `worst`.
        alpha: the share of false alarms, and of rises of `detect` that are missed while there are clips enough.
        clips: how many clips are transcribed at most.
        normaliser, seed: of the scoring, and of the random order of the clips.
        corpus, data, noise_dir, rir_dir, tts, file: where the clips are, as in `srb.evaluate`; if not said, where the
            baseline was run on them.
        out: the folder for the predictions; one that was interrupted is gone on with. Without it a temporary one.
        name, batch_size, device, workers, progress: as in `srb.evaluate`.
        pay: run a paid endpoint although it will cost more than 1 $.

    Returns:
        The result: `passed`, `verdict`, `summary()`, `parts`, `markdown()`, `junit()`, `to_json()`.
    """
    from speech_robust_bench.builders.suites import load
    from speech_robust_bench.extensions.gate.result import GateOptions
    from speech_robust_bench.extensions.gate.run import baseline_counts, data_of, gate_model, gate_run
    from speech_robust_bench.models.runner import RunJob
    from speech_robust_bench.scoring.runs import open_run

    how = GateOptions(worst, detect, alpha, clips, normaliser, seed)
    old = open_run(baseline.folder if isinstance(baseline, Results) else Path(baseline))
    patterns = [configs] if isinstance(configs, str) else configs
    counts = baseline_counts(old, patterns, load(suite) if suite else None, normaliser)
    if isinstance(model, Results):
        return gate_run(open_run(model.folder), old, counts, how)
    spec, recogniser = recogniser_of(model, name, batch_size)
    with ExitStack() as open_things:
        place: Any  # where the clips come from
        if corpus is not None:
            source = EvaluationData(corpus, None, None, noise_dir, rir_dir, tts, file, workers, progress)
            place, where = open_things.enter_context(source).perturbed, source.where
        else:
            place, where = open_things.enter_context(data_of(old, os.fspath(data) if data else None))
        folder = Path(out) if out else Path(open_things.enter_context(tempfile.TemporaryDirectory(prefix="srb-gate-")))
        options = RunJob(
            spec=spec,
            folder=folder,
            where=where,
            name=name,
            device=device,
            batch_size=batch_size,
            recogniser=recogniser,
        )
        assert place is not None
        return gate_model(options, old, counts, place, how, pay=pay, quiet=not progress)
