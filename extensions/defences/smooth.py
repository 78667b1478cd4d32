"""Randomised smoothing and other defences around any recogniser: `smooth:<model>?sigma=0.01&n=8`.

The clip is transcribed `n` times under noise of deviation `sigma`, each copy cleaned if `enhance` says so, and the
transcripts vote (Olivier and Raj 2021; Olivier, chapter 7). The noise is a function of the clip's samples: a clip gives
the same text in any batch, and an attacker who changes one sample gets other noise. With `sigma=0&n=1` only the
cleaning is left: MP3 or coarse quantisation, the older defences that smoothing is compared with.

The usual vote is ROVER (Fiscus 1997) with word frequencies. The first transcript is the backbone; each further one is
aligned with the network of words so far by least edit cost, where agreeing with any word in a slot is free. Then every
slot's most frequent entry wins, silence included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from speech_robust_bench.builders.perturb.codecs import mp3
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.seeding import clip_rng, content_id
from speech_robust_bench.models.enhance import a_priori_snr
from speech_robust_bench.models.hf.base import Ctc
from speech_robust_bench.models.interface import Clip, Described, Recogniser, open_model, spec_traits

Slot = Counter[str]  # how many transcripts have each word here; "" counts those without a word


def rover(texts: Sequence[str]) -> str:
    """The transcript that most of `texts` agree on, word by word; a tie goes to the earlier transcript."""
    network: list[Slot] = []
    for number, text in enumerate(texts):
        network = _merged(network, text.split(), number)
    return " ".join(word for slot in network if (word := slot.most_common(1)[0][0]))


def _merged(network: list[Slot], words: list[str], before: int) -> list[Slot]:
    """The network of `before` transcripts with one more in it."""
    merged = []
    for slot, word in _alignment(network, words):
        if slot is None:  # the transcripts so far have no word here
            slot = Counter({"": before}) if before else Counter()
        slot[word] += 1
        merged.append(slot)
    return merged


def _alignment(network: list[Slot], words: list[str]) -> list[tuple[Slot | None, str]]:
    """Slots and words in pairs, in order; None is a new slot, "" a missing word."""
    cost = [list(range(len(words) + 1))]
    for slot in network:
        row = [cost[-1][0] + ("" not in slot)]
        for j, word in enumerate(words):
            row.append(min(cost[-1][j] + (word not in slot), cost[-1][j + 1] + ("" not in slot), row[-1] + 1))
        cost.append(row)
    pairs: list[tuple[Slot | None, str]] = []
    i, j = len(network), len(words)
    while i or j:
        if i and j and cost[i][j] == cost[i - 1][j - 1] + (words[j - 1] not in network[i - 1]):
            i, j = i - 1, j - 1
            pairs.append((network[i], words[j]))
        elif i and cost[i][j] == cost[i - 1][j] + ("" not in network[i - 1]):
            i -= 1
            pairs.append((network[i], ""))
        else:
            j -= 1
            pairs.append((None, words[j]))
    return pairs[::-1]


MP3_KBPS = 32  # the finest of the `mp3` scenario
LEVELS = 256  # amplitudes that quantisation keeps, of the 65,536 of 16 bits (Yang et al. 2019)

# (noisy samples, the noise's deviation) -> cleaner samples; none of them has a useful derivative
ENHANCERS: dict[str, Callable[[Clip, float], Clip]] = {
    "none": lambda samples, sigma: samples,
    "asnr": a_priori_snr,
    "mp3": lambda samples, sigma: mp3(samples, RATE, MP3_KBPS, np.random.default_rng(0)),
    "quantise": lambda samples, sigma: (np.round(samples * (LEVELS / 2)) / (LEVELS / 2)).astype(np.float32),
}
VOTES: dict[str, Callable[[Sequence[str]], str] | None] = {
    "rover": rover,
    "majority": lambda texts: Counter(texts).most_common(1)[0][0],
    "logits": None,
}
NOISES = ("white", "mad")


def noise(kind: str, sigma: float, size: int, rng: np.random.Generator) -> Clip:
    """White Gaussian noise, or Olivier's moving average difference (7.5.1), which has no low frequencies."""
    if kind == "white":
        return np.float32(sigma) * rng.standard_normal(size, np.float32)
    return (np.float32(sigma) * np.diff(rng.standard_normal(size + 1, np.float32)) / 2).astype(np.float32)


@dataclass(kw_only=True)
class Smooth(Described):
    """A recogniser behind noise, cleaning and a vote."""

    inner: Recogniser
    sigma: float = 0.01
    n: int = 8
    enhance: str = "none"
    vote: str = "rover"
    noise: str = "white"

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        if self.vote == "logits":
            return [self._by_logits(list(self.copies(clip)), language) for clip in clips]
        hypotheses = self.hypotheses([copy for clip in clips for copy in self.copies(clip)], rate, language)
        vote = VOTES[self.vote]
        assert vote is not None
        return [vote(hypotheses[start : start + self.n]) for start in range(0, len(hypotheses), self.n)]

    def hypotheses(self, copies: list[Clip], rate: int, language: str | None) -> list[str]:
        """The inner recogniser's transcript of each copy."""
        size = self.inner.batch_size
        starts = range(0, len(copies), size)
        return [text for s in starts for text in self.inner.transcribe(copies[s : s + size], rate, language)]

    def copies(self, clip: Clip, n: int | None = None, rng_key: str = "smooth") -> Iterator[Clip]:
        """The clip under `n` draws of the noise, cleaned, one at a time: `n` may be thousands."""
        n = n or self.n
        kind = "" if self.noise == "white" else self.noise
        rng = clip_rng(rng_key, content_id(clip), f"{self.sigma}{kind}", n)
        for _ in range(n):
            yield ENHANCERS[self.enhance](clip + noise(self.noise, self.sigma, len(clip), rng), self.sigma)

    def _by_logits(self, copies: list[Clip], language: str | None) -> str:
        """The text of the mean of the copies' logits; CTC models have some for each frame."""
        import torch

        assert isinstance(self.inner, Ctc)
        with torch.inference_mode():
            self.inner._speak(self.inner._spoken(language))
            size = self.inner.batch_size
            frames = [row for s in range(0, len(copies), size) for row in self.inner._features(copies[s : s + size])]
            return self.inner._text([torch.stack(frames).mean(0)]).strip()

    def close(self) -> None:
        self.inner.close()


@spec_traits(wraps=True)
def load(
    target: str,
    *,
    sigma: float = 0.01,
    n: int = 8,
    enhance: str = "none",
    vote: str = "rover",
    noise: str = "white",
    device: str = "",
) -> Recogniser:
    """`smooth:<model>?sigma=0.01&n=8&enhance=asnr`; the model's own options come first: `smooth:hf:X?beams=2?n=4`."""
    if not target:
        raise UserError("'smooth' needs a recogniser to protect: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    if sigma < 0 or n < 1:
        raise UserError(f"smooth: sigma must be at least 0 and n at least 1, not {sigma} and {n}")
    known: Collection[str]
    for what, value, known in (("enhancer", enhance, ENHANCERS), ("vote", vote, VOTES), ("noise", noise, NOISES)):
        if value not in known:
            raise UserError(f"smooth: no {what} '{value}'; {did_you_mean(value, known)}")
    if enhance == "asnr" and noise != "white":
        raise UserError("smooth: enhance=asnr removes white noise, not noise=mad; leave one of them out")
    inner = open_model(target, device=device or None)
    if vote == "logits" and not isinstance(inner, Ctc):
        raise UserError(f"smooth: vote=logits needs a CTC model of transformers, which {inner.name} is not; use rover")
    # Defaults of later options are not recorded, so that older runs can be continued.
    later = {key: value for key, value, usual in (("vote", vote, "rover"), ("noise", noise, "white")) if value != usual}
    return Smooth(
        name=f"smooth-{inner.name}",
        revision=inner.revision,
        options={**inner.options, "model": inner.name, "sigma": sigma, "n": n, "enhance": enhance, **later},
        batch_size=max(1, inner.batch_size // n),
        inner=inner,
        sigma=sigma,
        n=n,
        enhance=enhance,
        vote=vote,
        noise=noise,
    )
