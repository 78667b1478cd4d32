"""A trained probe as a recogniser (encoder, head, greedy CTC decoding), and its differentiable view for attacks.

The trained part is a softmax over the layers of a frozen encoder, and a head from mixed frames to letters.

The alphabet is CTC's blank and the characters of the training transcripts, normalised as for scoring.

SUPERB-SG, Table 5: the default is a BLSTM of two layers with 1,024 units a direction, the small one has one layer and
the large one four; s3prl's settings for OOD-ASR put a projection to 1,024 before them and a linear layer with tanh and
dropout 0.2 after each. `linear` has none of it. SpecAugment (Park et al. 2019) on the mixed frames, as s3prl has it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

from speech_robust_bench.attacks.clips import AttackBatch
from speech_robust_bench.attacks.views.base import View
from speech_robust_bench.attacks.views.transformers_models import CtcView
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.extensions.probe.probe_file import BLSTM_LAYERS, UNITS, HeadSettings
from speech_robust_bench.extensions.probe.upstream import Upstream
from speech_robust_bench.models.hf.base import TransformersRecogniser
from speech_robust_bench.models.interface import Clip, Recogniser
from speech_robust_bench.scoring.scoring import normalise

BLANK = 0
MOST_LETTERS = 20_000  # Chinese has some thousands


def spelled(text: str, language: str | None) -> str:
    """A transcript as a probe learns and writes it: normalised, words apart by one space."""
    return " ".join(normalise(text, language=language).split())


@dataclass(frozen=True)
class Letters:
    """Characters by number; 0 is the blank."""

    characters: str

    def __post_init__(self) -> None:
        if len(set(self.characters)) != len(self.characters) or not 0 < len(self.characters) <= MOST_LETTERS:
            raise UserError(f"the alphabet of a probe must be 1 to {MOST_LETTERS} different characters")

    @classmethod
    def of(cls, texts: Iterable[str]) -> Letters:
        """Every character that some transcripts have."""
        return cls("".join(sorted({character for text in texts for character in text})))

    def __len__(self) -> int:
        return len(self.characters) + 1

    def encode(self, text: str) -> list[int]:
        """The numbers of a text; characters that were not in training have none."""
        return [place + 1 for character in text if (place := self.characters.find(character)) >= 0]

    def decode(self, numbers: Sequence[int]) -> str:
        """Greedy CTC decoding: what repeats is one letter, then the blanks go."""
        once = (number for number, _ in groupby(numbers))
        return " ".join("".join(self.characters[number - 1] for number in once if number != BLANK).split())


DROPOUT = 0.2
FRAME_SAMPLES = 320  # frames that come twice as often are thinned to 20 ms

# SpecAugment of s3prl's OOD-ASR settings
WARP_FRAMES = 5
TIME_MASKS, WIDEST_TIME_MASK = 2, 40
WIDTH_MASKS, WIDEST_WIDTH_MASK = 4, 50


class Head(nn.Module):
    """The trained part of a probe."""

    def __init__(
        self,
        size: str,
        layers: int,
        width: int,
        letters: int,
        *,
        stride: int,
        units: int = UNITS,
        normalise: bool = False,
    ) -> None:
        super().__init__()
        self.normalise = normalise
        self.step = max(1, round(FRAME_SAMPLES / stride))
        self.layer_logits = nn.Parameter(torch.zeros(layers))
        depth = BLSTM_LAYERS[size]
        self.project = nn.Linear(width, units) if depth else nn.Identity()
        sizes = [units, *[2 * units] * depth]
        self.rnns = nn.ModuleList(nn.LSTM(sizes[n], units, batch_first=True, bidirectional=True) for n in range(depth))
        self.after = nn.ModuleList(nn.Linear(2 * units, 2 * units) for _ in range(depth))
        self.dropout = nn.Dropout(DROPOUT)
        self.out = nn.Linear(sizes[-1] if depth else width, letters)

    @property
    def layer_weights(self) -> Tensor:
        """How much each layer counts; they sum to 1."""
        return self.layer_logits.softmax(0)

    def mixed(self, states: Tensor) -> Tensor:
        """The layers (layer, frame, width) of one clip as one sequence of frames."""
        if self.normalise:
            states = functional.layer_norm(states, states.shape[-1:])
        return torch.einsum("l,lfw->fw", self.layer_weights, states)[:: self.step]

    def forward(self, states: Sequence[Tensor], augment: bool = False) -> tuple[Tensor, Tensor]:
        """Logits (clip, frame, letter), and how many frames each clip has."""
        mixed = [self.mixed(each) for each in states]
        if augment:
            mixed = [spec_augment(each) for each in mixed]
        frames = torch.tensor([len(each) for each in mixed])
        x = self.project(pad_sequence(mixed, batch_first=True))
        for rnn, after in zip(self.rnns, self.after, strict=True):
            packed = pack_padded_sequence(x, frames, batch_first=True, enforce_sorted=False)
            x, _ = pad_packed_sequence(rnn(packed)[0], batch_first=True)
            x = torch.tanh(after(self.dropout(x)))
        return self.out(x), frames


def new_head(settings: HeadSettings, upstream: Upstream, letters: Letters) -> Head:
    """An untrained head for an encoder and an alphabet."""
    return Head(
        settings.size,
        upstream.layers,
        upstream.width,
        len(letters),
        stride=upstream.stride,
        units=settings.units,
        normalise=settings.normalise,
    )


def spec_augment(frames: Tensor) -> Tensor:
    """Frames (frame, width) warped in time, with some stretches and some dimensions set to zero; drawn by torch."""
    frames = _masked(_warped(frames), 1, WIDTH_MASKS, WIDEST_WIDTH_MASK)
    return _masked(frames, 0, TIME_MASKS, WIDEST_TIME_MASK)


def _warped(frames: Tensor) -> Tensor:
    """One moment moved by up to `WARP_FRAMES` frames, what lies before and after stretched to fit."""
    count = len(frames)
    if count <= 2 * WARP_FRAMES:
        return frames
    centre = int(torch.randint(WARP_FRAMES, count - WARP_FRAMES, ()))
    moved = centre + int(torch.randint(1 - WARP_FRAMES, WARP_FRAMES + 1, ()))
    parts = (frames[:centre], moved), (frames[centre:], count - moved)
    return torch.cat([_resized(part, size) for part, size in parts if size])


def _resized(frames: Tensor, count: int) -> Tensor:
    shape = (count, frames.shape[1])
    return functional.interpolate(frames[None, None], shape, mode="bicubic", align_corners=False)[0, 0]


def _masked(frames: Tensor, axis: int, masks: int, widest: int) -> Tensor:
    size = frames.shape[axis]
    widths = torch.randint(0, widest, (masks, 1))
    starts = torch.randint(0, max(1, size - int(widths.max())), (masks, 1))
    places = torch.arange(size)
    hidden = ((starts <= places) & (places < starts + widths)).any(0).to(frames.device)
    return frames.masked_fill(hidden[:, None] if axis == 0 else hidden[None], 0.0)


class ProbeModel(nn.Module):
    """A frozen encoder and the head that was trained above it."""

    def __init__(self, upstream: Upstream, head: Head) -> None:
        super().__init__()
        self.upstream = upstream
        self.encoder = upstream.encoder
        self.head = head
        self.main_input_name = self.encoder.main_input_name

    @property
    def device(self) -> torch.device:
        return self.head.layer_logits.device

    @property
    def dtype(self) -> torch.dtype:
        return self.head.layer_logits.dtype

    def forward(self, inputs: dict[str, Tensor], lengths: list[int]) -> tuple[Tensor, Tensor]:
        """Logits (clip, frame, letter) of clips of some lengths in samples, and how many frames each has."""
        states = self.upstream.hidden_states(inputs)
        counts = self.upstream.frames(lengths, states.shape[2])
        return self.head([each[:, :count] for each, count in zip(states, counts, strict=True)])


@dataclass
class Probe(TransformersRecogniser):
    """Clips of up to 30 s whole; longer ones are cut at pauses."""

    letters: Letters = None  # type: ignore[assignment]

    def _inputs(self, clips: list[Clip], **more: Any) -> dict[str, Any]:
        return self.model.upstream.inputs(clips)

    def _padding_changes_nothing(self) -> bool:
        upstream: Upstream = self.model.upstream
        if upstream.fixed_window:
            return True
        tells = hasattr(upstream.encoder, "_get_feat_extract_output_lengths")
        return tells and super()._padding_changes_nothing()

    def _features(self, clips: list[Clip]) -> list[Any]:
        logits, frames = self.model(self._inputs(clips), [len(clip) for clip in clips])
        return [row[:count] for row, count in zip(logits, frames.tolist(), strict=True)]

    def _texts(self, clips: list[Clip], language: str | None) -> list[str]:
        pieces = self._in_pieces(clips, self._decoded)
        return [" ".join(text for text in texts if text) for texts in pieces]

    def _decoded(self, clips: list[Clip]) -> list[str]:
        return [self.letters.decode(logits.argmax(-1).tolist()) for logits in self._features(clips)]


@dataclass
class ProbeView(CtcView):
    """A probe above wav2vec 2.0 and its like, Moonshine, Whisper or filter banks."""

    @property
    def blank(self) -> int:
        return BLANK

    def logits(self, waves: Tensor, batch: AttackBatch) -> tuple[Tensor, Tensor]:
        logits, frames = self.model(self.inputs(waves, batch.lengths), batch.lengths.tolist())
        return logits.to(torch.promote_types(logits.dtype, torch.float32)), frames

    def tokens(self, text: str) -> list[int]:
        return self.recogniser.letters.encode(text)  # type: ignore[attr-defined]

    def decode(self, numbers: list[int]) -> str:
        return self.recogniser.letters.decode(numbers)  # type: ignore[attr-defined]

    def spell(self, text: str) -> str:
        written = spelled(text, None)
        if not written:
            raise UserError("its transcript is empty, so it has no loss")
        letters = self.recogniser.letters.characters  # type: ignore[attr-defined]
        if odd := sorted(set(written) - set(letters)):
            name = self.recogniser.name
            raise UserError(f"its transcript has characters that {name} cannot write: {' '.join(odd)}")
        return written


def probe_view(recogniser: Recogniser, precision: torch.dtype | None, eot: int | None) -> View:
    """The view of an opened probe; it has nothing random, so `eot` changes nothing."""
    return ProbeView(recogniser, precision)
