"""A front end of your own: `python:module:function`, called with (clip, rate), or a class that is called so.

It gives a clip of the same length, or an array (talkers, samples): any enhancer or separator that Python can run.
"""

from __future__ import annotations

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.adapters.python import imported
from speech_robust_bench.models.interface import Clip, FrontEnd


def load(target: str) -> FrontEnd:
    """The function, with its answers checked."""
    function = imported(target)

    def enhance(clip: Clip, rate: int) -> Clip:
        enhanced = np.asarray(function(clip, rate), dtype=np.float32)
        if enhanced.shape[-1:] != clip.shape or enhanced.ndim > 2 or (not enhanced.size and len(clip)):
            raise UserError(
                f"the front end python:{target} gave an array of {enhanced.shape} for a clip of {len(clip)} samples; "
                "it must be as long as the clip, or (talkers, samples)"
            )
        return enhanced

    return enhance
