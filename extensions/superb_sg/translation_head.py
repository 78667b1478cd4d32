"""The trained part for speech translation: a mix of an encoder's layers, two convolutions of stride 2, and a
Transformer with three layers on each side that writes the translation letter by letter (SUPERB-SG, Section 3.1.1).

Its sizes are those of fairseq's `s2t_transformer`, which s3prl uses: kernels of 5, 1024 channels halved by gated linear
units, width 512, 8 heads, inner width 2048, dropout 0.1, layers normalised before they are applied, sines as positions.
The search is fairseq's too: of a beam of 20, transcripts of at most 400 letters by their mean log probability.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.extensions.superb_sg.head_training import Mix

LAYERS, HEADS, KERNEL, CHANNELS, INNER = 3, 8, 5, 1024, 4  # INNER: times the width
BEAM, LONGEST, SMOOTHING = 20, 400, 0.1
PAD, END = 0, 1  # END begins a sentence too
SPECIAL = 2
Cache = list[tuple[Tensor, Tensor]]  # keys and values of each layer


@dataclass(frozen=True)
class Characters:
    """The alphabet of a head: every character of the training translations."""

    characters: str

    @classmethod
    def of(cls, texts: Sequence[str]) -> Characters:
        return cls("".join(sorted(set("".join(texts)))))

    def __len__(self) -> int:
        return len(self.characters) + SPECIAL

    def encode(self, text: str) -> list[int]:
        """Numbers with the end; characters that the training has not are left out."""
        known = {character: number for number, character in enumerate(self.characters, SPECIAL)}
        return [known[character] for character in text if character in known] + [END]

    def decode(self, numbers: Sequence[int]) -> str:
        return "".join(self.characters[number - SPECIAL] for number in numbers if number >= SPECIAL)


class Attention(nn.Module):
    """Multi-head attention whose keys and values can be kept from one step to the next."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.dropout = dropout

    def keys_values(self, source: Tensor) -> tuple[Tensor, Tensor]:
        return self._heads(self.key(source)), self._heads(self.value(source))

    def forward(self, x: Tensor, known: tuple[Tensor, Tensor], mask: Tensor | None) -> Tensor:
        """What (clip, position, width) attends to; where the mask is False, nothing is seen."""
        dropout = self.dropout if self.training else 0.0
        seen = functional.scaled_dot_product_attention(self._heads(self.query(x)), *known, mask, dropout)
        return self.out(seen.transpose(1, 2).flatten(2))

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(2, (HEADS, -1)).transpose(1, 2)


class DecoderLayer(nn.Module):
    """Attention to what is written, attention to the speech, and two linear layers, each normalised before."""

    def __init__(self, width: int, dropout: float) -> None:
        super().__init__()
        self.own, self.speech = Attention(width, dropout), Attention(width, dropout)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.wide, self.narrow = nn.Linear(width, INNER * width), nn.Linear(INNER * width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        x: Tensor,
        speech: tuple[Tensor, Tensor],
        heard: Tensor | None,
        past: tuple[Tensor, Tensor] | None,
        causal: Tensor | None,
    ) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """The next layer's input, and the keys and values of what is written so far."""
        normal = self.norms[0](x)
        now = self.own.keys_values(normal)
        known = now if past is None else (torch.cat([past[0], now[0]], 2), torch.cat([past[1], now[1]], 2))
        x = x + self.dropout(self.own(normal, known, causal))
        x = x + self.dropout(self.speech(self.norms[1](x), speech, heard))
        hidden = self.dropout(functional.relu(self.wide(self.norms[2](x))))
        return x + self.dropout(self.narrow(hidden)), known


class TranslationHead(nn.Module):
    """Hidden states of a clip to the letters of its translation."""

    def __init__(self, layers: int, width: int, letters: int, units: int = 512, dropout: float = 0.1) -> None:
        super().__init__()
        if units % HEADS:
            raise ValueError(f"units must be a multiple of {HEADS}, not {units}")
        self.units, self.mix = units, Mix(layers)
        channels = CHANNELS * units // 512
        self.convolutions = nn.ModuleList(
            nn.Conv1d(each, to, KERNEL, stride=2, padding=KERNEL // 2)
            for each, to in ((width, channels), (channels // 2, 2 * units))
        )
        layer = nn.TransformerEncoderLayer(units, HEADS, INNER * units, dropout, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(units), enable_nested_tensor=False)
        self.embedding = nn.Embedding(letters, units, padding_idx=PAD)
        nn.init.normal_(self.embedding.weight, std=units**-0.5)
        self.decoder = nn.ModuleList(DecoderLayer(units, dropout) for _ in range(LAYERS))
        self.norm, self.dropout = nn.LayerNorm(units), nn.Dropout(dropout)
        self.out = nn.Linear(units, letters, bias=False)
        nn.init.normal_(self.out.weight, std=units**-0.5)

    def encode(self, states: Sequence[Tensor]) -> tuple[Tensor, Tensor]:
        """Speech (clip, frame, width) of hidden states, and which of its frames are a clip's own."""
        mixed = [self.mix(each) for each in states]
        frames = torch.tensor([len(each) for each in mixed], device=mixed[0].device)
        x = pad_sequence(mixed, batch_first=True).transpose(1, 2)
        for convolution in self.convolutions:
            x = functional.glu(convolution(x), dim=1)
            frames = (frames - 1) // 2 + 1
            own = torch.arange(x.shape[2], device=x.device) < frames[:, None]
            x = x * own[:, None]  # so that a transcript does not depend on the clips of its batch
        x = x.transpose(1, 2)
        x = self.dropout(math.sqrt(self.units) * x + positions(x.shape[1], self.units).to(x))
        return self.encoder(x, src_key_padding_mask=~own), own

    def forward(self, states: Sequence[Tensor], written: Tensor) -> Tensor:
        """Logits (clip, position, letter) of the letter that follows each of those `written`, padded with PAD."""
        speech, own = self.encode(states)
        causal = torch.ones(written.shape[1], written.shape[1], dtype=torch.bool, device=speech.device).tril()
        return self.decode(written, self.speech_keys(speech), own[:, None, None], None, causal)[0]

    def speech_keys(self, speech: Tensor) -> Cache:
        """What each layer of the decoder needs of the speech, computed once."""
        return [layer.speech.keys_values(speech) for layer in self.decoder]

    def decode(
        self, written: Tensor, speech: Cache, heard: Tensor | None, past: Cache | None, causal: Tensor | None
    ) -> tuple[Tensor, Cache]:
        """Logits after each of the letters, and the cache with these."""
        start = 0 if past is None else past[0][0].shape[2]
        places = positions(start + written.shape[1], self.units)[start:].to(speech[0][0])
        x = self.dropout(math.sqrt(self.units) * self.embedding(written) + places)
        known: Cache = []
        for number, layer in enumerate(self.decoder):
            x, kept = layer(x, speech[number], heard, past and past[number], causal)
            known.append(kept)
        return self.out(self.norm(x)), known


def positions(count: int, width: int) -> Tensor:
    """Sines and cosines of wavelengths from 2 pi to 10,000 times that (Vaswani et al., 2017)."""
    half = width // 2
    angles = torch.arange(count)[:, None] * torch.exp(torch.arange(half) * -(math.log(10_000) / (half - 1)))
    return torch.cat([angles.sin(), angles.cos()], 1)


def translation_loss(logits: Tensor, targets: Tensor, letters: int) -> Tensor:
    """Cross-entropy per clip, with fairseq's label smoothing: 0.1 spread over all letters but the right one."""
    smoothing = SMOOTHING * letters / (letters - 1)
    total = functional.cross_entropy(
        logits.flatten(0, 1), targets.flatten(), ignore_index=PAD, reduction="sum", label_smoothing=smoothing
    )
    return total / len(targets)


@torch.no_grad()
def translate(head: TranslationHead, states: Tensor, beam: int = BEAM, longest: int = LONGEST) -> list[int]:
    """The best translation of one clip's hidden states."""
    encoded, _ = head.encode([states])
    speech = head.speech_keys(encoded)
    scores, written = torch.zeros(1), torch.full((1, 1), END, device=encoded.device)
    past: Cache | None = None
    finished: list[tuple[float, list[int]]] = []
    for length in range(1, longest + 2):
        logits, past = head.decode(written[:, -1:], _repeated(speech, len(written)), None, past, None)
        chances = logits[:, -1].log_softmax(-1).cpu()
        chances[:, PAD] = -math.inf
        if length == 1:
            chances[:, END] = -math.inf  # at least one letter
        if length > longest:  # nothing but the end
            chances[:, :END], chances[:, END + 1 :] = -math.inf, -math.inf
        candidates = _best(scores[:, None] + chances, 2 * beam)
        ended = [(score, row) for score, row, letter in candidates[:beam] if letter == END]
        finished += [(score / length, written[row, 1:].tolist()) for score, row in ended]
        going = [each for each in candidates if each[2] != END][:beam]
        if len(finished) >= beam or not going:
            break
        rows = torch.tensor([row for _, row, _ in going], device=encoded.device)
        letters = torch.tensor([[letter] for *_, letter in going], device=encoded.device)
        scores = torch.tensor([score for score, *_ in going])
        written = torch.cat([written[rows], letters], 1)
        past = [(keys[rows], values[rows]) for keys, values in past]
    return max(finished)[1]


def _repeated(known: Cache, count: int) -> Cache:
    """Keys and values of one clip, for each of `count` transcripts."""
    return [(keys.expand(count, -1, -1, -1), values.expand(count, -1, -1, -1)) for keys, values in known]


def _best(scores: Tensor, count: int) -> list[tuple[float, int, int]]:
    """The best continuations of some transcripts: score, transcript and letter."""
    best = scores.flatten().topk(min(count, scores.numel()))
    places = [divmod(place, scores.shape[1]) for place in best.indices.tolist()]
    return [(score, *place) for score, place in zip(best.values.tolist(), places, strict=True) if score > -math.inf]
