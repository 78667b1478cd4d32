"""What a run over a paid endpoint costs: estimated before it starts from the audio that is still to be sent."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from speech_robust_bench.builders.configs import Config
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.interface import Spec, adapters, parse_spec
from speech_robust_bench.models.predictions import read_lines
from speech_robust_bench.models.runner import RunJob

FREE_OF_QUESTIONS = 1.0  # US dollars; a run that costs more wants a yes


def cost_per_minute(spec: Spec) -> float:
    """US dollars for a minute of audio: what the spec says, else the price that its adapter knows; 0 for all others."""
    try:
        said = float(spec.options.get("cost_per_minute", 0))
    except ValueError:
        return 0.0  # refused with the other options
    if not said and spec.wrapped:
        return cost_per_minute(parse_spec(spec.wrapped))
    price = getattr(import_module(adapters()[spec.adapter]), "cost_per_minute", None)
    return said or (price(spec.target) if price else 0.0)


def seconds_to_send(options: RunJob, config: Config) -> float:
    """The audio of a config that has no prediction yet."""
    done: dict[str, bytes] = {}
    for name in (f"{config.name}.jsonl", f"{config.name}.jsonl.part"):
        done |= read_lines(options.folder / name)[0]
    if options.retry_failed:
        done = {clip_id: line for clip_id, line in done.items() if b'"error": ' not in line}
    return sum(row.duration for row in options.rows(config) if row.id not in done)


def estimated_cost(options: RunJob, configs: Iterable[Config]) -> float:
    """US dollars for what is still to be sent."""
    price = cost_per_minute(options.spec)
    return price * sum(seconds_to_send(options, config) for config in configs) / 60 if price else 0.0


def check_cost(cost: float, agreed: bool, smaller: str = "--limit") -> None:
    """Refuse a run that costs more than a dollar, unless the user has agreed."""
    if cost > FREE_OF_QUESTIONS and not agreed:
        raise UserError(
            f"it would cost about {cost:.2f} $ by the price list; --pay runs it, {smaller} makes it smaller"
        )
