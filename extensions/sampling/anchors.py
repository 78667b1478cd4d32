"""Anchors: single clips of single configs that tell most about the next recogniser, where others were run on all.

Of some recognisers every transcript is known. Where all of them write the same, one more tells nothing; so a cell (a
clip of a config) is drawn in proportion to its weight in the average NWERD times how far the known recognisers are
apart on it. A new recogniser is run on the drawn cells and on clean speech. Its errors on all cells are predicted by
regression on the errors of the others and its own on clean speech, and what the prediction misses on the drawn cells is
added, each weighted by one over its chance to be drawn. That is the regression estimator of survey sampling (Särndal,
Swensson and Wretman, "Model Assisted Survey Sampling", 1992, chapter 6): it is nearly unbiased however bad the
prediction is, and its own residuals say how far off it may be.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.suites import AnchorsFile, SuiteFile
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import to_json
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.difficulty import load
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scenario_facts import RECORDINGS
from speech_robust_bench.scoring.verdict_guard import refuse_ranking

SPREAD = 1.0  # errors that are added to the spread of a cell, so that every cell can be drawn
RIDGE = 0.1
Z = 1.96
LEAST_RUNS = 3
DRAWS = 20  # by which the error is told
CELLS_A_REGRESSOR = 10  # with fewer, the regression fits chance, and the intervals are too narrow


@dataclass(frozen=True)
class CellErrors:
    """The errors of some recognisers on the same clips of the same configs of the average, and on clean speech."""

    models: tuple[str, ...]
    clean_config: str
    configs: tuple[str, ...]
    categories: tuple[str, ...]  # of each config
    clips: tuple[str, ...]
    errors: np.ndarray  # (models, configs, clips)
    clean: np.ndarray  # (models, clips)
    words: np.ndarray  # (clips)

    @cached_property
    def lost(self) -> np.ndarray:
        """Errors more than on clean speech."""
        return self.errors - self.clean[:, None, :]

    @cached_property
    def points(self) -> np.ndarray:
        """NWERD of a config where every word is lost."""
        table = load()
        return np.array([1e4 / table.of(config) for config in self.configs])

    @property
    def clips_sha256(self) -> str:
        """A hash of the clips' ids and numbers of words, to know them again by."""
        pairs = list(zip(self.clips, self.words.tolist(), strict=True))
        return hashlib.sha256(json.dumps(pairs).encode()).hexdigest()

    @cached_property
    def averaged(self) -> tuple[str, ...]:
        """The categories, in the order of the tables."""
        return tuple(category for category in AVERAGED if category in self.categories)

    @cached_property
    def members(self) -> np.ndarray:
        """The weight of each config in its category: (categories, configs), each row with the sum 1."""
        table = np.array([[own == category for own in self.categories] for category in self.averaged], float)
        return table / table.sum(axis=1, keepdims=True)

    @cached_property
    def scores(self) -> np.ndarray:
        """NWERD on all clips: (models, configs)."""
        return self.points * self.lost.sum(axis=2) / self.words.sum()

    @cached_property
    def by_category(self) -> np.ndarray:
        """NWERD by category, on all clips: (models, categories)."""
        return self.scores @ self.members.T

    def of(self, models: Sequence[int]) -> CellErrors:
        """Some of the recognisers."""
        return CellErrors(
            tuple(self.models[model] for model in models),
            *(self.clean_config, self.configs, self.categories, self.clips),
            *(self.errors[models], self.clean[models], self.words),
        )


@dataclass(frozen=True)
class Drawn:
    """The cells that were drawn, numbered config by config, and the chance of each."""

    cells: np.ndarray
    chances: np.ndarray


@dataclass(frozen=True)
class Estimate:
    """What the whole benchmark would say, by category and in the mean of them, with standard errors."""

    by_category: np.ndarray
    errors: np.ndarray
    average: float
    error: float

    def rows(self, cells: CellErrors) -> dict[str, tuple[float, float]]:
        """Score and standard error of every category, and of the average."""
        pairs = zip(self.by_category.tolist(), self.errors.tolist(), strict=True)
        return dict(zip(cells.averaged, pairs, strict=True)) | {"average": (self.average, self.error)}


def cell_errors(
    runs: Sequence[Run],
    normaliser: str = "srb-paper-1",
    clean: str | None = None,
    configs: Sequence[str] | None = None,
    advance: Callable[[], None] = lambda: None,
) -> CellErrors:
    """The errors of some runs on the configs of the average that are made from the clips of one clean config.

    All runs must have all clips of each. `clean` says which clean config, where there are several; `configs` names the
    perturbed ones, where it is not all that the first run has. `advance` is called for every run read.
    """
    if len(runs) < LEAST_RUNS:
        raise UserError(f"anchors need at least {LEAST_RUNS} runs, of all clips of the same configs")
    folders, models = [run.folder.resolve() for run in runs], [run.model for run in runs]
    for place in range(len(runs)):
        if folders[place] in folders[:place] or models[place] in models[:place]:
            raise UserError(f"{runs[place].folder}: {models[place]} is given twice; anchors need different recognisers")
    clean, there = _made_from_one_corpus(runs[0], clean)
    configs = there if configs is None else configs
    if missing := sorted(set(configs) - set(there)):
        raise UserError(f"{runs[0].folder} has no {missing[0]}; give the runs that the anchors were chosen from")
    clips: tuple[str, ...] | None = None
    words, tables = np.zeros(0), []
    for run in runs:
        run.refuse_anchors()
        if missing := sorted({clean, *configs} - set(run.configs)):
            raise UserError(f"{run.folder} has no {missing[0]}; anchors need runs of the same configs")
        counts = []
        for config in (clean, *configs):
            counted = run.read(config).count(normaliser)
            if clips is None:
                clips, words = tuple(counted.ids), counted.counts.lengths.astype(float)
            if tuple(counted.ids) != clips or (counted.counts.lengths != words).any():
                raise UserError(
                    f"{run.folder / config}.jsonl has other clips or references than {runs[0].folder / clean}.jsonl"
                )
            _refuse_other_data(runs[0], run, config)
            counts.append(counted)
        refuse_ranking(run.folder, counts)
        tables.append([counted.counts.errors for counted in counts])
        advance()
    if not words.sum():
        raise UserError(f"{runs[0].folder / clean}.jsonl has no word in its references")
    errors = np.array(tables, float)
    categories = tuple(str(runs[0].about.config(config).category) for config in configs)
    return CellErrors(tuple(models), clean, tuple(configs), categories, clips or (), errors[:, 1:], errors[:, 0], words)


def _made_from_one_corpus(run: Run, clean: str | None) -> tuple[str, list[str]]:
    """The clean config of a run, and its perturbed configs that count."""
    sources = {config: str(run.about.config(config).source) for config in _perturbed(run)}
    cleans = sorted(set(sources.values()))
    if not cleans:
        raise UserError(f"{run.folder} has no config of the average that is made from clean clips")
    if clean is None and len(cleans) > 1:
        raise UserError(f"{run.folder} has configs made from {' and '.join(cleans)}; choose one with --clean")
    clean = clean or cleans[0]
    if clean not in cleans:
        raise UserError(f"{run.folder} has no config that is made from {clean}; there are {', '.join(cleans)}")
    return clean, [config for config, source in sources.items() if source == clean]


def _refuse_other_data(known: Run, run: Run, config: str) -> None:
    if not known.about.config(config).same_data(run.about.config(config)):
        raise UserError(f"{run.folder / config}.jsonl was made from other data than that of {known.folder}")


def _perturbed(run: Run) -> list[str]:
    """The configs of the average that are made from clean clips, at a severity of the table."""
    return [
        config
        for config in run.configs
        if (category := run.about.config(config).category) in AVERAGED
        and category not in RECORDINGS
        and run.about.config(config).source
        and parse(config).value is None
    ]


def _weights(cells: CellErrors) -> np.ndarray:
    """NWERD of the config for one more error in a cell: (configs * clips)."""
    return np.repeat(cells.points / cells.words.sum(), len(cells.clips))


def _in_average(cells: CellErrors) -> np.ndarray:
    """The average NWERD for one more error in a cell."""
    return _weights(cells) * np.repeat(cells.members.mean(axis=0), len(cells.clips))


def draw(cells: CellErrors, count: int, rng: np.random.Generator) -> Drawn:
    """That many cells; a systematic sample config by config, so that they are spread over the configs.

    The clips of each config are in an order of its own, or the same clips would be drawn together again and again.
    """
    spread = cells.errors.std(axis=0).ravel() + SPREAD
    chances = _chances(_in_average(cells) * spread, count)
    clips = len(cells.clips)
    order = np.concatenate([config * clips + rng.permutation(clips) for config in range(len(cells.configs))])
    edges = np.floor(np.concatenate([[0.0], np.cumsum(chances[order])]) + rng.uniform())
    drawn = np.sort(order[np.diff(edges) > 0])
    return Drawn(drawn, chances[drawn])


def _chances(sizes: np.ndarray, count: int) -> np.ndarray:
    """Chances in proportion to sizes, none above one, `count` in sum."""
    chances = np.zeros(len(sizes))
    free = np.ones(len(sizes), bool)
    while True:
        chances[free] = sizes[free] / sizes[free].sum() * (count - (~free).sum())
        if not (over := free & (chances > 1)).any():
            return chances
        chances[over] = 1.0
        free &= ~over


def estimate(cells: CellErrors, drawn: Drawn, errors: np.ndarray, clean: np.ndarray) -> Estimate:
    """The scores of a recogniser with these errors on the drawn cells, and on all clips of clean speech."""
    weights, in_average = _weights(cells), _in_average(cells)
    everywhere = np.tile(clean, len(cells.configs))
    known = np.vstack([cells.errors.reshape(len(cells.models), -1), everywhere])
    start = np.array([*np.full(len(cells.models), 1 / len(cells.models)), 0.0])  # it shrinks towards their mean
    scale = in_average[drawn.cells] / np.sqrt(drawn.chances)
    inputs = known[:, drawn.cells] * scale
    square = inputs @ inputs.T
    ridge = (RIDGE * np.trace(square) / len(square) + np.finfo(float).tiny ** 0.5) * np.eye(len(square))
    off = (errors - start @ known[:, drawn.cells]) * scale
    predicted = (start + np.linalg.solve(square + ridge, inputs @ off)) @ known
    missed = (errors - predicted[drawn.cells]) / drawn.chances
    total = weights * (predicted - everywhere)
    total[drawn.cells] += weights[drawn.cells] * missed
    shape = (len(cells.configs), len(cells.clips))
    variances = np.zeros(shape[0] * shape[1])
    freedom = len(drawn.cells) / max(1, len(drawn.cells) - len(known))
    variances[drawn.cells] = freedom * (1 - drawn.chances) * (weights[drawn.cells] * missed) ** 2
    by_category = cells.members @ total.reshape(shape).sum(axis=1)
    variance = cells.members**2 @ variances.reshape(shape).sum(axis=1)
    count = len(by_category)
    return Estimate(by_category, np.sqrt(variance), float(by_category.mean()), float(np.sqrt(variance.sum())) / count)


def left_out(
    cells: CellErrors, count: int, draws: int = DRAWS, seed: int = 0, advance: Callable[[], None] = lambda: None
) -> list[list[Estimate]]:
    """What would be said of each recogniser from the others, in some draws: [draw][model].

    `advance` is called for every draw.
    """
    rng = np.random.default_rng(seed)
    estimates = []
    for _ in range(draws):
        of_draw = []
        for model in range(len(cells.models)):
            others = cells.of([other for other in range(len(cells.models)) if other != model])
            drawn = draw(others, count, rng)
            own = cells.errors[model].ravel()[drawn.cells]
            of_draw.append(estimate(others, drawn, own, cells.clean[model]))
        estimates.append(of_draw)
        advance()
    return estimates


def check_count(cells: CellErrors, count: int) -> None:
    """Fewer cells than all, and enough for the regression."""
    least, most = CELLS_A_REGRESSOR * (len(cells.models) + 1), cells.errors[0].size - 1
    if not least <= count <= most:
        raise UserError(
            f"{count} clips of perturbed speech; with {len(cells.models)} runs it is {least} to {most} here"
        )


def mean_errors(
    cells: CellErrors, count: int, seed: int = 0, advance: Callable[[], None] = lambda: None
) -> dict[str, float]:
    """By how many points the average of each recogniser is off, where it is predicted from the others."""
    said = np.array([[one.average for one in row] for row in left_out(cells, count, seed=seed, advance=advance)])
    off = np.abs(said - cells.by_category.mean(axis=1)).mean(axis=0)
    return dict(zip(cells.models, off.tolist(), strict=True))


def choose(
    runs: Sequence[Run],
    path: Path,
    clips: int,
    *,
    normaliser: str,
    seed: int,
    clean: str | None,
    advance: Callable[[], None] = lambda: None,
) -> dict[str, float]:
    """Write the anchors as a suite file, for `srb run --suite FILE`; what `mean_errors` says of them.

    `advance` is called `len(runs) + DRAWS` times.
    """
    if seed < 0:
        raise UserError(f"a seed is 0 or more, not {seed}")
    if path.suffix != ".json":
        raise UserError(f"{path}: the name of a file of anchors ends in .json")
    cells = cell_errors(runs, normaliser, clean, advance=advance)
    check_count(cells, clips)
    drawn = draw(cells, clips, np.random.default_rng(seed))
    content = to_json(as_suite(cells, drawn, normaliser), indent=1)
    if path.exists() and path.read_bytes() != content:
        raise UserError(f"{path} is there already and has other anchors, which runs may depend on; choose another name")
    errors = mean_errors(cells, clips, seed, advance)
    write_atomically(path, content)
    return errors


def predict(
    run: Run, runs: Sequence[Run], about: SuiteFile | AnchorsFile, advance: Callable[[], None] = lambda: None
) -> dict[str, tuple[float, float]]:
    """NWERD of all clips of the configs that the anchors stand for, and its standard error, from a run on anchors.

    By category and in the average of these categories. `advance` is called for every run read.
    """
    if not isinstance(about, AnchorsFile):
        raise UserError("--predict needs a file of anchors, as `srb anchors RUN RUN RUN --suite FILE.json` writes it")
    if run.model in about.models or run.model in {known.model for known in runs}:
        raise UserError(
            f"{run.folder}: {run.model} is one of the runs that it would be predicted from; its own score is known"
        )
    cells = cell_errors(runs, about.normaliser, about.clean, about.configs, advance)
    if cells.clips_sha256 != about.clips_sha256:
        raise UserError("the runs have other clips or references than those that the anchors were chosen from")
    for config in (about.clean, *about.cells):
        _refuse_other_data(runs[0], run, config)
    estimate = of_run(run, about, cells)
    advance()
    return estimate.rows(cells)


def as_suite(cells: CellErrors, drawn: Drawn, normaliser: str) -> AnchorsFile:
    """The content of the file: the drawn clips of each config, with the chance of each."""
    chances: dict[str, dict[str, float]] = {}
    for (config, clip), chance in zip(_pairs(drawn, cells), drawn.chances.tolist(), strict=True):
        chances.setdefault(cells.configs[config], {})[cells.clips[clip]] = chance
    content = json.dumps(chances, sort_keys=True).encode()
    return AnchorsFile(
        version=hashlib.sha256(content).hexdigest()[:8],
        models=list(cells.models),
        normaliser=normaliser,
        clean=cells.clean_config,
        configs=list(cells.configs),
        clips_sha256=cells.clips_sha256,
        cells=chances,
    )


def from_suite(about: AnchorsFile, cells: CellErrors) -> Drawn:
    """The drawn cells of a suite file, numbered as in the runs that it is used with."""
    configs = {config: number for number, config in enumerate(cells.configs)}
    clips = {clip: number for number, clip in enumerate(cells.clips)}
    try:
        chances = {
            configs[config] * len(clips) + clips[clip]: chance
            for config, chosen in about.cells.items()
            for clip, chance in chosen.items()
        }
    except KeyError as missing:
        raise UserError(
            f"the runs have no {missing}, which the anchors name; give the runs that they were made of"
        ) from None
    check_count(cells, len(chances))
    order = sorted(chances)
    return Drawn(np.array(order), np.array([chances[cell] for cell in order]))


def of_run(run: Run, about: AnchorsFile, cells: CellErrors) -> Estimate:
    """What the whole benchmark would say of a run on the anchors."""
    drawn = from_suite(about, cells)
    clips = {clip: place for place, clip in enumerate(cells.clips)}

    def errors_on(config: str) -> dict[int, int]:
        counted = _counted(run, config, about.normaliser)
        refuse_ranking(run.folder, [counted])
        known = [(clips[clip], place) for place, clip in enumerate(counted.ids) if clip in clips]
        if any(counted.counts.lengths[place] != cells.words[clip] for clip, place in known):
            raise UserError(f"{run.folder / config}.jsonl has other references than the runs of the anchors")
        return {clip: int(counted.counts.errors[place]) for clip, place in known}

    clean = errors_on(cells.clean_config)
    perturbed = {config: errors_on(config) for config in about.cells}
    try:
        errors = [perturbed[cells.configs[config]][clip] for config, clip in _pairs(drawn, cells)]
        on_clean = [clean[clip] for clip in range(len(cells.clips))]
    except KeyError as missing:
        lacking = cells.clips[missing.args[0]]
        raise UserError(f"{run.folder} lacks the clip {lacking} of the anchors; run it with --suite again") from None
    return estimate(cells, drawn, np.array(errors, float), np.array(on_clean, float))


def _pairs(drawn: Drawn, cells: CellErrors) -> list[tuple[int, int]]:
    """The numbers of config and clip of every drawn cell."""
    return [divmod(cell, len(cells.clips)) for cell in drawn.cells.tolist()]


def _counted(run: Run, config: str, normaliser: str) -> ConfigCounts:
    if config not in run.configs:
        raise UserError(f"{run.folder} has no {config}; run it on the anchors first: srb run --suite FILE")
    predictions = run.read(config)
    if predictions.failed:
        raise UserError(
            f"{run.folder / config}.jsonl: {predictions.failed} clips failed; run it again with --retry-failed"
        )
    return predictions.count(normaliser)
