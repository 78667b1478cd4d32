"""How a processor of transformers is asked for a transcript. Processors differ; there are four kinds of request.

- `plain`: the audio alone, and the language where the processor takes one (Moonshine, SpeechT5, Parakeet, Cohere ASR);
- `transcription_request`: the processor writes the request itself (`apply_transcription_request`: Canary, Voxtral,
  Qwen3-ASR, GLM-ASR, VibeVoice, Fun-ASR, MOSS, Audio Flamingo 3);
- `chat`: a conversation with the audio and an instruction in it (Qwen2-Audio, Qwen Omni);
- `chat_text`: the same where the template takes texts only, with a mark for the audio (Granite Speech, Phi-4).

Which one is read off the processor; what cannot be read there is written down, by the model's type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from speech_robust_bench.models.interface import Clip

# What the models' cards say to ask; `?prompt=` in a spec says something else.
PROMPTS = {
    "granite_speech": "can you transcribe the speech into a written format?",
    "granite_speech_plus": "can you transcribe the speech into a written format?",
    "phi4_multimodal": "Transcribe the audio clip into text.",
    "qwen2_audio": "Transcribe the audio clip into text.",
}
DEFAULT_PROMPT = "Transcribe the speech word for word, and write nothing else."


@dataclass(frozen=True)
class Wanted:
    """What a model is asked for beside the audio: its rate, the language and the prompt."""

    rate: int
    language: str | None
    prompt: str | None
    model_id: str


Request = Callable[[Any, list[Clip], Wanted], Any]


def plain(processor: Any, clips: list[Clip], wanted: Wanted) -> Any:
    """The audio alone; the language for processors that take one."""
    told = {"language": wanted.language or "en"} if "language" in parameters(type(processor).__call__) else {}
    return processor(audio=clips, sampling_rate=wanted.rate, return_tensors="pt", padding=True, **told)


def transcription_request(processor: Any, clips: list[Clip], wanted: Wanted) -> Any:
    """What `apply_transcription_request` takes differs; it is given what it names."""
    offered = {
        "language": wanted.language,
        "source_language": wanted.language,
        "prompt": wanted.prompt,
        "model_id": wanted.model_id,
        "format": ["wav"] * len(clips),
        "sampling_rate": wanted.rate,
    }
    known = parameters(processor.apply_transcription_request)
    chosen = {name: value for name, value in offered.items() if name in known and value is not None}
    return processor.apply_transcription_request(clips, return_tensors="pt", **chosen)


def chat(processor: Any, clips: list[Clip], wanted: Wanted) -> Any:
    """A conversation per clip, with the audio and the instruction in one turn of the user."""
    conversations = [
        [{"role": "user", "content": [{"type": "audio", "audio": clip}, {"type": "text", "text": wanted.prompt}]}]
        for clip in clips
    ]
    how = {"return_tensors": "pt", "padding": True, "sampling_rate": wanted.rate}
    return processor.apply_chat_template(
        conversations, tokenize=True, add_generation_prompt=True, return_dict=True, processor_kwargs=how
    )


def chat_text(processor: Any, clips: list[Clip], wanted: Wanted) -> Any:
    """The template makes the text, with a mark where the audio goes; the processor puts it there."""
    turn = [{"role": "user", "content": f"{processor.audio_token}{wanted.prompt}"}]
    text = processor.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True)
    return processor(text=[text] * len(clips), audio=clips, return_tensors="pt", padding=True)


BY_TYPE: dict[str, Request] = {
    "granite_speech": chat_text,
    "granite_speech_plus": chat_text,
    "phi4_multimodal": chat_text,
    "qwen2_audio": chat,  # its template is its tokenizer's
    "qwen2_5_omni": chat,
    "qwen2_5_omni_thinker": chat,
    "qwen3_omni_moe": chat,
    "qwen3_omni_moe_thinker": chat,
}


def request_for(processor: Any, model_type: str, *, converses: bool = False) -> Request:
    """The kind of request that a model's processor takes; `converses` says that the model is a language model."""
    if model_type in BY_TYPE:
        return BY_TYPE[model_type]
    if hasattr(processor, "apply_transcription_request"):
        return transcription_request
    return chat if converses and getattr(processor, "chat_template", None) else plain


def prompt_for(request: Request, model_type: str, prompt: str) -> str | None:
    """The instruction: the user's, else the model's own; None where the processor has one or takes none."""
    if prompt:
        return prompt
    return PROMPTS.get(model_type, DEFAULT_PROMPT) if request in (chat, chat_text) else None


def parameters(function: Any) -> set[str]:
    """The names of a function's parameters."""
    return set(inspect.signature(function).parameters)
