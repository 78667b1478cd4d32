"""`srb.certify`: the radius in which a smoothed recogniser provably keeps its transcript."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.options import Options, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.data_source import DataSource
from speech_robust_bench.extensions.defences import certify as certificates
from speech_robust_bench.models.interface import open_model
from speech_robust_bench.options import Place


@dataclass(frozen=True)
class CertifyOptions(Options):
    """Draws, risk and tolerance of certificates."""

    draws: int = option(1000, "noise draws per clip", metavar="N")
    alpha: float = option(0.001, "risk that a clip's certificate is wrong")
    wer: float = option(0.0, "transcripts within this WER count as kept", metavar="K")
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")


def certify(
    model: str,
    config: str,
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place = "certificates.jsonl",
    certify_options: CertifyOptions = CertifyOptions(),
    progress: bool = True,
) -> dict[str, Any]:
    """Certify the radius in which a smoothed recogniser provably keeps the transcript of each clip.

    Args:
        model: a smoothed model, "smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8".
        config: the config whose clips are certified.
        data: a built folder, a name in the datasets cache, or a Hub dataset.
        limit: only the first clips.
        out: a file with a line for each clip.
        certify_options: draws of noise, risk and tolerance.
        progress: show progress.

    Returns:
        `clips`, the shares that `abstains` and are `certified` at each SNR, the `wer` of the votes, `median_radius`.
    """
    settings = certificates.Settings(certify_options.draws, certify_options.alpha, certify_options.wer)
    source = DataSource(data=data, limit=limit)
    chosen = source.configs.config(source.select([config])[0])
    recogniser = open_model(model, device=certify_options.device)
    certificates.check_model(recogniser)
    with progress_bar(not progress) as bar:
        task = bar.add_task(f"certifying {chosen.name}", total=len(chosen.rows[:limit]))
        lines = certificates.certify(recogniser, chosen, Path(out), settings, limit, lambda: bar.advance(task))
    return certificates.summary(lines)
