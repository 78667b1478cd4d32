"""A scenario: one row of the table (`builders.scenarios`), or of an extension's."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from typing import Any, Literal

from speech_robust_bench.core.audio import Samples
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.names import parameter_word, parse
from speech_robust_bench.core.rows import Parameters

Bank = Literal["noise", "noise_esc50", "noise_musan", "noise_wham", "music", "speech", "rir", "real_rir"]
# What a recording drawn from each bank is called in a row's parameters.
BANKS: dict[Bank, str] = {
    "noise": "noise",
    "noise_esc50": "noise",
    "noise_musan": "noise",
    "noise_wham": "noise",
    "music": "music",
    "speech": "speech",
    "rir": "room",
    "real_rir": "room",
}
# The lowest and the highest value that a parameter, or one scenario's, can be asked for at beyond the severities.
VALUES: dict[str, tuple[float, float]] = {
    "snr_db": (-50, 100),
    "delay_ms": (1, 5_000),
    "gain_db": (-60, 60),
    "decay": (0, 0.99),
    "factor": (0.1, 100),
    "semitones": (-24, 24),
    "depth_percent": (0, 100),
    "fraction": (0.0625, 1),
    "corner_hz": (100, 7_900),
    "kbps": (8, 128),
    "quality": (0, 10),
    "loss_percent": (0, 90),
    "loss_db": (0, 90),
    "level": (0.001, 1),
    "percent": (0, 50),
    "chunk_ms": (1, 1_000),
    "rate_hz": (2_000, 192_000),
    "cut_ms": (0, 10_000),
    "opus": (6, 128),
    "lc3": (16, 128),
    "agc": (0, 60),
    "chorus": (20, 90),  # SoX allows delays of 20 to 100 ms, and the second voice is 10 ms later
}
LINK = " + "  # between the steps of a chain


@dataclass(frozen=True)
class Scenario:
    """One hard scenario.

    A perturbation is a pure function `(samples, rate, value, rng) -> samples` with its value at each severity; one that
    needs material from a bank names it, and its function takes the recording as a fifth argument. One that begins with
    work that is the same at every severity names it as `prepare`, and its function takes the result as a last argument.
    What is made in another way (recordings, speech synthesis, attacks) says so as `maker` and has no function here.

    `from_clips` makes the clips of a config from the corpus' own: it gets those that are wanted, all of the corpus, the
    row, the severity and the seed of a private edition, and yields utterances. Only patterns that contain the category
    match such configs.

    A chain has no function either: its severities are other scenarios in the order in which they are applied, written
    as in config names (`rir_sev1 + noise_snr10 + telephone`), and `parts` holds their rows.

    `version` is raised when what a row makes changes. It is part of the random stream and of all hashes only if it is
    not the first, so that a changed scenario leaves the data and results of all others valid.
    """

    name: str
    category: str
    help: str
    source: str
    function: Callable[..., Any] | None = None
    parameter: str | None = None
    severities: tuple[Any, ...] = (None,)
    bank: Bank | None = None
    maker: str = "perturbation"
    has_speech: bool = True
    prepare: Callable[[Samples], Any] | None = None
    version: int = 1
    parts: tuple[Scenario, ...] = ()
    package: str | None = None  # of an extra, without which it cannot be made
    from_clips: Callable[..., Iterator[Any]] | None = None
    mix: Callable[[Samples, Samples, Any], Samples] | None = None  # makes one clip of two, at a value
    languages: tuple[str, ...] = ()  # the only ones that it is made in; none: all
    facts: tuple[str, ...] = ()  # lists among a row's parameters that its predictions get, as texts
    keeps_text: bool = True  # whether what is said is what the clean clip says
    stretches: bool = False  # makes the clip longer or shorter throughout, so that a word's place moves in proportion
    cuts_start: bool = False
    has_snr: bool = False  # what it adds is noise, whose level is told

    @property
    def perturbs(self) -> bool:
        """Whether it is made from a clean clip by this package: by a function, or by a chain of them."""
        return self.function is not None or bool(self.parts)

    @property
    def banks(self) -> tuple[Bank, ...]:
        """The banks that it, or a step of it, draws from."""
        own = (self.bank,) if self.bank else ()
        return tuple(dict.fromkeys((*own, *(bank for part in self.parts for bank in part.banks))))

    @property
    def packages(self) -> tuple[str, ...]:
        """The optional packages that it, or a step of it, needs."""
        own = (self.package,) if self.package else ()
        return tuple(dict.fromkeys((*own, *(name for part in self.parts for name in part.packages))))

    @property
    def edition(self) -> str:
        """Its version, and after it those of its steps that are not the first."""
        return self.edition_with(lambda bank: 1)

    def edition_with(self, version_of: Callable[[Bank], int]) -> str:
        """The same with the recordings at hand, for which the version may be a later one (`Banks.version`)."""
        own = max(self.version, version_of(self.bank) if self.bank else 1)
        parts = ((part.name, part.edition_with(version_of)) for part in self.parts)
        return ", ".join((str(own), *(f"{name} {version}" for name, version in parts if version != "1")))

    @property
    def rng_key(self) -> str:
        """The key of its random generator."""
        return self.name if self.version == 1 else f"{self.name} version {self.version}"

    def steps(self, severity: float) -> list[tuple[Scenario, int]]:
        """The scenarios of a chain at a severity, each with its own severity."""
        rows = {part.name: part for part in self.parts}
        names = [parse(f"en_{step}") for step in str(self.value(severity)).split(LINK)]
        return [
            (rows[n.scenario] if n.value is None else rows[n.scenario].at(n.value, n.parameter), n.severity)
            for n in names
        ]

    @property
    def graded(self) -> bool:
        """Whether it comes in severities, counted from 1; a scenario that does not has only severity 0."""
        return len(self.severities) > 1

    @property
    def keeps_start(self) -> bool:
        """Whether the clip still begins where it did."""
        return not self.cuts_start and all(part.keeps_start and not part.stretches for part in self.parts)

    @property
    def levels(self) -> tuple[int, ...]:
        """Its severities as numbers: (1, 2, 3, 4), or (0,) where it has none."""
        return tuple(range(1, len(self.severities) + 1)) if self.graded else (0,)

    @property
    def continuous(self) -> bool:
        """Whether something lies between two severities: between numbers it does, between bins of rooms it does not."""
        numbers = all(isinstance(value, int | float) for value in self.severities)
        return self.graded and numbers and not str(self.parameter).endswith("_bin")

    def value(self, severity: float) -> Any:
        """The parameter at a severity; between two severities, the value in proportion between theirs."""
        if severity in self.levels:
            return self.severities[max(int(severity) - 1, 0)]
        if self.graded and not severity:
            raise UserError(f"scenario '{self.name}' needs a severity, 1 to {len(self.severities)}")
        if self.continuous and self.levels[0] < severity < self.levels[-1]:
            below = int(severity) - 1
            low, high = self.severities[below : below + 2]
            return low + (high - low) * (severity - int(severity))
        allowed = f"1 to {len(self.severities)}" if self.graded else "none (leave it out)"
        raise UserError(f"scenario '{self.name}' has no severity {severity}; it has {allowed}")

    def parameters_at(self, severity: float) -> Parameters:
        """The parameter and its value at a severity; nothing for a scenario without one."""
        return {self.parameter: self.value(severity)} if self.parameter else {}

    @property
    def takes_values(self) -> bool:
        """Whether it can be asked for at any value of its parameter, not only at its severities."""
        return self.function is not None and self.parameter in VALUES

    def at(self, value: float, parameter: str | None = None) -> Scenario:
        """The same scenario at one value of its parameter, without severities; the parameter may be named, to check it.

        All values of a scenario draw from one random stream of a clip, that of severity 0: the same noise, for example,
        at every SNR.
        """
        if not self.takes_values:
            raise UserError(f"scenario '{self.name}' cannot be asked for at a value; leave the value out")
        assert self.parameter
        word = parameter_word(self.parameter)
        lowest, highest = VALUES.get(self.name, VALUES[self.parameter])
        if parameter not in (None, word):
            raise UserError(f"scenario '{self.name}' has no parameter '{parameter}'; its values are written {word}<N>")
        if not lowest <= value <= highest:
            raise UserError(f"scenario '{self.name}': {self.parameter} {value:g} is not in {lowest:g} to {highest:g}")
        return replace(self, severities=(int(value) if float(value).is_integer() else value,))

    def chosen(self, severity: float, value: float | None = None) -> Scenario:
        """The scenario if it has that severity, or the scenario at a value; one clear error otherwise."""
        if value is not None and severity:
            raise UserError("say either a severity or a value")
        row = self if value is None else self.at(value)
        row.value(severity)
        return row


def missing_packages(row: Scenario) -> list[str]:
    """The optional packages that a scenario needs and that are not installed."""
    return [name for name in row.packages if not _installed(name)]


def check_can_perturb(scenario: Scenario) -> None:
    """One clear error for a scenario that is made in another way, or that needs a package that is not there."""
    if scenario.mix:
        raise UserError(f"scenario '{scenario.name}' needs a second clip (--second, in Python second=)")
    if not scenario.perturbs:
        raise UserError(f"scenario '{scenario.name}' is made by {scenario.maker}, not by perturbing a clip")
    if missing := missing_packages(scenario):
        raise UserError(f"scenario '{scenario.name}' needs {' and '.join(missing)}: {install_hint('codecs')}")


@cache
def _installed(package: str) -> bool:
    return find_spec(package) is not None


ATTACK_SNR_DB = (40, 30, 20, 10)


def attack_scenario(
    name: str, category: str, source: str, help: str, snr_db: tuple[float, ...] = ATTACK_SNR_DB
) -> Scenario:
    """The row of an attack, by the SNR that bounds it at each severity; () for one without a bound."""
    parameter = "snr_db" if snr_db else None
    return Scenario(name, category, help, source, None, parameter, snr_db or (None,), maker="attack")
