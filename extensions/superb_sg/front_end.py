"""A trained head as a front end, `superb:heads/hubert`, so that `srb quality --front` and `srb run` take it.

So every scenario of the benchmark asks whether an encoder that is robust for recognition is so for other tasks too:
the quality of enhanced and separated speech, and the WER of converted speech.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.extensions.superb_sg.head_file import read_head
from speech_robust_bench.models.interface import Clip, FrontEnd, need


def superb(target: str) -> FrontEnd:
    """`superb:<folder of a head>`: one signal for enhancement and conversion, two for separation."""
    if not target:
        raise UserError("'superb' needs the folder of a trained head: superb:heads/hubert")
    task = read_head(Path(target)).task
    if task == "translation":
        raise UserError(f"superb:{target} translates: it is no front end; `srb superb test --under` tests it")
    need("torch", "superb", install_hint("models"))
    return _conversion(target) if task == "conversion" else _masks(target)


def _conversion(target: str) -> FrontEnd:
    from speech_robust_bench.extensions.superb_sg.conversion_training import convert, open_conversion_head
    from speech_robust_bench.extensions.superb_sg.mel import MEL_RATE
    from speech_robust_bench.extensions.superb_sg.voices import at_rate

    _, upstream, head = open_conversion_head(Path(target))
    return lambda clip, rate: at_rate(convert(head, upstream, clip), MEL_RATE, rate)


def _masks(target: str) -> FrontEnd:
    from speech_robust_bench.extensions.superb_sg.head_training import longest_of
    from speech_robust_bench.extensions.superb_sg.mask_head import FFT, separate
    from speech_robust_bench.extensions.superb_sg.mask_training import open_mask_head

    record, upstream, head = open_mask_head(Path(target))
    longest = longest_of(upstream)

    def enhance(clip: Clip, rate: int) -> Any:
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
