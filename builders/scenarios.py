"""The scenario table: one row is one scenario, and names, help, cards, docs and tests all derive from it.

Sources: Speech Robust Bench (Shah et al., Table 2 and Appendix A; the filter corners are Hz and the SNRs are those of
the table and of the published data), AequeVox (Rajan et al., Table 10).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

Bank = Literal["noise", "noise_esc50", "noise_musan", "noise_wham", "music", "speech", "rir", "real_rir"]


@dataclass(frozen=True)
class Scenario:
    """One hard scenario: a pure function `(samples, rate, value, rng) -> samples` and its value at each severity.

    A scenario that needs material from a bank names it in `bank`, and its function takes the recording as a fifth
    argument.
    """

    name: str
    category: str
    function: Callable[..., Any]
    severities: tuple[Any, ...]
    unit: str
    source: str
    help: str
    bank: Bank | None = None
    constants: dict[str, Any] = field(default_factory=dict)

    def value(self, severity: int) -> Any:
        """The parameter at a severity, counted from 1."""
        return self.severities[severity - 1]
