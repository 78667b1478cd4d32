"""How a processor of transformers is asked for a transcript. Processors differ; there are four kinds of request.

- `plain`: the audio alone, and the language where the processor takes one (Moonshine, SpeechT5, Parakeet, Cohere ASR);
- `transcription_request`: the processor writes the request itself (`apply_transcription_request`: Canary, Voxtral,
  Qwen3-ASR, GLM-ASR, VibeVoice, Fun-ASR, MOSS, Audio Flamingo 3);
- `chat`: a conversation with the audio and an instruction in it (Qwen2-Audio, Qwen Omni);
- `chat_text`: the same where the template takes texts only, with a mark for the audio (Granite Speech, Phi-4).

Which one is read off the processor; what cannot be read there is written down, by the model's type.

Models that write until they are done: encoder-decoders, transducers, and language models that take audio.

The request differs (`models.hf.generate`), the rest is shared: generate, drop the prompt's tokens, decode. On noise
a decoder may never end by itself, so a clip has at most `tokens_per_s` tokens for each of its seconds; models that
write in step with the audio (transducers, Kyutai, Voxtral Realtime) need no such bound.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.hf.base import ISO_639_3, Inputs, TransformersRecogniser, nbest_lists, positions
from speech_robust_bench.models.interface import Clip, Transcript, with_turns
from speech_robust_bench.models.prompts import PROMPT, raw_text, unwrap, with_raw

# What the models' cards say to ask; `?prompt=` in a spec says something else.
PROMPTS = {
    "granite_speech": "can you transcribe the speech into a written format?",
    "granite_speech_plus": "can you transcribe the speech into a written format?",
    "phi4_multimodal": "Transcribe the audio clip into text.",
    "qwen2_audio": "Transcribe the audio clip into text.",
}


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
    return PROMPTS.get(model_type, PROMPT) if request in (chat, chat_text) else None


def takes_prompt(request: Request, processor: Any) -> bool:
    """Whether a request has a place for an instruction."""
    if request is transcription_request:
        return "prompt" in parameters(processor.apply_transcription_request)
    return request in (chat, chat_text)


def prompt_with_terms(prompt: str | None, terms: Sequence[str]) -> str | None:
    """The instruction with the terms that may be said."""
    return " ".join(filter(None, (prompt, f"These words may occur: {', '.join(terms)}."))) if terms else prompt


def parameters(function: Any) -> set[str]:
    """The names of a function's parameters."""
    return set(inspect.signature(function).parameters)


IN_STEP = {"kyutai_speech_to_text", "voxtral_realtime"}  # a token for every frame of audio
LEAST_TOKENS = 2


class Generator(TransformersRecogniser):
    """What all models that generate their transcript token by token have in common."""

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        return [joined(parts) for parts in self._in_pieces(clips, partial(self._generate, language=language))]

    def _request(self, clips: list[Clip], language: str | None) -> Inputs:
        assert self.request is not None
        wanted = Wanted(self.rate, language, self.prompt, self.name)
        return self._placed(self.request(self.processor, clips, wanted))

    def _generate(self, clips: list[Clip], language: str | None) -> list[str]:
        inputs = self._request(clips, language)
        limits = self._limits(clips)
        settings: Settings = {"num_beams": self.beams} if self.beams > 1 else {}
        if limits is not None:
            settings["max_new_tokens"] = min(max(limits), positions(self.model.config))
        settings |= self._settings(language)
        if self.nbest:
            settings["num_return_sequences"] = self.nbest
        generated = self.model.generate(**inputs, **settings)
        tokens = getattr(generated, "sequences", generated)
        tokens = tokens[:, self._prompt_length(inputs, tokens) :].tolist()
        if limits is not None:
            # the batch ran to its longest clip's limit: each clip keeps what it would have had alone
            each = self.nbest or 1
            tokens = [row[: limits[place // each]] for place, row in enumerate(tokens)]
        return nbest_lists(self._decode(tokens), self.nbest)

    def _settings(self, language: str | None) -> Settings:
        """Further settings of `generate`: greedy, and the language where it is told there (Seamless, by ISO 639-3)."""
        if "tgt_lang" in parameters(self.model.generate):
            return {"tgt_lang": ISO_639_3.get(language or "en", language)}
        return {} if self.model.config.model_type in IN_STEP else {"do_sample": False}

    def _limits(self, clips: list[Clip]) -> list[int] | None:
        if self.model.config.model_type in IN_STEP:
            return None
        return [max(LEAST_TOKENS, int(len(clip) / self.rate * self.tokens_per_s)) for clip in clips]

    def _prompt_length(self, inputs: Inputs, tokens: Any) -> int:
        """The tokens before those that were generated."""
        raise NotImplementedError

    def _decode(self, tokens: list[list[int]]) -> list[str]:
        return [text.strip() for text in self.processor.batch_decode(tokens, skip_special_tokens=True)]


class Seq2Seq(Generator):
    """An encoder, and a decoder that begins with a start token or a prompt of its own."""

    def _prompt_length(self, inputs: Inputs, tokens: Any) -> int:
        prompt = inputs.get("decoder_input_ids")
        if prompt is not None:  # with a start token before it, unless it has one
            return prompt.shape[1] + int(not tokens[0, : prompt.shape[1]].equal(prompt[0]))
        return 2 if "tgt_lang" in parameters(self.model.generate) else 1  # the start, and the language where it is told

    def _features(self, clips: list[Clip]) -> list[Any]:
        inputs = self._request(clips, None)
        inputs = {name: value for name, value in inputs.items() if not name.startswith("decoder_")}
        return list(self.model.get_encoder()(**inputs).last_hidden_state)


class Transducer(Generator):
    """RNN-T and TDT: decides at every frame of the encoder, with what it wrote so far."""

    def _generate(self, clips: list[Clip], language: str | None) -> list[str]:
        inputs = self._request(clips, language)
        generated = self.model.generate(**inputs)
        frames = self._frames(inputs)
        rows = zip(generated.sequences.tolist(), generated.durations.cumsum(-1).tolist(), frames, strict=True)
        most = self.model.max_symbols_per_step  # a model that loops in one frame is stopped, alone or in a batch
        return self._decode([before_the_end(tokens, passed, own)[: most * own] for tokens, passed, own in rows])

    def _frames(self, inputs: Inputs) -> list[int]:
        """How many of the encoder's frames belong to each clip; the rest is padding."""
        features = self.model.get_audio_features(**inputs, output_attention_mask=True)
        if features.attention_mask is None:
            return [features.last_hidden_state.shape[1]] * len(features.last_hidden_state)
        return features.attention_mask.sum(-1).tolist()

    def _features(self, clips: list[Clip]) -> list[Any]:
        inputs = self._request(clips, None)
        return list(self.model.get_audio_features(**inputs).last_hidden_state)


class AudioLanguageModel(Generator):
    """A language model that takes audio among its tokens. What it says around the transcript is taken away."""

    def __post_init__(self) -> None:
        if hasattr(self.processor, "tokenizer"):
            self.processor.tokenizer.padding_side = "left"  # what is generated must follow the prompt at once
        super().__post_init__()

    def _prompt_length(self, inputs: Inputs, tokens: Any) -> int:
        return inputs["input_ids"].shape[1] if "input_ids" in inputs else 0

    def _features(self, clips: list[Clip]) -> list[Any]:
        """The scores of the first token that it would write."""
        return list(self.model(**self._request(clips, None)).logits[:, -1:])

    def _decode(self, tokens: list[list[int]]) -> list[str]:
        raw = [text.strip() for text in self.processor.batch_decode(tokens, skip_special_tokens=True)]
        own = parameters(self.processor.decode)
        if "return_format" in own:  # the processor knows how its model lays out an answer
            texts = self.processor.decode(tokens, return_format="transcription_only")
            if hasattr(self.processor, "extract_speaker_dict"):
                parsed = self.processor.decode(tokens, return_format="parsed")
                texts = [with_speakers(text, segments) for text, segments in zip(texts, parsed, strict=True)]
                return [with_raw(text, given) for text, given in zip(texts, raw, strict=True)]
        elif "strip_prefix" in own:
            texts = self.processor.decode(tokens, skip_special_tokens=True, strip_prefix=True)
        else:
            texts = [unwrap(text) for text in raw]
        return [with_raw(str(text).strip(), given) for text, given in zip(texts, raw, strict=True)]


def with_speakers(text: str, segments: Any) -> str:
    """A transcript with who said what (VibeVoice, MOSS); `segments` is a text where the answer had another layout."""
    if isinstance(segments, str):
        return text.strip()
    turns = [(turn["Speaker"], turn["Start"], turn["End"], turn["Content"]) for turn in segments]
    return Transcript(text.strip(), **with_turns(turns).details)


def before_the_end(tokens: list[int], passed: list[int], frames: int) -> list[int]:
    """The tokens that were written within a clip's own frames, `passed` being how many are behind each token.

    In a batch, `generate` goes on for every clip until the longest one is done, and the others gain words that are not
    in their audio.
    """
    last = next((index for index, count in enumerate(passed) if count >= frames), len(tokens) - 1)
    return tokens[: last + 1]


def joined(parts: list[str]) -> str:
    """The texts of a clip's pieces as one, with the answers around them; a clip in pieces has no n-best list."""
    if len(parts) == 1:
        return parts[0]
    text = " ".join(filter(None, parts))
    return with_raw(text, " ".join(filter(None, map(raw_text, parts))))
