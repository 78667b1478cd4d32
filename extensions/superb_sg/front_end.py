"""A trained head as a front end, `superb:heads/hubert`, so that `srb quality --front` and `srb run` take it.

So every scenario of the benchmark asks whether an encoder that is robust for recognition is so for enhancement too.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.models.interface import Clip, FrontEnd, need


def superb(target: str) -> FrontEnd:
    """`superb:<folder of a head>`: one signal for enhancement, two for separation."""
    need("torch", "superb", install_hint("models"))
    from speech_robust_bench.extensions.superb_sg.mask_head import FFT, separate
    from speech_robust_bench.extensions.superb_sg.training import longest_of, open_head

    if not target:
        raise UserError("'superb' needs the folder of a trained head: superb:heads/hubert")
    record, upstream, head = open_head(Path(target))
    longest = longest_of(upstream)

    def enhance(clip: Clip, rate: int) -> Clip:
        if record.task == "separation" and len(clip) > longest:
            raise UserError(
                f"superb:{target} separates clips of up to {longest / rate:g} s, not {len(clip) / rate:.1f} s"
            )
        padded = np.pad(clip, (0, max(0, FFT - len(clip))))
        parts = [padded[start : start + longest] for start in range(0, len(padded), longest)]
        parts = [np.pad(part, (0, max(0, FFT - len(part)))) for part in parts]
        outputs = np.concatenate([separate(head, upstream, part) for part in parts], axis=1)[:, : len(clip)]
        return outputs[0] if record.task == "enhancement" else outputs

    return enhance
