"""What a run costs, before it starts: the price of a paid endpoint, and the hours of a machine and their price.

The hours are the audio without a prediction over the speed of the model (RTFx, seconds of audio a second). The speed is
given, that of an earlier run in the same folder, or measured on a few clips of the first config.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib import import_module

from speech_robust_bench.builders.configs import ClipRow, Config
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Spec, adapters, parse_spec
from speech_robust_bench.models.run_folder import RunFile
from speech_robust_bench.models.runner import RunJob
from speech_robust_bench.models.transcriber import Transcriber, read_batches

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
