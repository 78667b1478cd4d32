"""How much there is to run: which models, what that costs, and how many clips are enough.

`srb run --model @models.yaml` runs every model of a file:

    models:
      - name: parakeet-tdt-0.6b-v3
        spec: hf:nvidia/parakeet-tdt-0.6b-v3
        env: [transformers>=5.20, torch]     # left out: this environment
        parameters: 600e6                    # the rest is for tables and reports
        hours: 670000
        family: Parakeet
        licence: CC-BY-4.0

`models/known.yaml` is such a file: current models, with what is needed to run each. `@known` names it, and `#name`
after a file one model of it: `--model @known#whisper-large-v3`; `*` in it stands for anything.

The cost is known before a run starts: the price of a paid endpoint, and the hours of a machine and their price. The
hours are the audio without a prediction over the speed of the model (RTFx, seconds of audio a second). The speed is
given, that of an earlier run in the same folder, or measured on a few clips of the first config.

`srb run --until 1.0` transcribes more clips, config by config, until the interval of the average is that narrow. Every
config begins with a few clips, so that the average always includes all of them: leaving configs out would make it the
average of something else. Then each round gives more clips to the configs where they narrow the interval most: those
that weigh most in the average, and whose difficulty, by which their errors are divided, is least.

Which clips come next never depends on what was transcribed. Going by the errors so far (Neyman's allocation) looks
cheaper and is wrong: configs that were lucky at first get no more clips and stay lucky, configs that were unlucky are
put right. Simulated with rare errors, that took a fifth off the average, and the intervals held it in 7 cases of 10
(benchmarks/until.py measures what is left of it here, where only the moment of stopping depends on the errors).
"""

from __future__ import annotations

import fnmatch
import hashlib
import heapq
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from numbers import Real
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from speech_robust_bench.builders.configs import ClipRow, Config
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Record, RunConfig, problem
from speech_robust_bench.core.untrusted_files import read_yaml
from speech_robust_bench.models.interface import Spec, adapters, check_spec, parse_spec
from speech_robust_bench.models.run_folder import RunFile
from speech_robust_bench.models.runner import RunJob, Runner, clean_first
from speech_robust_bench.models.transcriber import Transcriber, read_batches
from speech_robust_bench.scoring import aggregate
from speech_robust_bench.scoring.aggregate import ConfigScore
from speech_robust_bench.scoring.difficulty import load
from speech_robust_bench.scoring.runs import open_run

KNOWN = Path(__file__).with_name("known.yaml")
Number = Annotated[float, Meta(ge=0, le=1e18)]


class ModelEntry(Record, frozen=True, kw_only=True):
    """One model of a file."""

    spec: str
    name: Annotated[str, Meta(pattern=r"^[^./\\][^/\\]*\Z")] = ""  # also the folder of its run
    env: tuple[str, ...] = ()
    parameters: Number | None = None
    hours: Number | None = None
    family: str | None = None
    licence: str | None = None
    model_type: str | None = None  # of transformers
    rtfx: Number | None = None  # seconds of audio a second on the machine that it is run on, for estimates
    note: str | None = None

    @property
    def parsed(self) -> Spec:
        return parse_spec(self.spec)


def read_models(text: str) -> list[ModelEntry]:
    """The models that `@file` or `@file#name` names, in the file's order."""
    place, _, wanted = text.removeprefix("@").partition("#")
    path = KNOWN if place == "known" else Path(place)
    entries = parse_models(path)
    if not wanted:
        return entries
    chosen = [entry for entry in entries if fnmatch.fnmatch(entry.name, wanted)]
    if not chosen:
        raise UserError(f"{path}: no model '{wanted}'; {did_you_mean(wanted, [entry.name for entry in entries])}")
    return chosen


def parse_models(path: Path) -> list[ModelEntry]:
    """Every model of a file, each checked."""
    content = read_yaml(path)
    rows = content.get("models") if isinstance(content, dict) else None
    if not isinstance(rows, list) or not rows:
        raise UserError(f"{path}: write 'models:' and a list under it; see docs/how-to/run-many-models.md")
    entries = [_entry(path, number, row) for number, row in enumerate(rows, 1)]
    names = [entry.name for entry in entries]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UserError(f"{path}: two models are named '{twice}'")
    return entries


def _entry(path: Path, number: int, row: object) -> ModelEntry:
    where, known = f"{path}, model {number}", ModelEntry.__struct_fields__
    if isinstance(row, dict) and (odd := next((key for key in row if key not in known), None)):
        raise UserError(f"{where}: no key '{odd}'; {did_you_mean(str(odd), known)}")
    try:
        entry = msgspec.convert(row, ModelEntry, strict=False)  # YAML reads 600e6 as a text
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {problem(error)}") from None
    check_spec(entry.parsed)
    return entry.replace(name=entry.name or entry.parsed.folder)


FREE_OF_QUESTIONS = 1.0  # US dollars; a run that costs more wants a yes


def cost_per_minute(spec: Spec) -> float:
    """US dollars for a minute of audio: what the spec says, else the price that its adapter knows; 0 for all others."""
    try:
        said = float(spec.options.get("cost_per_minute", 0))
    except ValueError:
        return 0.0  # refused with the other options
    if not said and spec.wrapped:
        return cost_per_minute(parse_spec(spec.wrapped))
    price = getattr(import_module(adapters()[spec.adapter].partition(":")[0]), "cost_per_minute", None)
    return said or (price(spec.target) if price else 0.0)


def estimated_cost(job: RunJob, configs: Sequence[Config]) -> float:
    """US dollars for the audio that is still to be sent."""
    price = cost_per_minute(job.spec)
    return price * sum(row.duration for config in configs for row in job.missing(config)) / 60 if price else 0.0


def check_cost(cost: float, agreed: bool, smaller: str = "--limit") -> None:
    """Refuse a run that costs more than a dollar, unless the user has agreed."""
    if cost > FREE_OF_QUESTIONS and not agreed:
        raise UserError(
            f"it would cost about {cost:.2f} $ by the price list; --pay runs it, {smaller} makes it smaller"
        )


WARM_UP = 8  # clips, transcribed twice; the second time counts


@dataclass(frozen=True)
class RunPlan:
    """What a run has to do, and an estimate of the time and money that it takes."""

    configs: int
    clips: int  # without a prediction
    audio_s: float
    rtfx: float | None  # None where there is nothing to do
    source: str  # of the RTFx
    price_per_hour: float | None = None
    endpoint_cost: float = 0.0  # US dollars, by the price list

    @property
    def hours(self) -> float:
        """The hours of one machine."""
        return self.audio_s / 3600 / self.rtfx if self.rtfx else 0.0

    @property
    def cost(self) -> float:
        """The price of these hours and of the endpoint."""
        return self.hours * (self.price_per_hour or 0.0) + self.endpoint_cost

    def __str__(self) -> str:
        work = f"{self.configs} configs, {self.clips} clips to transcribe, {self.audio_s / 3600:.2f} h of audio"
        if not self.rtfx:
            return f"{work}: nothing to do"
        price = "" if self.price_per_hour is None else f", about {self.cost:.2f} $ at {self.price_per_hour:g} $ an hour"
        return (
            f"{work}; about {self.hours:.2f} h{price}. A guess: RTFx {self.rtfx:.1f} is {self.source}; "
            "loading the model and perturbing clips are not in it"
        )


def plan_run(
    job: RunJob, configs: Sequence[Config], rtfx: float | None = None, price_per_hour: float | None = None
) -> tuple[RunPlan, RunJob]:
    """The plan of a run, and the job with the model loaded if that was necessary."""
    missing = {config.name: job.missing(config) for config in configs}
    rows = [row for each in missing.values() for row in each]
    source = "as given"
    if rows and rtfx is None:
        rtfx, source = _earlier(job), "that of the clips in the run folder"
    if rows and rtfx is None:
        job = replace(job, recogniser=job.recogniser or job.open())
        first = next(config for config in configs if missing[config.name])
        sample = _spread(missing[first.name], WARM_UP)
        rtfx, source = _measured(job, first, sample), f"measured on {len(sample)} clips of {first.name}, twice"
    audio_s = sum(row.duration for row in rows)
    endpoint = cost_per_minute(job.spec) * audio_s / 60
    return RunPlan(len(configs), len(rows), audio_s, rtfx if rows else None, source, price_per_hour, endpoint), job


def _earlier(job: RunJob) -> float | None:
    """The speed on the clips that the run folder has."""
    known = RunFile(job.folder).read()
    records = (known.configs or {}).values() if known else ()
    timed = [(record.audio_s or 0, record.seconds) for record in records if record and record.seconds]
    return sum(audio_s for audio_s, _ in timed) / sum(seconds for _, seconds in timed) if timed else None


def _spread(rows: Sequence[ClipRow], count: int) -> list[ClipRow]:
    """Clips of all lengths, from the shortest to the longest."""
    ordered = sorted(rows, key=lambda row: row.duration)
    places = {round(index * (len(ordered) - 1) / max(1, count - 1)) for index in range(count)}
    return [ordered[place] for place in sorted(places)]


def _measured(job: RunJob, config: Config, sample: Sequence[ClipRow]) -> float:
    """The speed on some clips, after they were transcribed once to warm up."""
    recogniser = job.recogniser
    assert recogniser is not None
    transcriber = Transcriber(job.mode.wrap(recogniser) if job.mode else recogniser)
    size = job.batch_size or recogniser.batch_size
    batches = list(read_batches(config, {row.position for row in sample}, size, job.batch_seconds))
    for _ in range(2):
        start = time.perf_counter()
        outcomes = [outcome for batch in batches for outcome in transcriber.transcribe(batch)]
        seconds = time.perf_counter() - start
    if wrong := next((outcome.error for outcome in outcomes if outcome.error), None):
        raise UserError(f"the speed cannot be measured, a clip of {config.name} failed: {wrong}; give --rtfx")
    return sum(row.duration for row in sample) / seconds


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
