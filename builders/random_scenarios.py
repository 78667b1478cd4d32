"""Scenarios drawn at random for training: which one a clip gets, and how severe, from its name, the seed and the epoch.

The draw depends on nothing else, so it is the same in every worker and after every interruption. `srb.RandomPerturb`
and `srb probe train --train-augment` draw here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from speech_robust_bench.builders.scenarios import SCENARIOS, Scenario, choose
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import clip_rng


@dataclass(frozen=True)
class Draw:
    """The draw for one clip; without a scenario the clip stays as it is."""

    corpus: str
    clip_id: str
    seed: str
    scenario: Scenario | None
    severity: float = 0


@dataclass(frozen=True)
class RandomScenarios:
    """Some scenarios, and the range of severities that are drawn from; a scenario that has fewer takes its own."""

    rows: tuple[Scenario, ...]
    severity: tuple[float, float] = (1, 4)

    @classmethod
    def named(
        cls,
        names: Iterable[str],
        severity: tuple[float, float] = (1, 4),
        table: Mapping[str, Scenario] = SCENARIOS,
        without: Iterable[str] = (),
    ) -> RandomScenarios:
        """Those of some names or categories; without any, all that leave the speech in the clip.

        Among all, those that need a package of their own are left out: a draw does not depend on what is installed.
        """
        names, left_out = list(names), list(without)
        held_out = {row.name for row in choose(left_out, table)} if left_out else set()
        known = [row for row in choose(names, table) if row.perturbs]
        chosen = known if names else [row for row in known if row.has_speech and not row.packages]
        rows = tuple(row for row in chosen if row.name not in held_out)
        if not rows:
            raise UserError(f"none of {', '.join(names)} is a scenario that perturbs clips")
        low, high = severity
        if not 1 <= low <= high:
            raise UserError(f"severity={severity}: give the least and the greatest, 1 or more, as in (1, 4)")
        return cls(rows, (low, high))

    def choose(self, rng: np.random.Generator) -> tuple[Scenario, float]:
        """One scenario, at a severity between the table's values where there is anything between."""
        scenario = self.rows[int(rng.integers(len(self.rows)))]
        if not scenario.graded:
            return scenario, 0
        low, high = (min(max(bound, 1), scenario.levels[-1]) for bound in self.severity)
        if scenario.continuous:
            return scenario, round(float(rng.uniform(low, high)), 3)
        levels = [level for level in scenario.levels if low <= level <= high] or [round(low)]
        return scenario, levels[int(rng.integers(len(levels)))]


def draw_for_clip(
    choice: Callable[[np.random.Generator], tuple[Scenario, float]],
    corpus: str,
    clip_id: str,
    *,
    p: float = 1.0,
    seed: int | str = "",
    epoch: int = 0,
    stream: str = "RandomPerturb",
) -> Draw:
    """What a clip gets in an epoch: with probability `p` what `choice` chooses, else nothing."""
    drawn_seed = f"{seed}\x1e{epoch}" if epoch else str(seed)
    rng = clip_rng(corpus, clip_id, stream, 0, drawn_seed)
    if rng.random() >= p:
        return Draw(corpus, clip_id, drawn_seed, None)
    return Draw(corpus, clip_id, drawn_seed, *choice(rng))
