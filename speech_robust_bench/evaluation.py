"""`srb.evaluate`: a recogniser over configs, scored; `srb.read_run` and `srb.score` for what was transcribed before."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import with_clean
from speech_robust_bench.one_clip import Folder
from speech_robust_bench.run_results import Results, Score

if TYPE_CHECKING:
    from speech_robust_bench.builders.suites import Suite
    from speech_robust_bench.models.interface import Recogniser, Spec
    from speech_robust_bench.models.streaming.replay import StreamOptions

Corpora = Mapping[str, str | os.PathLike | None] | None


def evaluate(
    model: Any,
    configs: str | Sequence[str] = (),
    *,
    suite: str | None = None,
    corpus: Corpora = None,
    data: str | os.PathLike | None = None,
    limit: int | None = None,
    until: float | None = None,
    out: str | os.PathLike | None = None,
    name: str | None = None,
    stream: bool | Mapping[str, Any] = False,
    batch_size: int | None = None,
    device: str | None = None,
    noise_dir: Folder = None,
    rir_dir: Folder = None,
    tts: str | None = None,
    file: Folder = None,
    workers: int | None = None,
    progress: bool = True,
) -> Results:
    """Run a recogniser over configs and score it. Clips are perturbed while it works; nothing is built.

    Args:
        model: a spec such as "moonshine" or "hf:openai/whisper-tiny.en", a function `(clips, rate, language) -> texts`,
            a transformers pipeline for speech recognition, or an object with a method `transcribe` like that function.
        configs: names or patterns, "en-demo_*"; the clean configs that they are compared with are added.
        suite: instead of configs, a part of the benchmark that stands for all of it: "fast" (`srb ls --suite`).
        corpus: where corpora are, {"en": "LibriSpeech", "en-mine": FOLDER}; the demo corpus is built in.
        data: a built folder or a Hub dataset to read instead of perturbing.
        limit: only the first clips of each corpus.
        until: go on, with more clips where they help most, until the interval of the average NWERD is narrower than
            so many points.
        out: the run folder to write, or to go on with if it is there; without it a temporary one, which `Results.save`
            keeps.
        name: what to call the model.
        stream: use it live, chunk by chunk; `Results.streaming` has latency and stability then. A dict has the options
            of `srb run --stream`: {"chunk_ms": 100, "speed": 1.0, "realtime": False, "processor_time": False,
            "repeats": 1}. An object without a method `stream` is used by local agreement, as `live:` does; a spec says
            `live:` itself.
        batch_size, device: for models that have the choice.
        noise_dir, rir_dir, file, tts: as in `srb.load`.
        workers: processes that perturb.
        progress: show a progress bar where there is a terminal.
    """
    from speech_robust_bench.builders.plan import check_limit
    from speech_robust_bench.builders.suites import load as load_suite
    from speech_robust_bench.models.adapters.live import as_live
    from speech_robust_bench.models.adaptive_run import check_until, run_until
    from speech_robust_bench.models.predictions import error_of_all
    from speech_robust_bench.models.runner import RunJob, run_with_progress

    check_limit(limit)
    pace = _pace(stream)
    check_until(until, suite=bool(suite), stream=pace is not None)
    spec, recogniser = recogniser_of(model, name, batch_size)
    if pace and recogniser is not None:
        recogniser = as_live(recogniser)
    chosen = load_suite(suite) if suite else None
    patterns = _patterns(configs, chosen, corpus, data, tts)
    kept = None if out else tempfile.TemporaryDirectory(prefix="srb-run-")
    folder = Path(out) if out else Path(kept.name) / (name or spec.folder)  # type: ignore[union-attr]
    with EvaluationData(corpus, data, limit, noise_dir, rir_dir, tts, file, workers, progress) as source:
        opened = source.open(patterns)
        options = RunJob(
            spec=spec,
            folder=folder,
            where=source.where,
            name=name,
            device=device,
            batch_size=batch_size,
            limit=limit if data else None,
            recogniser=recogniser,
            suite=chosen,
            pace=pace,
            source=source.perturbed,
        )
        if until is not None:
            warn = partial(warnings.warn, stacklevel=3)
            records = run_until(options, opened, until, print if progress else lambda line: None, warn)
        else:
            records = run_with_progress(options, opened, quiet=not progress)
    if error := error_of_all(folder, records):
        raise UserError(f"every clip failed, the first with: {error}")
    return Results(folder, _kept=kept)


def _pace(stream: bool | Mapping[str, Any]) -> StreamOptions | None:
    from speech_robust_bench.core.errors import did_you_mean
    from speech_robust_bench.models.streaming.replay import StreamOptions

    if stream is False or stream is None:
        return None
    options = {} if stream is True else dict(stream)
    known = [field.name for field in fields(StreamOptions)]
    for option in options:
        if option not in known:
            raise UserError(f"stream: no option '{option}'; {did_you_mean(str(option), known)}")
    return StreamOptions(**options)


def recogniser_of(model: Any, name: str | None, batch_size: int | None) -> tuple[Spec, Recogniser | None]:
    """A model as the runner takes it: the spec of one that is loaded later, or an object and the spec for it."""
    from speech_robust_bench.models.interface import check_spec, parse_spec
    from speech_robust_bench.models.wrap_model import as_recogniser

    if not isinstance(model, str):
        return as_recogniser(model, name, batch_size)
    spec = parse_spec(model)
    check_spec(spec)
    return spec, None


def read_run(folder: str | os.PathLike) -> Results:
    """The results of a run folder, made by `srb run` or by `Results.save`; it is scored if it was not yet."""
    return Results(Path(folder))


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


def _patterns(
    configs: str | Sequence[str],
    suite: Suite | None,
    corpus: Corpora,
    data: str | os.PathLike | None,
    tts: str | None,
) -> list[str]:
    from speech_robust_bench.builders.corpora import as_sources

    if suite and configs:
        raise UserError("say either configs or a suite")
    if not suite:
        patterns = [configs] if isinstance(configs, str) else list(configs)
        if not patterns:
            raise UserError("say which configs: names or patterns such as 'en-demo_*', or suite='fast'")
        return patterns
    if data is not None:
        from speech_robust_bench.builders.config_sources import open_data

        return suite.on_data(open_data(os.fspath(data)).names())
    if "tts" in suite.members and not tts:
        warnings.warn(f"suite {suite.name!r} without tts: say which engine speaks, as in tts='espeak'", stacklevel=3)
    return suite.configs(as_sources(corpus) or {("en", "demo"): None}, tts=bool(tts))


@dataclass
class EvaluationData:
    """Where the configs come from: what was built, or the corpora themselves."""

    corpus: Corpora
    data: str | os.PathLike | None
    limit: int | None
    noise_dir: Folder
    rir_dir: Folder
    tts: str | None
    file: Folder
    workers: int | None
    progress: bool

    def __post_init__(self) -> None:
        from speech_robust_bench.builders.banks import Banks
        from speech_robust_bench.builders.corpora import as_sources
        from speech_robust_bench.builders.custom import load_table
        from speech_robust_bench.builders.live_config import LiveConfigs, default_workers
        from speech_robust_bench.builders.plan import DEMO

        if self.data is not None and self.corpus is not None:
            raise UserError("say either data, for what was built, or corpus, to perturb as it runs")
        self.perturbed: LiveConfigs | None = None
        if self.data is None:
            noises, rooms = (os.path.abspath(folder) if folder else None for folder in (self.noise_dir, self.rir_dir))
            self.perturbed = LiveConfigs(
                as_sources(self.corpus) or DEMO,
                Banks(noises, rooms),
                load_table(self.file),
                limit=self.limit,
                tts=self.tts,
                workers=self.workers or default_workers(),
            )
        self.where = os.fspath(self.data) if self.data is not None else self.perturbed.where  # type: ignore[union-attr]

    def open(self, patterns: list[str]) -> list[Any]:
        """The configs that the patterns mean, and the clean ones that they are compared with."""
        if self.perturbed is None:
            from speech_robust_bench.builders.config_sources import open_data, select

            stored = open_data(self.where)
            names = with_clean(select(stored, patterns, self.where), set(stored.names()))
            return [stored.config(name) for name in names]
        names = with_clean(self.perturbed.select(patterns))
        from speech_robust_bench.core.progress import tasks

        with tasks(not self.progress) as show:
            self.perturbed.progress = show
            return list(self.perturbed.configs(names))

    def __enter__(self) -> EvaluationData:
        return self

    def __exit__(self, *_: Any) -> None:
        if self.perturbed is not None:
            self.perturbed.close()
