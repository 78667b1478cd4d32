"""NVIDIA NeMo: `nemo:nvidia/parakeet-ctc-1.1b`, or a `.nemo` file; SALM too: `nemo:nvidia/canary-qwen-2.5b`.

Multi-task models (Canary) are told the language; the others write the one that they know. SALM is a language model that
takes audio: it is asked to transcribe, with one conversation per clip (NeMo's `collections.speechlm2`).
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.audio import RATE, resample
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.models.interface import Clip, Described, Recogniser, need
from speech_robust_bench.models.prompts import unwrap, with_raw

INSTALL = 'pip install "nemo_toolkit[asr]"'
PROMPT = "Transcribe the following:"  # as the card of Canary-Qwen has it
TOKENS_PER_S = 25.0
SALM_NAMES = ("canary-qwen", "salm")


@dataclass
class Nemo(Described):
    """Batches are NeMo's own: padded, with lengths."""

    model: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        audio = [resample(clip, rate, RATE) for clip in clips]
        spoken = {"source_lang": language, "target_lang": language} if self._multi_task and language else {}
        hypotheses = self.model.transcribe(audio=audio, batch_size=self.batch_size, verbose=False, **spoken)
        best = (
            hypotheses[0] if isinstance(hypotheses, tuple) else hypotheses
        )  # transducers of older releases: (best, all)
        return [item if isinstance(item, str) else item.text for item in best]

    @property
    def _multi_task(self) -> bool:
        return "MultiTask" in type(self.model).__name__


@dataclass
class Salm(Described):
    """A speech-augmented language model; its own batches are padded, with lengths."""

    model: Any = None
    prompt: str = PROMPT

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        import torch

        audio = [torch.from_numpy(resample(clip, rate, RATE)) for clip in clips]
        lengths = torch.tensor([len(clip) for clip in audio])
        padded = torch.nn.utils.rnn.pad_sequence(audio, batch_first=True)
        question = {"role": "user", "content": f"{self.prompt} {self.model.audio_locator_tag}"}
        most = max(2, int(max(lengths).item() / RATE * TOKENS_PER_S)) if len(clips) else 2
        answers = self.model.generate(
            prompts=[[question] for _ in clips],
            audios=padded.to(self.model.device),
            audio_lens=lengths.to(self.model.device),
            max_new_tokens=most,
        )
        raw = [self.model.tokenizer.ids_to_text(answer.cpu().tolist()).strip() for answer in answers]
        return [with_raw(unwrap(answer), answer) for answer in raw]


def load(target: str, *, device: str = "", batch_size: int = 16, prompt: str = PROMPT) -> Recogniser:
    """`nemo:<id or .nemo file>`; an empty `device` is NeMo's choice. `prompt` is for SALM, which `salm` models are."""
    asr = need("nemo.collections.asr", "nemo", INSTALL)
    if not target:
        raise UserError("'nemo' needs a model: nemo:nvidia/parakeet-ctc-1.1b, or nemo:<file.nemo>")
    if is_salm(target):
        return _load_salm(target, device, batch_size, prompt)
    local = Path(target).is_file()
    with closed_stdin():  # NeMo loads tokenizers and language models by transformers
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


def is_salm(target: str) -> bool:
    """Whether a model is a SALM: by its name on the Hub, or by the config in its folder."""
    config = Path(target) / "config.json"
    if config.is_file():
        return "audio_locator_tag" in config.read_text(encoding="utf-8")
    return any(name in target.lower() for name in SALM_NAMES)


def _load_salm(target: str, device: str, batch_size: int, prompt: str) -> Recogniser:
    speechlm = need("nemo.collections.speechlm2.models", "nemo", 'pip install "nemo_toolkit[asr,tts]"')
    with closed_stdin():
        model = speechlm.SALM.from_pretrained(target)
    model = model.to(device) if device else model
    model.eval()
    return Salm(
        name=Path(target).resolve().name if Path(target).is_dir() else target,
        revision=None,
        options={"device": device or None, "batch_size": batch_size, "prompt": prompt},
        batch_size=batch_size,
        model=model,
        prompt=prompt,
    )
