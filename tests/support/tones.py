"""Small recognisers of a language of tones, made and trained on the spot: one for each kind of loss.

A letter is 50 ms of its own pitch. Every model has what a `python:` recogniser needs to be attacked: `transcribe` and
`losses`; clips are padded, so they mask what lies behind a clip's end.
"""

from __future__ import annotations

import os
import time
from functools import cache

import numpy as np
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

from speech_robust_bench.attacks.clips import AttackClip, mask_of, padded
from speech_robust_bench.attacks.views import base
from speech_robust_bench.attacks.views.transformers_models import best_path, path_scores

RATE = 16_000
LETTERS = " abcd"
HERTZ = {" ": 0, "a": 500, "b": 1000, "c": 1700, "d": 2600}
HOP = 400  # 25 ms
TONE = 800  # 50 ms
BLANK = 0


def tones(text: str, seed: int = 0, noise: float = 0.02) -> np.ndarray:
    """Speech, in the language of tones."""
    rng = np.random.default_rng(seed)
    t = np.arange(TONE) / RATE
    parts = [0.3 * np.sin(2 * np.pi * HERTZ[letter] * t) * np.hanning(TONE) for letter in text]
    clip = np.concatenate(parts)
    return (clip + noise * rng.standard_normal(len(clip))).astype(np.float32)


def text_of(seed: int, words: int = 2, most: int = 3) -> str:
    """Words of two or three letters, no letter twice in a row."""
    rng = np.random.default_rng(seed)
    return " ".join("".join(rng.permutation(list("abcd"))[: rng.integers(2, most + 1)]) for _ in range(words))


def clip_of(seed: int, words: int = 2) -> AttackClip:
    text = text_of(seed, words)
    return AttackClip(f"clip-{seed:03d}", tones(text, seed), text, "en", "tones")


def ids(text: str) -> torch.Tensor:
    """1 is a space, 2 to 5 the letters; 0 is CTC's blank, the start and the end."""
    return torch.tensor([LETTERS.index(letter) + 1 for letter in text])


def letters(numbers: list[int]) -> str:
    return "".join(LETTERS[number - 1] for number in numbers if 0 < number <= len(LETTERS))


class Small(nn.Module):
    """The part that the three share: frames of the waveform, a little context, masks."""

    pads_safely = True
    longest_s = 5.0
    revision = "1"
    options: dict = {}  # noqa: RUF012
    width = 48

    def __init__(self) -> None:
        super().__init__()
        self.frames = nn.Conv1d(1, self.width, HOP, HOP)
        with torch.no_grad():  # it begins with the pitches of the letters, so that seconds of training are enough
            for number, hertz in enumerate(sorted(HERTZ.values())[1:]):
                phase = torch.arange(HOP) * 2 * torch.pi * hertz / RATE
                self.frames.weight[2 * number, 0] += 0.05 * phase.sin()
                self.frames.weight[2 * number + 1, 0] += 0.05 * phase.cos()
        self.context = nn.Conv1d(self.width, self.width, 3, padding=1)

    def encode(self, waves: torch.Tensor, lengths: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        count = lengths // HOP
        waves = waves.to(self.frames.weight.dtype)
        mask = mask_of(count, waves.shape[1] // HOP)[:, None]
        heard = torch.tanh(5 * self.frames(waves[:, None]).square()) * mask
        heard = torch.tanh(self.context(heard)) * mask
        return heard.transpose(1, 2), count

    def transcribe(self, clips, rate, language):
        with torch.no_grad():
            return self.decode(*padded(clips))

    def spell(self, text: str) -> str:
        from speech_robust_bench.core.errors import UserError

        if odd := sorted(set(text.lower()) - set(LETTERS)):
            raise UserError(f"its transcript has characters that the model cannot write: {' '.join(odd)}")
        return text.lower()


class SmallCtc(Small):
    def __init__(self) -> None:
        super().__init__()
        self.out = nn.Linear(self.width, len(LETTERS) + 1)

    def losses(self, waves, lengths, texts):
        heard, count = self.encode(waves, lengths)
        return base.ctc(self.out(heard), count, [ids(text) for text in texts], BLANK)

    def token_scores(self, waves, lengths, right):
        return self.out(self.encode(waves, lengths)[0])

    def right_tokens(self, waves, lengths, texts):
        heard, count = self.encode(waves, lengths)
        return [row[:size] for row, size in zip(self.out(heard).argmax(-1), count.tolist(), strict=True)]

    def decode(self, waves, lengths):
        heard, count = self.encode(waves, lengths)
        best = self.out(heard).argmax(-1)
        return [
            letters([int(n) for i, n in enumerate(row[:size]) if i == 0 or n != row[i - 1]])
            for row, size in zip(best, count.tolist(), strict=True)
        ]


class SmallSeq2Seq(Small):
    """A decoder that reads the frames in order: at position i it looks around frame 2 i, and at the letter before."""

    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Embedding(len(LETTERS) + 1, 16)
        self.out = nn.Sequential(nn.Linear(2 * self.width + 16, 64), nn.Tanh(), nn.Linear(64, len(LETTERS) + 1))

    def _logits(self, heard: torch.Tensor, told: torch.Tensor) -> torch.Tensor:
        room = nn.functional.pad(heard, (0, 0, 0, max(0, 2 * told.shape[1] - heard.shape[1])))
        pairs = room[:, : 2 * told.shape[1]].reshape(len(heard), told.shape[1], -1)
        return self.out(torch.cat([pairs, self.before(told)], -1))

    def losses(self, waves, lengths, texts):
        tokens = self.right_tokens(waves, lengths, texts)
        return base.cross_entropy(self.token_scores(waves, lengths, tokens), tokens)

    def token_scores(self, waves, lengths, right):
        heard, _ = self.encode(waves, lengths)
        return self._logits(heard, pad_sequence([torch.cat([torch.tensor([0]), one[:-1]]) for one in right], True))

    def right_tokens(self, waves, lengths, texts):
        return [torch.cat([ids(text), torch.tensor([0])]) for text in texts]

    def decode(self, waves, lengths):
        heard, count = self.encode(waves, lengths)
        told = torch.zeros(len(waves), 1, dtype=torch.long)
        for _ in range(int(count.max()) // 2 + 2):
            best = self._logits(heard, told)[:, -1].argmax(-1)
            told = torch.cat([told, best[:, None]], 1)
        rows = [row[1:].tolist() for row in told]
        return [letters(row[: row.index(0)] if 0 in row else row) for row in rows]


class SmallTransducer(Small):
    def __init__(self) -> None:
        super().__init__()
        self.before = nn.Embedding(len(LETTERS) + 1, self.width)
        self.out = nn.Linear(self.width, len(LETTERS) + 1)

    def losses(self, waves, lengths, texts):
        tokens = [ids(text) for text in texts]
        logits, count = self._lattice(waves, lengths, tokens)
        return base.transducer(logits, count, tokens, BLANK)

    def _lattice(self, waves, lengths, tokens):
        heard, count = self.encode(waves, lengths)
        told = nn.functional.pad(pad_sequence(tokens, True), (1, 0))
        return self.out(torch.tanh(heard[:, :, None] + self.before(told)[:, None])), count

    def right_tokens(self, waves, lengths, texts):
        tokens = [ids(text) for text in texts]
        rows = zip(*self._lattice(waves, lengths, tokens), tokens, strict=True)
        return [best_path(row[:count, : len(told) + 1], told, BLANK) for row, count, told in rows]

    def token_scores(self, waves, lengths, right):
        logits, _ = self._lattice(waves, lengths, [path[path != BLANK] for path in right])
        return pad_sequence([path_scores(row, path, BLANK) for row, path in zip(logits, right, strict=True)], True)

    def decode(self, waves, lengths):
        heard, count = self.encode(waves, lengths)
        found = []
        for row, size in zip(heard, count.tolist(), strict=True):
            said = [0]
            for frame in row[:size]:
                for _ in range(2):
                    best = int(self.out(torch.tanh(frame + self.before(torch.tensor(said[-1])))).argmax())
                    if best == BLANK:
                        break
                    said.append(best)
            found.append(letters(said[1:]))
        return found


@cache
def trained(kind: type[Small], seed: int = 0, steps: int = 60) -> Small:
    """A model that has learnt the language of tones, in seconds."""
    torch.manual_seed(seed)
    model = kind()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(steps):
        texts = [text_of(10_000 + 16 * step + i) for i in range(16)]
        waves, lengths = padded([tones(text, 7 * step + i, 0.03) for i, text in enumerate(texts)])
        loss = model.losses(waves, lengths, texts).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval().requires_grad_(False)


def ctc():
    return trained(SmallCtc)


def seq2seq():
    return trained(SmallSeq2Seq)


def transducer():
    return trained(SmallTransducer, steps=150)


# what a command line names as `python:support.tones:<name>`


class Ctc:
    """The trained CTC model."""

    def __new__(cls):
        return trained(SmallCtc)


class OtherCtc:
    """Another one, trained from another start."""

    def __new__(cls):
        return trained(SmallCtc, seed=1)


class Seq2Seq:
    def __new__(cls):
        return trained(SmallSeq2Seq)


class Slow:
    """The CTC model; counts the clips that it has attacked, and waits to be killed after the SLOW_CLIPS that it may."""

    attacked = 0
    revision = "1"

    def __init__(self) -> None:
        self.spell = trained(SmallCtc).spell

    def transcribe(self, clips, rate, language):
        return trained(SmallCtc).transcribe(clips, rate, language)

    def losses(self, waves, lengths, texts):
        if Slow.attacked >= int(os.environ.get("SLOW_CLIPS", "1000000")):
            time.sleep(3600)
        if not waves.requires_grad:  # once before and once after
            Slow.attacked += len(waves) / 2
        return trained(SmallCtc).losses(waves, lengths, texts)


def deaf(clips, rate, language):
    """Only transcribes: no losses."""
    return trained(SmallCtc).transcribe(clips, rate, language)
