"""`srb.gate`: is a new recogniser less robust than the one in use? It ends as soon as that is clear.

Clips, configs and data come from the baseline's run folder, transcripts from the new recogniser.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.builders.config_sources import open_data
from speech_robust_bench.builders.configs import Config, ConfigSource
from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.builders.live_config import reopen
from speech_robust_bench.builders.suites import AnchorsFile, Suite, load
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.progress import progress
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.evaluation import recogniser_of
from speech_robust_bench.extensions.gate.result import GateOptions, GateResult
from speech_robust_bench.extensions.gate.units import Pair, choose_configs, decide, plan
from speech_robust_bench.models.run_plan import check_cost, cost_per_minute
from speech_robust_bench.models.runner import RunJob, Runner
from speech_robust_bench.options import DataOptions, ModelOptions, Place
from speech_robust_bench.run_results import Results
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.verdict_guard import refusal_of_counts

RESULT = "gate.json"


def gate_model(
    options: RunJob,
    baseline: Run,
    counts: Sequence[ConfigCounts],
    data: ConfigSource,
    how: GateOptions,
    *,
    pay: bool = False,
    quiet: bool = False,
) -> GateResult:
    """Run a new model on clips of a baseline until it is clear whether it is less robust; gate.json keeps the result.

    Its predictions go to a run folder like any other. One that was interrupted is gone on with, and one that came to
    its end is begun anew, because a model of the same name may be another one by now. Clips that fail leave it without
    a verdict, and are tried again by the next gate.
    """
    _refuse_degenerate(baseline, counts, how.normaliser)
    chosen = plan(counts, how.clips, how.seed, how.resample)
    _refuse_failed(baseline, chosen.pairs)
    configs = {each.config: _same(data.config(each.config), baseline, options.where) for each in counts}
    seconds = [row.duration for config in configs.values() for row in config.rows]
    price = cost_per_minute(options.spec)
    check_cost(price * chosen.clips * sum(seconds) / max(len(seconds), 1) / 60, pay, "--clips")
    _begin(options.folder)
    runner = Runner(replace(options, retry_failed=True))
    try:
        with progress(quiet) as bar:
            task = bar.add_task("clips", total=chosen.clips)

            def transcribe(pairs: Sequence[Pair]) -> Mapping[Pair, int]:
                for name, ids in _by_config(pairs).items():
                    runner.run(configs[name], only=ids)
                    bar.advance(task, len(ids))
                run = open_run(options.folder)
                _refuse_failed(run, pairs, run.model, "gate it again, which tries them again")
                return errors_of(run, pairs, how.normaliser)

            result = decide(options.name or options.spec.folder, baseline.model, counts, how, transcribe)
    finally:
        runner.close()
    write_atomically(options.folder / RESULT, json.dumps(result.to_json(), indent=2) + "\n")
    return result


def gate_run(run: Run, baseline: Run, counts: Sequence[ConfigCounts], how: GateOptions) -> GateResult:
    """The same for a model that was run before: it may be run on more than the baseline, not on less."""
    for name in (each.config for each in counts):
        if name not in run.configs:
            raise UserError(f"{run.folder} has no {name}, which the baseline has; run it, or name the configs to use")
        known, about = (each.about.config(name) for each in (baseline, run))
        if not known.same_data(about):
            raise _other_data(name, baseline, str(run.folder))
    _refuse_degenerate(baseline, counts, how.normaliser)
    played = plan(counts, how.clips, how.seed, how.resample).pairs
    for each in (baseline, run):
        _refuse_failed(each, played)
    result = decide(run.model, baseline.model, counts, how, lambda pairs: errors_of(run, pairs, how.normaliser))
    if result.passed:  # what is worse may well be degenerate
        _refuse_degenerate(run, counts, how.normaliser)
    return result


def _refuse_degenerate(run: Run, counts: Sequence[ConfigCounts], normaliser: str) -> None:
    """Refuse a recogniser on which there is no verdict (`scoring.ranking`), on the configs that are compared."""
    compared = {each.config for each in counts} | {each.source for each in counts if each.source in run.configs}
    if why := refusal_of_counts(run.counts(sorted(filter(None, compared)), normaliser=normaliser)):
        raise UserError(f"no verdict, because of {run.model}: {why}")


def errors_of(run: Run, pairs: Sequence[Pair], normaliser: str) -> dict[Pair, int]:
    """The errors of a run on some clips."""
    errors: dict[Pair, int] = {}
    for name, ids in _by_config(pairs).items():
        counts = run.read(name).count(normaliser)
        known = dict(zip(counts.ids, counts.counts.errors, strict=True))
        for clip in ids:
            if clip not in known:
                raise UserError(
                    f"{run.folder}: no clip '{clip}' in {name}, which the baseline has; run it on the same clips"
                )
            errors[name, clip] = int(known[clip])
    return errors


def _refuse_failed(
    run: Run,
    pairs: Sequence[Pair],
    name: str | None = None,
    way_out: str = "try them again with `srb run --retry-failed`",
) -> None:
    """A clip that failed, say because an endpoint was down, has no errors to compare: all its words would be lost."""
    failed: list[Prediction] = []
    for config, ids in _by_config(pairs).items():
        compared = set(ids)
        lines = run.read(config).lines
        failed += [line for line in lines if line.pred_text is None and line.id in compared]
    if failed:
        raise UserError(
            f"{name or run.folder}: {len(failed)} of the {len(pairs)} clips to compare failed, the first with: "
            f"{failed[0].error or 'no reason given'}; {way_out}"
        )


def baseline_counts(
    baseline: Run, patterns: Sequence[str] = (), suite: Suite | None = None, normaliser: str = "srb-paper-1"
) -> list[ConfigCounts]:
    """The baseline's errors on the clips to play: in the configs asked for, or in the configs and clips of a suite."""
    if suite is None:
        return baseline.counts(choose_configs(baseline, patterns), normaliser=normaliser)
    if patterns:
        raise UserError("say either configs or a suite")
    if isinstance(suite.about, AnchorsFile):
        raise UserError("the gate chooses clips by itself; anchors are for `srb anchors --predict`")
    names = [name for name in choose_configs(baseline) if parse(name).level in suite.members]
    if not names:
        raise UserError(f"{baseline.folder} has no config of the suite '{suite.name}'; run the baseline on it first")
    return [_part(counts, suite) for counts in baseline.counts(names, normaliser=normaliser)]


def _part(counts: ConfigCounts, suite: Suite) -> ConfigCounts:
    """The clips of a config that a suite takes, of those that the baseline was run on."""
    chosen = suite.choose(counts.config, counts.ids)
    places = np.array([place for place, clip in enumerate(counts.ids) if clip in chosen], dtype=int)
    ids = [counts.ids[place] for place in places]
    speakers = counts.speakers and [counts.speakers[place] for place in places]
    return replace(counts, ids=ids, counts=counts.counts.take(places), speakers=speakers)


@contextmanager
def data_of(baseline: Run, data: str | None = None) -> Iterator[tuple[ConfigSource, str]]:
    """Where the clips are, and how that is written: what is given, or what the baseline was run on."""
    where = data or baseline.about.data or ""
    record = None if data else baseline.about.perturbed
    if not where or (where.startswith("--") and not data and not record):  # a file of an earlier version
        raise UserError(f"{baseline.folder} does not say on what data it was run; name it with --data or --corpus")
    if record is None:
        yield open_data(where), where
        return
    perturbed = reopen(record)
    try:
        yield perturbed, where
    finally:
        perturbed.close()


def _by_config(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    ids: dict[str, list[str]] = {}
    for name, clip in pairs:
        ids.setdefault(name, []).append(clip)
    return ids


def _same(config: Config, baseline: Run, where: str) -> Config:
    if not baseline.about.config(config.name).same_data(config.about):
        raise _other_data(config.name, baseline, where)
    return config


def _other_data(name: str, baseline: Run, where: str) -> UserError:
    return UserError(
        f"{baseline.folder / name}.jsonl was made from other data than {where} holds; run the baseline on it again"
    )


def _begin(folder: Path) -> None:
    """Make the folder ready: gate.json marks it as a gate's, and says whether that gate came to its end."""
    mark = folder / RESULT
    if not mark.is_file() and (folder / "run.json").is_file():
        raise UserError(f"{folder} holds a run that no gate has made; give the gate another folder with --out")
    folder.mkdir(parents=True, exist_ok=True)
    if mark.is_file() and _finished(mark):
        for path in (*folder.glob("*.jsonl"), *folder.glob("*.jsonl.part"), folder / "run.json"):
            path.unlink(missing_ok=True)
    write_atomically(mark, json.dumps({"verdict": None}) + "\n")


def _finished(mark: Path) -> bool:
    try:
        return json.loads(mark.read_text("utf-8"))["verdict"] is not None
    except (ValueError, KeyError, TypeError):
        return True


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
