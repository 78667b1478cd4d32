"""`srb.attack`: the adversarial configs of one model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speech_robust_bench.attacks.registry import AttackOptions, attack_row
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.options import Place

if TYPE_CHECKING:
    from speech_robust_bench.attacks.export import ExportedConfig


@dataclass(frozen=True)
class AttackResult:
    """The configs that an attack made. Transfer attacks also have the success of each proxy on each model."""

    folder: Path
    configs: list[ExportedConfig]
    matrices: dict[Path, str] = field(default_factory=dict)


def attack(
    attack: str,
    model: str | Sequence[str] = (),
    config: str = "en_clean",
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place = "srb",
    attack_options: AttackOptions = AttackOptions(),
    progress: bool = True,
) -> AttackResult:
    """Make the adversarial configs of a model; an attack that was interrupted continues where it stopped.

    Args:
        attack: a name such as "pgd" (`srb attack --help` lists them).
        model: the model to attack, or for transfer attacks the models to score; "kenansville" needs none.
        config: the clean config whose clips are attacked.
        data: a built folder, a name in the datasets cache, or a Hub dataset.
        limit: only the first clips.
        out: the folder for the configs.
        attack_options: severities, steps, targets, proxies and so on.
        progress: show progress.
    """
    if find_spec("torch") is None:
        raise UserError(f"attacks need torch: {install_hint('attacks')}")
    from speech_robust_bench.attacks.make_configs import AttackRequest, make_configs

    models = [model] if isinstance(model, str) else list(model)
    request = AttackRequest(attack, config, models, str(data), Path(out), limit, attack_options)
    with progress_bar(not progress) as bar:
        if tabulate := attack_row(attack).matrices:
            return AttackResult(request.out, *load_object(tabulate)(request, _Bars(bar)))
        return AttackResult(request.out, make_configs(request, _Bars(bar)))


class _Bars:
    """One progress bar per stage."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        task = self.bar.add_task(label, total=total)

        def tick(clips: int, note: str) -> None:
            self.bar.update(task, description=f"{label}, {note}", advance=clips)

        return tick
