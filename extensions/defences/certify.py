"""Certified robustness of a smoothed recogniser: the radius in which the vote provably keeps its transcript.

CERTIFY of Cohen et al. (2019) as Olivier carries it over to transcripts (E.3): ROVER over some draws gives the
transcript; other draws say how often the recogniser is within a WER of `tolerance` of it. If that share is more than
half with confidence 1 - alpha, no perturbation of L2 norm below sigma x Phi^-1(share) makes it less (Proposition E.2).
Otherwise the clip abstains. The share needs many draws: with all of n agreeing the radius is at most
sigma x Phi^-1(alpha^(1/n)).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from statistics import NormalDist
from typing import Any

import numpy as np

from speech_robust_bench.builders.configs import Config
from speech_robust_bench.core.audio import RATE
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Record, Whole, decode, to_json
from speech_robust_bench.extensions.defences.smooth import VOTES, Smooth
from speech_robust_bench.scoring.scoring import align, default_unit

SNRS_DB = (60, 50, 40, 30, 20)  # at which the share of certified clips is told
BATCH = 32


@dataclass(frozen=True)
class Settings:
    """Draws, risk and tolerance of certificates."""

    draws: int = 1000
    alpha: float = 0.001
    tolerance: float = 0.0  # WER to the voted transcript, 0 for the very same words

    def __post_init__(self) -> None:
        if self.draws < 1 or not 0 < self.alpha < 1 or not 0 <= self.tolerance < 1:
            raise UserError("certify: draws are 1 or more, alpha lies between 0 and 1, the WER from 0 to below 1")


class Certificate(Record, frozen=True):
    """Of one clip. `radius` is an L2 norm, 0 where it abstains; `snr_db` is the SNR of a perturbation that large."""

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


def lowest_share(agree: int, draws: int, alpha: float) -> float:
    """The one-sided lower bound of Clopper and Pearson on the probability of agreeing."""
    from scipy.stats import beta

    return float(beta.ppf(alpha, agree, draws - agree + 1)) if agree else 0.0


def certify_clip(
    model: Smooth, clip_id: str, samples: np.ndarray, text: str, language: str | None, settings: Settings
) -> Certificate:
    """What can be promised for one clip."""
    (transcript,) = model.transcribe([samples], RATE, language)
    # Other draws than those of the vote, or the share would be that of the draws that chose the transcript.
    copies = model.copies(samples, settings.draws, "certify")
    hypotheses: list[str] = []
    while batch := list(islice(copies, BATCH)):
        hypotheses += model.hypotheses(batch, RATE, language)
    unit = default_unit(language)
    errors = align([transcript] * settings.draws, hypotheses, unit=unit).rates / 100
    agree = int(np.sum(errors <= settings.tolerance))
    share = lowest_share(agree, settings.draws, settings.alpha)
    radius = model.sigma * NormalDist().inv_cdf(share) if 0.5 < share < 1 else 0.0
    energy = float(np.sqrt(np.sum(np.square(samples, dtype=float))))
    snr_db = 20 * float(np.log10(energy / radius)) if radius > 0 and energy > 0 else None
    wer = float(align([text], [transcript], unit=unit).rates[0] / 100)
    return Certificate(
        clip_id, text, transcript, round(wer, 4), agree, settings.draws, share, radius, snr_db, radius == 0
    )


def certify(
    model: Any,
    config: Config,
    out: Path,
    settings: Settings = Settings(),
    limit: int | None = None,
    tick: Callable[[], None] = lambda: None,
) -> list[Certificate]:
    """The certificates of a config's clips, a line each in `out`; clips that are there already are not drawn again."""
    check_model(model)
    head = {"model": model.name, "revision": model.revision, "options": model.options, "config": config.name}
    head |= {"content_sha256": config.about.content_sha256, **asdict(settings)}
    done = _read(out, head)
    out.parent.mkdir(parents=True, exist_ok=True)
    with out.open("a", encoding="utf-8") as file:
        if not out.stat().st_size:
            file.write(json.dumps(head, ensure_ascii=False) + "\n")
        wanted = {row.position for row in config.rows[:limit]}
        rows = [(window, row) for window in config.windows(wanted) for row in window.rows]
        for window, row in rows:
            if row.id not in done:
                samples = np.asarray(window.decode(row), np.float32)
                done[row.id] = certify_clip(model, row.id, samples, row.text or "", row.language, settings)
                file.write(to_json(done[row.id]).decode())
                file.flush()
            tick()
    return [done[row.id] for row in config.rows[:limit]]


def check_model(model: Any) -> None:
    """Refuse what the theorem does not speak of."""
    if not isinstance(model, Smooth):
        raise UserError("certify needs a smoothed model: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    if model.noise != "white" or model.sigma <= 0 or VOTES[model.vote] is None:
        raise UserError("certify needs white noise of sigma above 0 and a vote over transcripts (rover, majority)")


def _read(out: Path, head: dict[str, Any]) -> dict[str, Certificate]:
    """What an interrupted command left; a torn last line is cut off, and a file of other settings is refused."""
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


def summary(certificates: Sequence[Certificate], snrs_db: Iterable[float] = SNRS_DB) -> dict[str, Any]:
    """The abstain rate, the WER of the votes, the median radius, and the share of clips certified at some SNRs."""
    count = max(1, len(certificates))
    kept = [certificate for certificate in certificates if not certificate.abstains]
    at = {f"{snr:g}": sum(c.snr_db is not None and c.snr_db <= snr for c in kept) / count for snr in snrs_db}
    return {
        "clips": len(certificates),
        "abstains": 1 - len(kept) / count,
        "wer": float(np.mean([certificate.wer for certificate in certificates] or [0.0])),
        "median_radius": float(np.median([certificate.radius for certificate in kept])) if kept else 0.0,
        "certified": at,
    }
