"""Masked words (`en_masked_sev1`): does a recogniser recognise a word, or remember the sentence?

Words are replaced by silence or by white noise of the same length, so a word that is written there was not heard (noise
masking: Amid et al., "Extracting Targeted Training Data from ASR Models, and How to Mitigate It", 2022). The words are
drawn from the transcript alone: every few words a run of one, two, four or eight, which begins with a content word.
Runs of eight leave a short sentence without context. Their times come from a forced alignment, slightly widened,
because neighbouring sounds give a word away. The row's parameters keep the places and the words. A clip that cannot be
aligned with its transcript stays unchanged, and its row says so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

import numpy as np

from speech_robust_bench.builders.corpora.base import Audio, Utterance
from speech_robust_bench.builders.forced_alignment import LANGUAGE, align, spoken_words
from speech_robust_bench.builders.scenario import Scenario
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.seeding import clip_rng

Fill = Literal["silence", "noise"]
APART = 4  # words between two masks, so that each has its context
WIDER_S = 0.04  # on either side
RAMP_S = 0.005  # so that the edges do not click
# Words that grammar alone often determines; a mask begins with another one.
_GRAMMAR = (
    "a about after all also although an and any are as at be because been before being both but by can could did "
    "do does done each either else even every few for from had has have having he her here hers him his how i if "
    "in into is it its just many may me might more most much must my neither no nor not now of off on once only "
    "onto or other our out over own per rather same shall she should since so some still such than that the their "
    "them then there these they this those though through thus to too under unless until up upon us very was we "
    "were what when where whether which while who whom whose why will with within without would yet you your "
)
FUNCTION_WORDS = frozenset(_GRAMMAR.split())


@dataclass(frozen=True, slots=True)
class MaskedAudio:
    """A clip whose masked words are replaced when it is loaded."""

    clip: Audio
    text: str
    masked: tuple[int, ...]  # places in the transcript, split at spaces
    fill: Fill
    seed: int

    @property
    def name(self) -> str:
        return f"{self.clip.name} (masked)"

    @property
    def parameters(self) -> Settings:
        """The draw, for the row: the masked words, their places in the transcript, and their times."""
        spans = spans_of(self)
        if spans is None:
            return {"fill": self.fill, "masked": [], "words": [], "spans_s": [], "aligned": False}
        words = self.text.split()
        return {
            "fill": self.fill,
            "masked": list(self.masked),
            "words": [words[place] for place in self.masked],
            "spans_s": [[round(start, 3), round(end, 3)] for start, end in spans],
        }

    def load(self) -> Samples:
        clip, spans = self.clip.load(), spans_of(self)
        if spans is None:
            return clip
        return replace_spans(clip, spans, self.fill, np.random.default_rng(self.seed))


@lru_cache(maxsize=256)
def spans_of(audio: MaskedAudio) -> tuple[tuple[float, float], ...] | None:
    """Where the masked words of a clip lie, aligned once for the audio and the row."""
    return masked_spans(audio.clip.load(), audio.text, audio.masked)


def mask_all(
    utterances: Sequence[Utterance], corpus: Sequence[Utterance], scenario: Scenario, severity: int, seed: str = ""
) -> Iterator[Utterance]:
    """The clean utterances with runs of words masked: the same ids and texts."""
    length = scenario.value(severity)
    fill: Fill = "noise" if scenario.name.endswith("_noise") else "silence"
    for item in utterances:
        if item.language != LANGUAGE:
            raise UserError(f"masked words need the aligner, which only knows English, not '{item.language}'")
        rng = clip_rng(item.corpus, item.id, scenario.name, severity, seed)
        text = item.text or ""
        masked = draw_masks(text.split(), length, rng)
        yield replace(item, audio=MaskedAudio(item.audio, text, masked, fill, int(rng.integers(2**31))))


def draw_masks(words: list[str], length: int, rng: np.random.Generator) -> tuple[int, ...]:
    """The places of the words to mask: runs of `length`, each beginning with a content word, some words apart."""
    content = [place for place, word in enumerate(words) if is_content_word(word)]
    last = len(words) - length
    place = int(rng.integers(APART + 1))
    masked: list[int] = []
    while starts := [each for each in content if place <= each <= last]:
        masked += range(starts[0], starts[0] + length)
        place = starts[0] + length + APART
    if not masked and content:  # a short text: one run that holds a content word
        first = content[int(rng.integers(len(content)))]
        start = min(first, max(last, 0))
        masked = list(range(start, min(start + length, len(words))))
    return tuple(masked)


def is_content_word(word: str) -> bool:
    """Whether a word carries meaning.

    >>> is_content_word("Printing,"), is_content_word("the"), is_content_word("--")
    (True, False, False)
    """
    spoken = spoken_words(word)
    return bool(spoken) and not all(each in FUNCTION_WORDS for each in spoken)


def masked_spans(samples: Samples, text: str, masked: tuple[int, ...]) -> tuple[tuple[float, float], ...] | None:
    """Start and end in seconds of the masked words, widened; None where the transcript cannot be aligned."""
    if not masked:
        return ()
    words = align(samples, text)
    if words is None:
        return None
    times = iter(words)
    spans = []
    for place, token in enumerate(text.split()):
        pieces = [next(times) for _ in spoken_words(token)]
        if place in masked and pieces:
            spans.append((max(pieces[0][1] - WIDER_S, 0.0), pieces[-1][2] + WIDER_S))
    return tuple(spans)


def replace_spans(
    samples: Samples, spans: Sequence[tuple[float, float]], fill: Fill, rng: np.random.Generator
) -> Samples:
    """The clip with silence, or with white noise of the clip's own level, in some places."""
    keep = np.ones(len(samples), dtype=np.float32)
    for start, end in spans:
        keep[round(start * RATE) : round(end * RATE)] = 0
    ramp = round(RAMP_S * RATE)
    smooth = np.convolve(np.pad(keep, ramp, mode="edge"), np.full(2 * ramp + 1, 1 / (2 * ramp + 1)), mode="valid")
    gain = np.minimum(keep, smooth).astype(np.float32)  # the ramps lie in what is kept
    if fill == "silence":
        return samples * gain
    level = np.sqrt(np.mean(np.square(samples), dtype=np.float64))
    noise = rng.standard_normal(len(samples)).astype(np.float32) * np.float32(level)
    return np.clip(samples * gain + noise * (1 - gain), -1, 1).astype(np.float32)


def _row(name: str, fill: str) -> Scenario:
    return Scenario(
        name,
        "masked",
        f"words replaced by {fill}",
        "Amid 2022",
        parameter="words",
        severities=(1, 2, 4, 8),
        maker="masking",
        from_clips=mask_all,
        languages=(LANGUAGE,),
        facts=("masked",),
    )


SILENCE, NOISE = _row("masked", "silence"), _row("masked_noise", "white noise")
