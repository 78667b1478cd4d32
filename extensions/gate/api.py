"""`srb.gate`: is a new recogniser less robust than the one in use? It ends as soon as that is clear."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.builders.suites import load
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.evaluation import recogniser_of
from speech_robust_bench.extensions.gate.result import GateOptions, GateResult
from speech_robust_bench.extensions.gate.run import baseline_counts, data_of, gate_model, gate_run
from speech_robust_bench.models.runner import RunJob
from speech_robust_bench.options import DataOptions, ModelOptions, Place
from speech_robust_bench.run_results import Results
from speech_robust_bench.scoring.runs import Run, open_run


def gate(
    model: Any,
    baseline: Place | Results,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    out: Place | None = None,
    gate_options: GateOptions = GateOptions(),
    data_options: DataOptions = DataOptions(),
    model_options: ModelOptions = ModelOptions(),
    progress: bool = True,
) -> GateResult:
    """Run a new model on the clips of a baseline until it is clear whether it is less robust.

    Args:
        model: what `srb.evaluate` takes, or the `Results` of a run that was made before.
        baseline: the run folder, or the `Results`, of the model in use.
        configs: names or patterns of the baseline's configs; without any, all with perturbed or hard speech.
        corpus, data: where the clips are, as in `srb.evaluate`; by default, where the baseline was run on them.
        out: the folder for the predictions, by default a temporary one; an interrupted gate continues there.
        gate_options: the allowed rise, the rise to detect, the error rates, and the maximum number of clips.
        data_options, model_options: as in `srb.evaluate`; the suite must be one that the baseline was run on.
        progress: show progress.

    Returns:
        The result: `passed`, `verdict`, `summary()`, `parts`, `markdown()`, `junit()`, `to_json()`.
    """
    old = _run_of(baseline)
    patterns = [configs] if isinstance(configs, str) else configs
    suite = load(model_options.suite) if model_options.suite else None
    counts = baseline_counts(old, patterns, suite, gate_options.normaliser)
    if isinstance(model, Results):
        return gate_run(_run_of(model), old, counts, gate_options)
    if isinstance(model, str) and model.startswith("@"):
        raise UserError("the gate takes one model, not a file of them")
    spec, recogniser = recogniser_of(model, model_options)
    with ExitStack() as stack:
        place: Any  # where the clips come from
        if corpus:
            source = DataSource(corpus, data, None, data_options, model_options.perturb_workers, progress)
            place, where = stack.enter_context(source).configs, source.where
        else:
            place, where = stack.enter_context(data_of(old, os.fspath(data) if data else None))
        job = RunJob(
            spec=spec,
            folder=Path(out) if out else Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="srb-gate-"))),
            where=where,
            name=model_options.name,
            environment=tuple(model_options.env),
            device=model_options.device,
            batch_size=model_options.batch_size,
            recogniser=recogniser,
        )
        return gate_model(job, old, counts, place, gate_options, pay=model_options.pay, quiet=not progress)


def _run_of(place: Place | Results) -> Run:
    return open_run(place.folder if isinstance(place, Results) else Path(place))
