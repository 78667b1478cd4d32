"""What can be wrong with a clip, found before hours are spent on it: one clear line each."""

from __future__ import annotations

from collections.abc import Callable

from speech_robust_bench.attacks.clips import AttackClip, norm2
from speech_robust_bench.attacks.differentiable.base import View
from speech_robust_bench.core.errors import UserError


def check_sound(clip: AttackClip) -> None:
    """A silent clip has no SNR, so no bound."""
    if not norm2(clip.samples):
        raise UserError("the clip is silent, so no SNR bounds a perturbation of it")


def checker(view: View, targets: list[str] | None = None) -> Callable[[AttackClip], None]:
    """A check of one clip against what a model can take and write."""
    for target in targets or []:
        try:
            view.spell(target)
        except UserError as reason:
            raise UserError(f"target '{target}': {reason}") from None

    def check(clip: AttackClip) -> None:
        check_sound(clip)
        if clip.seconds > view.longest_s:
            raise UserError(
                f"the clip lasts {clip.seconds:.1f} s and {view.recogniser.name} takes {view.longest_s:g} s"
            )
        view.spell(clip.text)

    return check
