"""How well the attacks worked that a run was tested with: one row per adversarial config."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.success_rates import success_rates


def is_adversarial(config: str) -> bool:
    """Whether a config's scenario is an attack."""
    scenario = SCENARIOS.get(parse(config).scenario)
    return scenario is not None and scenario.category.startswith("adv_")


def of_lines(lines: Sequence[Prediction], normaliser: str) -> dict[str, float]:
    """The success rates of one config's predictions, targeted ones where every line has its `target`.

    With the mean SNR reached (`snr_db`) and the mean share above the masking threshold (`above_threshold`, in %).
    """
    references, predictions = [line.text or "" for line in lines], [line.transcript for line in lines]
    targets = [line.target for line in lines if line.target]
    targeted = bool(lines) and len(targets) == len(lines)
    rates = success_rates(references, predictions, targets if targeted else None, normaliser=normaliser)
    shares = [line.above_threshold for line in lines if line.above_threshold is not None]
    reached = [line.snr_reached_db for line in lines if line.snr_reached_db is not None]
    rates |= {"snr_db": statistics.fmean(reached)} if reached else {}
    rates |= {"above_threshold": 100 * statistics.fmean(shares)} if shares else {}
    return {name: round(value, 4) for name, value in rates.items()}


@dataclass(frozen=True)
class AttackRow:
    """One adversarial config of one model."""

    model: str
    config: str
    attack: str
    snr_db: float | None  # the bound
    clips: int
    wer: float
    rates: Mapping[str, float]
    noise_wer: float | None  # of white noise at the same SNR on the same corpus

    def cells(self) -> list[str]:
        """The row as text, in the order of HEADS."""
        rates = [self.rates.get(name) for name in RATES]
        numbers = [f"{value:.1f}" if value is not None else "" for value in (self.wer, self.noise_wer, *rates)]
        bound = f"{self.snr_db:g}" if self.snr_db is not None else ""
        return [self.attack, bound, str(self.clips), *numbers]


RATES = ("snr_db", "above_threshold", "uasr", "uasr_char", "tasr", "tasr_char", "exact")
HEADS = (
    *("attack\n", "bound\ndB", "clips\n", "WER\n%", "noise\nWER %", "SNR\ndB", "heard\n%"),
    *("UASR\nwords", "UASR\nchars", "TASR\nwords", "TASR\nchars", "exact\n%"),
)


def attack_rows(
    model: str, attacked: Mapping[str, tuple[int, Mapping[str, float]]], wer: Mapping[str, float]
) -> list[AttackRow]:
    """A row for each adversarial config, the mildest bound of each attack first.

    `attacked` has the clips and success rates of each, `wer` the WER of every config of the model.
    """
    rows = []
    for config, (clips, rates) in attacked.items():
        if config in wer:
            name = parse(config)
            bound = SCENARIOS[name.scenario].value(name.severity)
            noise = _noise_wer(wer, name, bound)
            rows.append(AttackRow(model, config, name.scenario, bound, clips, wer[config], rates, noise))
    return sorted(rows, key=lambda row: (row.attack, -(row.snr_db or 0.0), row.config))


def attacks_of(results: RunResults, language: str | None = None) -> list[AttackRow]:
    """The rows of a run."""
    attacked = {
        config: (entry.rows, entry.attack)
        for config, entry in results.configs.items()
        if entry.attack and language in (None, entry.language)
    }
    return attack_rows(
        results.model, attacked, {c: entry.wer.value for c, entry in results.configs.items() if entry.wer}
    )


def adversarial_rows(results: RunResults) -> list[AttackRow]:
    """The same, or a line that says how to get some."""
    rows = attacks_of(results)
    if not rows:
        raise UserError(f"{results.model} was run on no adversarial config; srb attack makes them")
    return rows


def _noise_wer(wer: Mapping[str, float], name: ConfigName, bound: float | None) -> float | None:
    noise = SCENARIOS["gaussian"]
    for severity in noise.levels if bound is not None else ():
        if noise.value(severity) == bound:
            return wer.get(str(ConfigName(name.language, noise.name, severity, name.corpus)))
    return None


def by_attack(rows: Iterable[AttackRow]) -> dict[str, list[AttackRow]]:
    """Rows of one attack together, those with a bound alone: what a curve can show."""
    groups: dict[str, list[AttackRow]] = {}
    for row in rows:
        if row.snr_db is not None:
            groups.setdefault(row.attack, []).append(row)
    return groups
