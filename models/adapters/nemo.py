"""NVIDIA NeMo: `nemo:nvidia/parakeet-ctc-1.1b`, or a `.nemo` file.

Multi-task models (Canary) are told the language; the others write the one that they know.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from srb.builders.audio import RATE, resample
from srb.builders.errors import UserError
from srb.models.interface import Clip, Described, Recogniser, need

INSTALL = 'pip install "nemo_toolkit[asr]"'


@dataclass
class Nemo(Described):
    """Batches are NeMo's own: padded, with lengths."""

    model: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        audio = [resample(clip, rate, RATE) for clip in clips]
        spoken = {"source_lang": language, "target_lang": language} if self._multi_task and language else {}
        found = self.model.transcribe(audio=audio, batch_size=self.batch_size, verbose=False, **spoken)
        best = found[0] if isinstance(found, tuple) else found  # transducers of older releases: (best, all)
        return [one if isinstance(one, str) else one.text for one in best]

    @property
    def _multi_task(self) -> bool:
        return "MultiTask" in type(self.model).__name__


def load(target: str, *, device: str = "", batch_size: int = 16) -> Recogniser:
    """`nemo:<id or .nemo file>`; an empty `device` is NeMo's choice."""
    asr = need("nemo.collections.asr", "nemo", INSTALL)
    if not target:
        raise UserError("'nemo' needs a model: nemo:nvidia/parakeet-ctc-1.1b, or nemo:<file.nemo>")
    local = Path(target).is_file()
    model = asr.models.ASRModel.restore_from(target) if local else asr.models.ASRModel.from_pretrained(target)
    model = model.to(device) if device else model
    model.eval()
    return Nemo(
        name=Path(target).stem if local else target,
        revision=None,
        options={"device": device or None, "batch_size": batch_size},
        batch_size=batch_size,
        model=model,
    )
