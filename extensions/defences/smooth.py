"""Randomised smoothing and other defences around any recogniser: `smooth:<model>?sigma=0.01&n=8`.

The clip is transcribed `n` times under noise of deviation `sigma`, each copy cleaned if `enhance` says so, and the
transcripts vote (Olivier and Raj 2021; Olivier, chapter 7). The noise is a function of the clip's samples: a clip gives
the same text in any batch, and an attacker who changes one sample gets other noise. With `sigma=0&n=1` only the
cleaning is left: MP3 or coarse quantisation, the older defences that smoothing is compared with.

The usual vote is ROVER (Fiscus 1997) with word frequencies. The first transcript is the backbone; each further one is
aligned with the network of words so far by least edit cost, where agreeing with any word in a slot is free. Then every
slot's most frequent entry wins, silence included.

`srb certify` finds the radius in which a smoothed recogniser provably keeps its transcript: CERTIFY of Cohen et al.
(2019) as Olivier carries it over to transcripts (E.3): ROVER over some draws gives the transcript; other draws say how
often the recogniser is within a WER of `tolerance` of it. If that share is more than half with confidence 1 - alpha, no
perturbation of L2 norm below sigma x Phi^-1(share) makes it less (Proposition E.2). Otherwise the clip abstains. The
share needs many draws: with all of n agreeing the radius is at most sigma x Phi^-1(alpha^(1/n)).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from statistics import NormalDist

import numpy as np

from speech_robust_bench.builders.perturb.codecs import mp3
from speech_robust_bench.cli.command import BUILT, Command, limit_option, model_option, quiet_option
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.options import Options, Settings, above, argument, at_least, option, option_group
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.core.records import Record, Whole, decode, to_json
from speech_robust_bench.core.seeding import clip_rng, content_id
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.models.enhance import a_priori_snr
from speech_robust_bench.models.hf.base import Ctc
from speech_robust_bench.models.interface import Clip, Described, Recogniser, open_model, spec_traits
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.scoring import align, default_unit

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


SNRS_DB = (60, 50, 40, 30, 20)  # at which the share of certified clips is reported
BATCH = 32


@dataclass(frozen=True)
class CertifyOptions(Options):
    """Draws, risk and tolerance of certificates."""

    draws: int = option(1000, "noise draws per clip", metavar="N", check=at_least(1))
    alpha: float = option(0.001, "risk that a clip's certificate is wrong", check=above(0, 1))
    wer: float = option(0.0, "transcripts within this WER count as kept", metavar="K", check=above(0, 1))
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")


class CertificateSummary(Record, frozen=True):
    """The certificates of a config in a few numbers."""

    clips: Whole
    abstains: float  # share of the clips
    wer: float  # of the voted transcripts
    median_radius: float  # of the certified clips
    certified: dict[str, float]  # share of the clips that keep their transcript, by SNR in dB


class Certificate(Record, frozen=True):
    """One clip. `radius` is an L2 norm, 0 where it abstains; `snr_db` is the SNR of a perturbation of that norm."""

    id: str
    text: str
    transcript: str
    wer: float  # of the voted transcript to the reference
    agree: Whole  # draws within the tolerance of it
    draws: Whole
    share: float  # that agree at least, with confidence 1 - alpha
    radius: float
    snr_db: float | None
    abstains: bool


def certify(
    model: str,
    config: str,
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place = "certificates.jsonl",
    certify_options: CertifyOptions = CertifyOptions(),
    progress: bool = True,
) -> CertificateSummary:
    """Certify the radius in which a smoothed recogniser provably keeps the transcript of each clip.

    Args:
        model: a smoothed model, "smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8".
        config: the config whose clips are certified.
        data: a built folder, a name in the datasets cache, or a Hub dataset.
        limit: only the first clips.
        out: a file with a line for each clip; clips that are in it already are not certified again.
        certify_options: draws of noise, risk and tolerance.
        progress: show progress.
    """
    source = DataSource(data=data, limit=limit)
    clips = source.configs.config(source.select([config])[0])
    recogniser = smoothed(open_model(model, device=certify_options.device))
    options = certify_options
    head: Settings = {"model": recogniser.name, "revision": recogniser.revision, "options": recogniser.options}
    head |= {"config": clips.name, "content_sha256": clips.about.content_sha256}
    head |= {"draws": options.draws, "alpha": options.alpha, "tolerance": options.wer}
    path = Path(out)
    done = _read(path, head)
    path.parent.mkdir(parents=True, exist_ok=True)
    chosen = clips.rows[:limit]
    with path.open("a", encoding="utf-8") as file, progress_bar(not progress) as bar:
        if not path.stat().st_size:
            file.write(json.dumps(head, ensure_ascii=False) + "\n")
        task = bar.add_task(f"certifying {clips.name}", total=len(chosen))
        for window in clips.windows({row.position for row in chosen}):
            for row in window.rows:
                if row.id not in done:
                    samples = np.asarray(window.decode(row), np.float32)
                    done[row.id] = certify_clip(recogniser, row.id, samples, row.text or "", row.language, options)
                    file.write(to_json(done[row.id]).decode())
                    file.flush()
                bar.advance(task)
    return summary([done[row.id] for row in chosen])


def smoothed(model: Recogniser) -> Smooth:
    """The model, if the theorem holds for it."""
    if not isinstance(model, Smooth):
        raise UserError("certify needs a smoothed model: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    if model.noise != "white" or model.sigma <= 0 or VOTES[model.vote] is None:
        raise UserError("certify needs white noise of sigma above 0 and a vote over transcripts (rover, majority)")
    return model


def certify_clip(
    model: Smooth, clip_id: str, samples: np.ndarray, text: str, language: str | None, options: CertifyOptions
) -> Certificate:
    """The certificate of one clip."""
    (transcript,) = model.transcribe([samples], RATE, language)
    # Not the draws of the vote: their share is biased, because they chose the transcript.
    copies = model.copies(samples, options.draws, "certify")
    hypotheses: list[str] = []
    while batch := list(islice(copies, BATCH)):
        hypotheses += model.hypotheses(batch, RATE, language)
    unit = default_unit(language)
    errors = align([transcript] * options.draws, hypotheses, unit=unit).rates / 100
    agree = int(np.sum(errors <= options.wer))
    share = lowest_share(agree, options.draws, options.alpha)
    radius = model.sigma * NormalDist().inv_cdf(share) if 0.5 < share < 1 else 0.0
    energy = float(np.sqrt(np.sum(np.square(samples, dtype=float))))
    snr_db = 20 * float(np.log10(energy / radius)) if radius > 0 and energy > 0 else None
    wer = float(align([text], [transcript], unit=unit).rates[0] / 100)
    return Certificate(
        clip_id, text, transcript, round(wer, 4), agree, options.draws, share, radius, snr_db, radius == 0
    )


def lowest_share(agree: int, draws: int, alpha: float) -> float:
    """The one-sided lower bound of Clopper and Pearson on the probability of agreeing."""
    from scipy.stats import beta

    return float(beta.ppf(alpha, agree, draws - agree + 1)) if agree else 0.0


def _read(out: Path, head: Settings) -> dict[str, Certificate]:
    """The certificates of an interrupted command. A torn last line is cut off; a file of other settings is refused."""
    if not out.is_file() or not out.stat().st_size:
        return {}
    *lines, torn = out.read_bytes().split(b"\n")
    try:
        first = json.loads(lines[0])
        known = {line.id: line for line in (decode(line, Certificate, out) for line in lines[1:])}
    except (ValueError, RecursionError):
        raise UserError(f"{out}: not a file of certificates; name another one with --out") from None
    if first != json.loads(json.dumps(head)):
        raise UserError(f"{out}: is of another model, config or settings; name another file with --out")
    if torn:
        out.write_bytes(b"\n".join([*lines, b""]))
    return known


def summary(certificates: Sequence[Certificate]) -> CertificateSummary:
    """The abstain rate, the WER of the votes, the median radius, and the share of clips certified at some SNRs."""
    count = max(1, len(certificates))
    kept = [certificate for certificate in certificates if not certificate.abstains]
    return CertificateSummary(
        clips=len(certificates),
        abstains=1 - len(kept) / count,
        wer=float(np.mean([certificate.wer for certificate in certificates] or [0.0])),
        median_radius=float(np.median([certificate.radius for certificate in kept])) if kept else 0.0,
        certified={
            f"{snr_db}": sum(c.snr_db is not None and c.snr_db <= snr_db for c in kept) / count for snr_db in SNRS_DB
        },
    )


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    config: str = argument("config whose clips are certified", metavar="CONFIG")
    model: str = model_option("smoothed model, such as smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    data: str = option("srb", BUILT)
    out: str = option("certificates.jsonl", "output file, one line per clip", metavar="FILE")
    limit: int | None = limit_option("only the first N clips")
    certify_options: CertifyOptions = option_group(CertifyOptions)
    quiet: bool = quiet_option()


def run(args: Arguments) -> None:
    of_config = certify(
        args.model,
        args.config,
        data=args.data,
        limit=args.limit,
        out=args.out,
        certify_options=args.certify_options,
        progress=not args.quiet,
    )
    print(
        f"{args.out}: {of_config.clips} clips, abstains on {100 * of_config.abstains:.1f} %, WER of the votes "
        f"{100 * of_config.wer:.1f} %, median radius {of_config.median_radius:.4g}"
    )
    shares = ", ".join(f"{snr_db} dB {100 * share:.1f} %" for snr_db, share in of_config.certified.items())
    print(f"certified against every perturbation at an SNR of {shares}")


COMMAND = Command(Arguments, run)
