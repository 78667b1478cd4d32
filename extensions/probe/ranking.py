"""Encoders compared: ablations, ranks, the weight of each layer, and error rates out of domain.

The OOD-ASR table of SUPERB-SG (Tsai et al., 2022, Table 9): error rates out of domain, and their mean.

WER, for Mandarin CER; the average is the unweighted mean of the four tasks. Beside it, what the paper does not have:
WERD, the difference to the clean config of the same language's default corpus (LibriSpeech, MLS), where the run has it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

from speech_robust_bench.builders import suites
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.extensions.probe.probe_file import ProbeFile, upstream_name
from speech_robust_bench.scoring.measures import Measure, TableForm


class Ablation(NamedTuple):
    """One probe of an ablation."""

    upstream: str
    head: str
    hours: float | None  # None for all data
    folder: Path


def ablations(
    upstreams: Sequence[str], heads: Sequence[str], hours: Sequence[float], out: str | Path
) -> list[Ablation]:
    """The probes to train, each with a folder of its own below `out`."""
    settings: list[tuple[str, float | None]] = [*((head, None) for head in heads), *((heads[0], h) for h in hours)]
    names = {upstream: re.sub(r"[^A-Za-z0-9._]+", "-", upstream_name(upstream)).strip("-.") for upstream in upstreams}
    if len(set(names.values())) < len(upstreams) or len(set(settings)) < len(settings):
        raise UserError("an ablation names each encoder, head and number of hours once")
    return [
        Ablation(upstream, head, part, Path(out) / "-".join((name, head, *(() if part is None else (f"{part:g}h",)))))
        for head, part in settings
        for upstream, name in names.items()
    ]


BAR, GAP, HEIGHT, LEFT, TOP = 18, 6, 120, 44, 26


def layer_chart(rows: Sequence[tuple[str, Sequence[float]]]) -> str:
    """One row of bars for each probe; layer 0 is what goes into the first block."""
    most = max((weight for _, weights in rows for weight in weights), default=0) or 1
    widest = LEFT + max(len(weights) for _, weights in rows) * (BAR + GAP) + GAP
    block = TOP + HEIGHT + 24
    parts = []
    for place, (name, weights) in enumerate(rows):
        top = place * block + TOP
        parts.append(f'<text x="{LEFT}" y="{top - 8}" font-weight="bold">{escape(name)}</text>')
        parts.append(f'<text x="{LEFT - 4}" y="{top + 10}" text-anchor="end">{most:.2f}</text>')
        parts.append(f'<text x="{LEFT - 4}" y="{top + HEIGHT}" text-anchor="end">0</text>')
        for layer, weight in enumerate(weights):
            x, height = LEFT + GAP + layer * (BAR + GAP), HEIGHT * weight / most
            parts.append(
                f'<rect x="{x}" y="{top + HEIGHT - height:.1f}" width="{BAR}" height="{height:.1f}" fill="#2f6f9f">'
                f"<title>layer {layer}: {weight:.4f}</title></rect>"
                f'<text x="{x + BAR / 2}" y="{top + HEIGHT + 14}" text-anchor="middle">{layer}</text>'
            )
    size = f'width="{max(widest, 240)}" height="{block * len(rows)}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n' + "\n".join(parts) + "\n</svg>\n"


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

    def as_json(self) -> Settings:
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


def ood_rows(result: RunResults, tasks: Mapping[str, Sequence[str]]) -> list[tuple[str, ...]]:
    """A row for each task, and the average; the average only where all tasks were run.

    `tasks` are, by the name that the paper gives them, language and corpus.
    """
    rows, rates, losses = [], [], []
    for task, (language, corpus) in tasks.items():
        rate = _rate(result, f"{language}-{corpus}_clean")
        usual = _rate(result, f"{language}_clean")
        loss = rate - usual if rate is not None and usual is not None else None
        unit = "CER" if language == "zh" else "WER"
        rows.append((f"{task} {unit}", *map(_shown, (rate, usual, loss))))
        rates.append(rate)
        losses.append(loss)
    rows.append(("AVG", _shown(_mean(rates)), "", _shown(_mean(losses))))
    return rows


def _rate(result: RunResults, config: str) -> float | None:
    entry = result.configs.get(config)
    return entry.wer.value if entry and entry.wer else None


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return ood_rows(result, suites.load("ood").corpora)


OOD = Measure(
    "ood",
    table=TableForm(
        "ood",
        "print error rates out of domain (after `srb run --suite ood`)",
        ("", "out of domain", "in domain", "WERD"),
        _rows,
    ),
)
