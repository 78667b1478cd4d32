"""Do upstreams keep their ranks with a smaller head or less data? SUPERB-SG asks it in Tables 6, 8, 10 and 11.

Probes of the same dev set are grouped by what they were trained with: the head's size, the hours of data that were
asked for, and the augmentation. Between the groups, Spearman's rho over the upstreams that both have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.probe.probe_file import ProbeFile
from speech_robust_bench.models.probe.upstream_spec import upstream_name


class Setting(NamedTuple):
    """What a probe was trained with, beside its upstream."""

    head: str
    hours: float | None  # None for all that the corpus has
    augmented: bool

    def __str__(self) -> str:
        hours = "all data" if self.hours is None else f"{self.hours:g} h"
        return f"{self.head}, {hours}{', augmented' if self.augmented else ''}"


@dataclass(frozen=True)
class Ranks:
    """Dev WER by setting and upstream, and each setting's rank correlation with the first."""

    language: str
    wer: dict[Setting, dict[str, float]]

    @property
    def settings(self) -> list[Setting]:
        """The setting with the most upstreams first; of those the medium head on all data, which is the paper's."""
        return sorted(self.wer, key=lambda s: (-len(self.wer[s]), s.head != "medium", s.hours is not None, str(s)))

    def correlation(self, one: Setting, other: Setting) -> float | None:
        """Spearman's rho over the upstreams of both; None for fewer than three."""
        from scipy.stats import rankdata, spearmanr

        shared = sorted(set(self.wer[one]) & set(self.wer[other]))
        if len(shared) < 3:
            return None
        ranks = [rankdata([self.wer[setting][name] for name in shared]) for setting in (one, other)]
        if any(min(r) == max(r) for r in ranks):  # no order at all
            return None
        return float(spearmanr(*ranks).statistic)

    def as_json(self) -> dict[str, Any]:
        """For programs: every setting with its WERs and its correlation with the first."""
        first, *_ = self.settings
        rows = [
            {**setting._asdict(), "wer": self.wer[setting], "spearman": self.correlation(first, setting)}
            for setting in self.settings
        ]
        return {"language": self.language, "settings": rows}


def rank_upstreams(probes: Sequence[ProbeFile]) -> Ranks:
    """The dev WERs of some probes; all must have been tested on the same clips."""
    if len({probe.data["dev_digest"] for probe in probes}) != 1:
        raise UserError("the probes were tested on different dev sets; train all with the same --corpus and --dev")
    wer: dict[Setting, dict[str, float]] = {}
    for probe in probes:
        setting = Setting(probe.head["size"], probe.data.get("hours_asked"), bool(probe.about.get("augment")))
        name = upstream_name(probe.about["upstream"]["spec"])
        if name in wer.setdefault(setting, {}):
            raise UserError(f"two probes are of {name} with {setting}; give one of them")
        wer[setting][name] = probe.dev_wer
    return Ranks(str(probes[0].language), wer)
