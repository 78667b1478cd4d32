"""Differentiable views of transformers models: CTC, transducers, encoder-decoders, Whisper, and audio language models.

A transducer (Parakeet RNN-T and TDT) decides again and again: the next token, or none (a blank) and on to the next
frame. A token-and-duration transducer decides for a token and a number of frames at once; such a pair is numbered
`token * len(durations) + place of the duration`, and its score is the sum of both scores. The margins that an attack
makes lose are those of the decisions on the best path through the clip.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, mask_of, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.base import FRONT_ENDS, View, front_end, writable_spelling
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.models.hf.base import SHORTEST_S, WHISPER_S, positions

TOLERANCE = 1e-3  # of the features' spread: rounding is below it, another preprocessing above


@dataclass
class TransformersView(View):
    """What the views of transformers models share: the waveform as their feature extractors give it to them."""

    def __post_init__(self) -> None:
        self.model = self.recogniser.model  # type: ignore[attr-defined]
        self.processor = self.recogniser.processor  # type: ignore[attr-defined]
        self.model.requires_grad_(False)  # the attack moves the sound, not the weights: a third of the work saved
        self.pads_safely = self.recogniser.pads_safely  # type: ignore[attr-defined]
        self.longest_s = self.recogniser.chunk_s  # type: ignore[attr-defined]
        self.extractor = extractor_of(self.processor)
        self.tokenizer: Any = getattr(self.processor, "tokenizer", None)
        self.front_end = front_end(self.extractor)
        if self.front_end is None:
            raise UserError(
                f"{self.recogniser.name}: there is no differentiable form of {type(self.extractor).__name__} at "
                f"{self.extractor.sampling_rate} Hz; those of {', '.join(FRONT_ENDS)} at {RATE} Hz exist"
            )

    @property
    def device(self) -> str:
        return str(self.model.device)

    def compile(self) -> None:
        self.model.compile()

    def inputs(self, waves: Tensor, lengths: Tensor) -> dict[str, Tensor]:
        """What the model is given, made from the waveforms differentiably."""
        waves, lengths = self._long_enough(waves, lengths)
        assert self.front_end is not None
        with self._mixed(enabled=False):  # features as when it transcribes, in any precision
            given = self.front_end(self.extractor, waves * mask_of(lengths, waves.shape[1]), lengths)
        return {
            name: value.to(self.model.dtype) if value.is_floating_point() else value for name, value in given.items()
        }

    def _long_enough(self, waves: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        shortest = int(SHORTEST_S * RATE)
        waves = functional.pad(waves, (0, max(0, shortest - waves.shape[1])))
        return waves.to(torch.promote_types(self.model.dtype, torch.float32)), lengths.clamp_min(shortest)

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        """What the model is given when it transcribes."""
        return self.recogniser._inputs([self._padded(clip) for clip in clips])  # type: ignore[attr-defined]

    def _padded(self, clip: AttackClip) -> np.ndarray:
        return np.pad(clip.samples, (0, max(0, int(SHORTEST_S * RATE) - len(clip.samples))))

    def difference(self, clips: Sequence[AttackClip]) -> float:
        """The largest difference between the two inputs, in units of their spread."""
        with torch.no_grad():
            ours = self.inputs(*padded([clip.samples for clip in clips], self.device))
        theirs = self.their_inputs(clips)
        name = next(iter(ours))
        if ours[name].shape != theirs[name].shape:
            return float("inf")
        return float((ours[name] - theirs[name]).abs().max() / theirs[name].float().std())

    def check(self, clips: Sequence[AttackClip]) -> None:
        if (distance := self.difference(clips)) > max(TOLERANCE, 4 * torch.finfo(self.model.dtype).eps):
            raise UserError(
                f"{self.recogniser.name}: the differentiable preprocessing differs from the recogniser's own by "
                f"{distance:.3g} of its spread, so an attack on it would prove nothing"
            )

    def tokens(self, text: str) -> list[int]:
        return self.tokenizer(text, add_special_tokens=False).input_ids

    def spell(self, text: str) -> str:
        return writable_spelling(super().spell(text), self._writable, self.recogniser.name)

    def _writable(self, text: str) -> bool:
        return text.isspace() or self.tokenizer.unk_token_id not in self.tokens(text)


def extractor_of(processor: Any) -> Any:
    """The part of a processor that takes audio."""
    for name in ("feature_extractor", "audio_processor"):
        if (part := getattr(processor, name, None)) is not None:
            return part
    return processor


def encoder_frames(model: Any, attention_mask: Tensor, count: int) -> Tensor:
    """How many of an encoder's frames belong to each clip."""
    return model._get_output_attention_mask(attention_mask, target_length=count).sum(-1)


@dataclass
class CtcView(TransformersView):
    """wav2vec 2.0, HuBERT, WavLM, Data2Vec, MMS, Parakeet."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        logits, frames = self.logits(waves, batch)
        tokens = [torch.tensor(self.tokens(text)) for text in batch.texts]
        return base.ctc(logits, frames, tokens, self.blank)

    @property
    def blank(self) -> int:
        """The token that is no letter."""
        return self.model.config.pad_token_id

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        """(clip, frame, letter), and how many frames each clip has."""
        self.recogniser._speak(batch.language)  # type: ignore[attr-defined]
        inputs = self.inputs(waves, batch.lengths)
        logits = self.model(**inputs).logits
        if hasattr(self.model, "_get_output_attention_mask"):
            frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        else:
            _, lengths = self._long_enough(waves[:0], batch.lengths)
            frames = self.model._get_feat_extract_output_lengths(lengths)
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The best letter of every frame, blanks too: a blank that loses is an insertion."""
        logits, frames = self.logits(waves, batch)
        return [row[:count] for row, count in zip(logits.argmax(-1), frames.tolist(), strict=True)]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.logits(waves, batch)[0]

    def read(self, waves: Tensor, batch: AttackBatch) -> list[str]:
        """The transcripts by way of the differentiable path."""
        with torch.no_grad():
            logits, frames = self.logits(waves, batch)
        best = logits.argmax(-1)
        return [self.decode(row[:count].tolist()) for row, count in zip(best, frames, strict=True)]

    def decode(self, numbers: list[int]) -> str:
        """The text of the best letter of every frame."""
        return self.processor.decode(numbers)


@dataclass
class Seq2SeqView(TransformersView):
    """Moonshine, SpeechT5, Canary and others; the loss tells the decoder the right tokens before each one."""

    first_weight: float = 0.0  # see base.cross_entropy

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        tokens = self.right_tokens(waves, batch)
        return base.cross_entropy(self.logits(waves, batch, tokens), tokens, self.first_weight)

    def logits(self, waves: Tensor, batch: AttackBatch, tokens: list[Tensor]) -> Tensor:
        """(clip, position, token), where position i has been told the tokens before i."""
        prompt = torch.tensor(self.prompt(batch.language))
        told = pad_sequence([torch.cat([prompt, label[:-1]]) for label in tokens], True, self.end).to(self.device)
        if told.shape[1] > (room := positions(self.model.config) + 4):
            raise UserError(f"{self.recogniser.name}: a transcript of {told.shape[1]} tokens; it has room for {room}")
        logits = self.model(**self.inputs(waves, batch.lengths), decoder_input_ids=told, use_cache=False).logits
        return logits[:, len(prompt) - 1 :].to(torch.promote_types(logits.dtype, torch.float32))

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        return [torch.tensor([*self.tokens(text), self.end]) for text in batch.texts]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        return self.logits(waves, batch, right)

    def read(self, waves: Tensor, batch: AttackBatch) -> list[str]:
        """The transcripts that the decoder would write at each position, told `batch.texts` before it."""
        tokens = self.right_tokens(waves, batch)
        with torch.no_grad():
            best = self.logits(waves, batch, tokens).argmax(-1)
        return [
            self.tokenizer.decode(row[: len(label)].tolist(), skip_special_tokens=True).strip()
            for row, label in zip(best, tokens, strict=True)
        ]

    def spell(self, text: str) -> str:
        # Corpora such as LibriSpeech write capitals only; a model that writes sentences would find those unlikely
        # before any attack.
        return super().spell(text.capitalize() if text.isupper() else text)

    @cached_property
    def end(self) -> int:
        """The token that ends a transcript."""
        end = self.model.generation_config.eos_token_id
        return end[0] if isinstance(end, list) else end

    def prompt(self, language: str | None) -> list[int]:
        """What the decoder is given before the first word."""
        settings = self.model.generation_config
        start = settings.decoder_start_token_id
        if hasattr(self.processor, "apply_transcription_request"):  # Canary is told the language and the task
            request = self.recogniser._request([np.zeros(RATE, np.float32)], self.recogniser._spoken(language))  # type: ignore[attr-defined]
            given = request["decoder_input_ids"][0].tolist()
            return given if start in (None, given[0]) else [start, *given]  # as `generate` begins
        return [start if start is not None else settings.bos_token_id]


@dataclass
class WhisperView(Seq2SeqView):
    """Whisper: 30 s of log-mel spectrogram, whatever the clip's length (Radford et al. 2023, 2.2)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = WHISPER_S

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        features = self.processor([self._padded(clip) for clip in clips], sampling_rate=RATE, return_tensors="pt")
        return self.recogniser._placed(features)  # type: ignore[attr-defined]

    def tokens(self, text: str) -> list[int]:
        return super().tokens(f" {text}")  # as it writes: every sentence begins with a space

    def prompt(self, language: str | None) -> list[int]:
        words = ["<|startoftranscript|>"]
        if self.multilingual:
            words += [f"<|{self.recogniser._spoken(language) or language or 'en'}|>", "<|transcribe|>"]  # type: ignore[attr-defined]
        return self.tokenizer.convert_tokens_to_ids([*words, "<|notimestamps|>"])

    @property
    def multilingual(self) -> bool:
        return bool(getattr(self.model.generation_config, "is_multilingual", False))


FEATURES = "input_features"
PIECE_S = 30.0  # longer clips go to the encoder in pieces, by rules of each processor


@dataclass
class AudioLanguageModelView(Seq2SeqView):
    """A language model that is asked for a transcript and told its right tokens before each next one."""

    _requests: dict[Any, dict[str, Tensor]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.longest_s = min(self.longest_s, PIECE_S)

    def logits(self, waves: Tensor, batch: AttackBatch, tokens: list[Tensor]) -> Tensor:
        request = self.request(batch)
        told = pad_sequence([label[:-1] for label in tokens], True, self.end).to(self.device)
        prompt = request["input_ids"].shape
        given = {**request, **self.inputs(waves, batch.lengths)}
        for name, value in request.items():
            if value.shape == prompt:  # what there is for each token of the prompt: those that are told follow
                more = told if name == "input_ids" else torch.full_like(told, int(name == "attention_mask"))
                given[name] = torch.cat([value, more.to(value.dtype)], 1)
        logits = self.model(**given, use_cache=False).logits[:, prompt[1] - 1 :]
        return logits.to(torch.promote_types(logits.dtype, torch.float32))

    def request(self, batch: AttackBatch) -> dict[str, Tensor]:
        """What goes with the features of clips of these lengths."""
        key = (tuple(batch.lengths.tolist()), batch.language)
        if key not in self._requests:
            shortest = int(SHORTEST_S * RATE)
            silence = [np.zeros(max(length, shortest), np.float32) for length in key[0]]
            self._requests = {key: self._request(silence, batch.language)}  # the batch at hand; others are done with
        return self._requests[key]

    def _request(self, signals: list[np.ndarray], language: str | None) -> dict[str, Tensor]:
        spoken = self.recogniser._spoken(language)  # type: ignore[attr-defined]
        if spoken is None and self.model.config.model_type == "qwen3_asr":
            raise UserError(f"{self.recogniser.name}: name the language (?language=en); it writes it first otherwise")
        with torch.no_grad():
            request = self.recogniser._request(signals, spoken)  # type: ignore[attr-defined]
        return {name: value for name, value in request.items() if isinstance(value, Tensor)}

    def their_inputs(self, clips: Sequence[AttackClip]) -> dict[str, Tensor]:
        return self._request([self._padded(clip) for clip in clips], clips[0].language)


def best_path(logits: Tensor, tokens: Tensor, blank: int, durations: Sequence[int] = ()) -> Tensor:
    """The decisions of the most probable alignment. `logits` (frame, tokens said so far, token) are of one clip."""
    scores, steps = _split(logits, durations)
    scores, steps = scores.log_softmax(-1), steps.log_softmax(-1)
    stay = (scores[..., blank, None] + steps).cpu().numpy()
    index = tokens.to(logits.device)[None, :, None].expand(len(scores), -1, 1)
    say = (scores[:, :-1].gather(2, index) + steps[:, :-1]).cpu().numpy()
    moves = _best_moves(stay, say, durations or (1,), durations or (0,))
    width, said, path = max(1, len(durations)), 0, []
    for is_token, place in moves:
        path.append((int(tokens[said]) if is_token else blank) * width + place)
        said += is_token
    return torch.tensor(path, device=logits.device)


def path_scores(logits: Tensor, path: Tensor, blank: int, durations: Sequence[int] = ()) -> Tensor:
    """(position, decision): the scores from which the decisions of a path are chosen."""
    width = max(1, len(durations))
    is_token = path // width != blank
    taken = torch.tensor(durations, device=path.device)[path % width] if durations else (~is_token).long()
    frame, said = taken.cumsum(0) - taken, is_token.cumsum(0) - is_token.long()
    scores, steps = _split(logits[frame, said], durations)
    return (scores[..., None] + steps[..., None, :]).flatten(1)


def _split(logits: Tensor, durations: Sequence[int]) -> tuple[Tensor, Tensor]:
    """The scores of tokens and of durations; one duration of no weight where the model has none."""
    if not durations:
        return logits, torch.zeros_like(logits[..., :1])
    return logits[..., : -len(durations)], logits[..., -len(durations) :]


def _best_moves(
    stay: np.ndarray, say: np.ndarray, stay_durations: Sequence[int], say_durations: Sequence[int]
) -> list[tuple[bool, int]]:
    """Viterbi: (is it a token, place of its duration) from the first frame to the end behind the last."""
    frames, ends = stay.shape[:2]
    best, came = np.full((frames + 1, ends), -np.inf), {}
    best[0, 0] = 0.0
    for frame, said in np.ndindex(frames, ends):
        moves = [(frame + d, said, stay[frame, said, i], i) for i, d in enumerate(stay_durations) if d]
        if said < ends - 1:
            moves += [
                (frame + d, said + 1, say[frame, said, i], i) for i, d in enumerate(say_durations) if frame + d < frames
            ]
        for to, said_then, score, place in moves:
            if to <= frames and best[frame, said] + score > best[to, said_then]:
                best[to, said_then] = best[frame, said] + score
                came[to, said_then] = frame, said, place
    path, at = [], (frames, ends - 1)
    while at != (0, 0):
        frame, said, place = came[at]
        path.append((said < at[1], place))
        at = frame, said
    return path[::-1]


@dataclass
class TransducerView(TransformersView):
    """Parakeet RNN-T and TDT: the probability of the transcript, summed over all its alignments."""

    def losses(self, waves: Tensor, batch: AttackBatch) -> Tensor:
        logits, frames, tokens = self.logits(waves, batch)
        if not self.durations:
            return base.transducer(logits, frames, tokens, self.blank)
        return self._with_durations(logits, frames, tokens)

    @property
    def blank(self) -> int:
        return self.model.config.blank_token_id

    @property
    def durations(self) -> list[int]:
        """How many frames a token may take; none in RNN-T."""
        return list(getattr(self.model.config, "durations", ()))

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor, list[Tensor]]:
        """(clip, frame, tokens said so far, token), how many frames each clip has, and its tokens."""
        inputs = self.inputs(waves, batch.lengths)
        tokens = [torch.tensor(self.tokens(text), device=waves.device) for text in batch.texts]
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        told = torch.cat([torch.full_like(labels[:, :1], self.blank), labels], 1)
        encoded = self.model.get_audio_features(**inputs).pooler_output
        said = self.model.decoder(told)
        logits = self.model.joint(encoder_hidden_states=encoded[:, :, None], decoder_hidden_states=said[:, None])
        frames = encoder_frames(self.model, inputs["attention_mask"], logits.shape[1])
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames, tokens

    def _with_durations(self, logits: Tensor, frames: Tensor, tokens: list[Tensor]) -> Tensor:
        """The token-and-duration transducer's loss (Xu et al. 2023), as transformers has it."""
        from transformers.loss.loss_tdt import tdt_loss

        counts = torch.tensor([len(row) for row in tokens], device=logits.device)
        labels = pad_sequence(tokens, batch_first=True, padding_value=self.blank)
        scores, steps = logits.split([self.model.config.vocab_size, len(self.durations)], -1)
        summed = tdt_loss(scores, steps, labels, frames, counts, self.blank, self.durations, reduction="none")
        return summed / counts

    @property
    def has_margins(self) -> bool:
        return True

    def right_tokens(self, waves: Tensor, batch: AttackBatch) -> list[Tensor]:
        """The decisions of the best path, blanks too: a blank that loses is an insertion."""
        return [
            best_path(row[:count, : len(tokens) + 1], tokens, self.blank, self.durations)
            for row, count, tokens in zip(*self.logits(waves, batch), strict=True)
        ]

    def token_scores(self, waves: Tensor, batch: AttackBatch, right: list[Tensor]) -> Tensor:
        rows = zip(self.logits(waves, batch)[0], right, strict=True)
        return pad_sequence([path_scores(row, path, self.blank, self.durations) for row, path in rows], True)
