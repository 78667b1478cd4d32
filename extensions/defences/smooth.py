"""ROVER: one transcript out of several, by a vote at every word (Fiscus 1997), with word frequencies alone.

The first transcript is the backbone. Each further one is aligned with the network of words so far by least edit cost,
where agreeing with any word in a slot is free; then every slot's most frequent entry wins, silence included.

Randomised smoothing and other defences around any recogniser: `smooth:<model>?sigma=0.01&n=8`.

Transcribe the clip `n` times under noise of deviation `sigma`, clean each copy if asked to, and vote (Olivier and Raj
2021; Olivier, chapter 7). The noise is a function of the clip's samples, so a clip gives the same text in any batch,
and an attacker who moves one sample meets other noise. `sigma=0&n=1` leaves the cleaning alone: MP3 or coarse
quantisation, the older defences that smoothing is compared with.
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
from speech_robust_bench.models.hf.ctc import Ctc
from speech_robust_bench.models.interface import Clip, Described, Recogniser, open_model

Slot = Counter[str]  # how many transcripts have each word here; "" counts those that have none


def rover(texts: Sequence[str]) -> str:
    """The transcript that most of `texts` agree on, word by word; a tie goes to the earlier transcript."""
    network: list[Slot] = []
    for number, text in enumerate(texts):
        network = _merged(network, text.split(), number)
    return " ".join(word for slot in network if (word := slot.most_common(1)[0][0]))


def _merged(network: list[Slot], words: list[str], before: int) -> list[Slot]:
    """The network with one more transcript in it, `before` being how many it has."""
    merged = []
    for slot, word in _alignment(network, words):
        if slot is None:  # nobody said anything here so far
            slot = Counter({"": before}) if before else Counter()
        slot[word] += 1
        merged.append(slot)
    return merged


def _alignment(network: list[Slot], words: list[str]) -> list[tuple[Slot | None, str]]:
    """Slots and words in pairs, in order; None is a new slot, "" a word that is missing."""
    cost = [[0] * (len(words) + 1) for _ in range(len(network) + 1)]
    for i in range(len(network) + 1):
        for j in range(len(words) + 1):
            ways = []
            if i:
                ways.append(cost[i - 1][j] + ("" not in network[i - 1]))
            if j:
                ways.append(cost[i][j - 1] + 1)
            if i and j:
                ways.append(cost[i - 1][j - 1] + (words[j - 1] not in network[i - 1]))
            cost[i][j] = min(ways, default=0)
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


def _quantised(samples: Clip, sigma: float) -> Clip:
    return (np.round(samples * (LEVELS / 2)) / (LEVELS / 2)).astype(np.float32)


# (noisy samples, the noise's deviation) -> cleaner samples; none of them has a useful derivative
ENHANCERS: dict[str, Callable[[Clip, float], Clip]] = {
    "none": lambda samples, sigma: samples,
    "asnr": a_priori_snr,
    "mp3": lambda samples, sigma: mp3(samples, RATE, MP3_KBPS, np.random.default_rng(0)),
    "quantise": _quantised,
}


def _majority(texts: Sequence[str]) -> str:
    return Counter(texts).most_common(1)[0][0]


VOTES: dict[str, Callable[[Sequence[str]], str] | None] = {"rover": rover, "majority": _majority, "logits": None}
NOISES = ("white", "mad")


def noise(kind: str, sigma: float, size: int, rng: np.random.Generator) -> Clip:
    """White Gaussian noise, or half the difference of two neighbours of it, which has no low frequencies.

    The second is Olivier's moving average difference (7.5.1).
    """
    if kind == "white":
        return np.float32(sigma) * rng.standard_normal(size, np.float32)
    return (np.float32(sigma) * np.diff(rng.standard_normal(size + 1, np.float32)) / 2).astype(np.float32)


@dataclass
class Smooth(Described):
    """A recogniser behind noise, cleaning and a vote."""

    inner: Recogniser = None  # type: ignore[assignment]
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
        """What the inner recogniser makes of each copy."""
        size = self.inner.batch_size
        starts = range(0, len(copies), size)
        return [text for s in starts for text in self.inner.transcribe(copies[s : s + size], rate, language)]

    def copies(self, clip: Clip, n: int | None = None, stream: str = "smooth") -> Iterator[Clip]:
        """The clip under `n` draws of the noise, cleaned; one after the other, because `n` may be thousands."""
        n = n or self.n
        kind = "" if self.noise == "white" else self.noise
        rng = clip_rng(stream, content_id(clip), f"{self.sigma}{kind}", n)
        for _ in range(n):
            yield ENHANCERS[self.enhance](clip + noise(self.noise, self.sigma, len(clip), rng), self.sigma)

    def _by_logits(self, copies: list[Clip], language: str | None) -> str:
        """The text of the mean of the copies' logits, which CTC models have frame by frame."""
        import torch

        assert isinstance(self.inner, Ctc)
        with torch.inference_mode():
            self.inner._speak(self.inner._spoken(language))
            size = self.inner.batch_size
            frames = [row for s in range(0, len(copies), size) for row in self.inner._features(copies[s : s + size])]
            return self.inner._text([torch.stack(frames).mean(0)]).strip()

    def close(self) -> None:
        self.inner.close()


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
    """`smooth:<model>?sigma=0.01&n=8&enhance=asnr`; the model's own options go before: `smooth:hf:X?beams=2?n=4`."""
    if not target:
        raise UserError("'smooth' needs a recogniser to protect: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    if sigma < 0 or n < 1:
        raise UserError(f"smooth: sigma is 0 or more and n 1 or more, not {sigma} and {n}")
    chosen: dict[str, tuple[str, Collection[str]]]
    chosen = {"enhancer": (enhance, ENHANCERS), "vote": (vote, VOTES), "noise": (noise, NOISES)}
    for what, (value, known) in chosen.items():
        if value not in known:
            raise UserError(f"smooth: no {what} '{value}'; {did_you_mean(value, known)}")
    if enhance == "asnr" and noise != "white":
        raise UserError("smooth: enhance=asnr takes white noise away, not noise=mad; leave one of them out")
    inner = open_model(target, device=device or None)
    if vote == "logits" and not isinstance(inner, Ctc):
        raise UserError(f"smooth: vote=logits needs a CTC model of transformers, which {inner.name} is not; use rover")
    # The defaults of an option that came later are not written, so that runs made before it still go on.
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
