"""`srb run --until 1.0`: transcribe more clips, config by config, until the interval of the average is that narrow.

Every config begins with a few clips, so that the average always includes all of them: leaving configs out would
make it the average of something else. Then each round gives more clips to the configs where they narrow the interval
most: those that weigh most in the average, and whose difficulty, by which their errors are divided, is least.

Which clips come next never depends on what was transcribed. Going by the errors so far (Neyman's allocation) looks
cheaper and is wrong: configs that were lucky at first get no more clips and stay lucky, configs that were unlucky are
put right. Simulated with rare errors, that took a fifth off the average, and the intervals held it in 7 cases of 10
(benchmarks/until.py measures what is left of it here, where only the moment of stopping depends on the errors).
"""

from __future__ import annotations

import hashlib
import heapq
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

from speech_robust_bench.builders.configs import Config
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import RunConfig
from speech_robust_bench.models.runner import RunJob, Runner, clean_first
from speech_robust_bench.scoring import aggregate
from speech_robust_bench.scoring.aggregate import ConfigScore
from speech_robust_bench.scoring.difficulty import load
from speech_robust_bench.scoring.runs import open_run

FIRST = 10  # clips of every config to begin with
ROUND = 0.1  # of the clips so far are added before the interval is looked at again
STEP = 5  # clips that a config is given at a time
REPLICATES = 500


@dataclass
class ClipsSoFar:
    """How many clips of each config are wanted; a `ClipChoice` of the runner that grows."""

    label: str
    sizes: dict[str, int] = field(default_factory=dict)

    def choose(self, config: str, ids: Sequence[str]) -> set[str]:
        """The first clips in an order by id that begins elsewhere for every config; clean speech has all of them."""
        ranked = sorted(ids, key=lambda clip: hashlib.sha256(clip.encode()).digest())
        if config in self.sizes:
            return self._chosen(config, ranked)
        derived = [name for name in self.sizes if str(parse(name).clean) == config]
        return set().union(*(self._chosen(name, ranked) for name in derived))

    def _chosen(self, config: str, ranked: Sequence[str]) -> set[str]:
        start = list(self.sizes).index(config) * FIRST
        return {ranked[(start + place) % len(ranked)] for place in range(min(self.sizes[config], len(ranked)))}


def check_width(width: Any) -> None:
    """Refuse a width that is not a positive number."""
    if not isinstance(width, Real) or not 0 < float(width) < math.inf:
        raise UserError(f"until is a width in points, a number above 0, not {width!r}")


def check_until(width: float | None, *, suite: bool, mode: bool, ray: bool = False) -> None:
    """Refuse an invalid width, and options that exclude one."""
    if width is None:
        return
    check_width(width)
    if suite or mode or ray:
        raise UserError("until chooses the clips itself, on one machine: not with a suite, live use or the engine ray")


def run_until(
    options: RunJob,
    configs: Sequence[Config],
    width: float,
    say: Callable[[str], None] = lambda line: None,
    warn: Callable[[str], None] = lambda line: None,
) -> dict[str, RunConfig]:
    """Transcribe until the interval of the average is narrower than `width` points; the entries of run.json.

    `say` is told how far it is, and `warn` that all clips are used and the interval is wider.
    """
    perturbed = {config.name: config.about.category or "" for config in configs if config.about.source}
    share = shares(perturbed)
    if not share:
        raise UserError("--until narrows the average, and these configs are not in it; `srb ls` has the categories")
    there = {config.name: len(config.rows[: options.limit]) for config in configs}
    sources = {config.about.source or "" for config in configs if config.name in share}
    if absent := sorted(sources - there.keys()):
        raise UserError(
            f"--until compares with clean speech, and {options.where} has no {', '.join(absent)}; build it there"
        )
    so_far = ClipsSoFar(f"until-{width:g}", {name: min(FIRST, there[name]) for name in perturbed})
    runner = Runner(replace(options, suite=so_far))
    records: dict[str, RunConfig] = {}
    try:
        while True:
            for config in clean_first(configs):
                rows = records[config.name].rows if config.name in records else 0
                if so_far.sizes.get(config.name) != rows:
                    records[config.name] = runner.run(config)
            so_far.sizes.update({name: records[name].rows or 0 for name in perturbed})  # more, if it was interrupted
            reached, over = widest(aggregate.score(open_run(options.folder).counts(there), replicates=REPLICATES))
            clips = sum(record.rows or 0 for record in records.values())
            say(f"{clips} clips: the average is {_precision(reached)}, an interval over {over}")
            if reached < width:
                return records
            if not grow(so_far.sizes, share, there):
                warn(f"all clips of the average are used: it is {_precision(reached)}; {width:g} points were asked for")
                return records
    finally:
        runner.close()


def _precision(points: float) -> str:
    """How well an average is known whose interval is that wide."""
    return (
        f"known to {points:.2f} points" if math.isfinite(points) else "without an interval (too few speakers or clips)"
    )


def widest(scores: Sequence[ConfigScore]) -> tuple[float, str]:
    """How wide the interval of the average is, of the language where it is widest, and what it is over.

    The width is infinite where it is not known.
    """
    widths = []
    for summary in aggregate.summarise(scores).values():
        span, over = summary.overall.interval("nwerd"), summary.overall.resampled
        widths.append((span[1] - span[0] if span else math.inf, str(over or "no clips")))
    return max(widths)


def shares(categories: Mapping[str, str]) -> dict[str, float]:
    """By how much a point of WERD in each config moves the average NWERD of its language; configs by their category."""
    table = load()
    difficulties: dict[str, float] = {}
    for name, category in categories.items():
        with suppress(UserError):  # no difficulty: not in the average
            if category in AVERAGED and table.of(name) > 0:
                difficulties[name] = table.of(name)
    kinds = [(parse(name).language, categories[name]) for name in difficulties]
    languages = Counter(language for language, _ in set(kinds))
    members = Counter(kinds)
    return {
        name: 100 / difficulty / members[kind] / languages[kind[0]]
        for (name, difficulty), kind in zip(difficulties.items(), kinds, strict=True)
    }


def grow(sizes: dict[str, int], share: Mapping[str, float], there: Mapping[str, int]) -> int:
    """Give the next round's clips to the configs where they narrow the average most; how many were given."""

    def gain(name: str) -> tuple[float, str]:
        """By how much each clip of the next step lowers the variance of the average; the most comes first."""
        return -(share[name] ** 2) / (sizes[name] * (sizes[name] + STEP)), name

    budget = max(STEP, int(ROUND * sum(sizes.values())))
    queue = [gain(name) for name in share if sizes[name] < there[name]]
    heapq.heapify(queue)
    given = 0
    while queue and given < budget:
        _, name = heapq.heappop(queue)
        more = min(STEP, there[name] - sizes[name])
        sizes[name] += more
        given += more
        if sizes[name] < there[name]:
            heapq.heappush(queue, gain(name))
    return given
