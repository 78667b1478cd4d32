"""Several GPUs: batches spread over a Ray cluster, one loaded model per worker. The driver writes what comes back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from speech_robust_bench.attacks.attack_target import TargetOptions, open_target
from speech_robust_bench.attacks.batch_runner import BatchRunner
from speech_robust_bench.attacks.clips import AttackClip
from speech_robust_bench.attacks.gradient_loop import Attack, Attacked
from speech_robust_bench.core.engines import RayActors


class BatchAttacker(BatchRunner):
    """Opens a model of its own; a call is one batch."""

    def __init__(self, settings: TargetOptions) -> None:
        super().__init__(open_target(settings))


class Workers:
    """As many attackers as asked for, or as there are GPUs."""

    def __init__(self, settings: TargetOptions, count: int | None) -> None:
        self._actors = RayActors(BatchAttacker, (settings,), count)

    def map(self, attack: Attack, batches: Iterable[list[AttackClip]]) -> Iterator[list[Attacked]]:
        """The batches attacked, in the order in which they are done; only as many are read as are worked on."""
        yield from self._actors.map_unordered("run", ((attack, batch) for batch in batches))

    def close(self) -> None:
        self._actors.close()
