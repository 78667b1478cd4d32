"""PocketSphinx 5 with the US English model that its package carries: a classical GMM-HMM recogniser, in processes.

It decodes on one core and holds the interpreter's lock, so a batch is spread over `workers` processes. Each utterance
starts from a fresh cepstral mean: otherwise the running estimate of the earlier clips would leak into this one.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
from dataclasses import dataclass
from typing import Any

from srb.builders.audio import RATE, resample, to_pcm16
from srb.models.interface import Clip, Described, Recogniser, cores, need

INSTALL = 'pip install "speech-robust-bench[demo]"'
_decoder: Any = None  # of this process


@dataclass
class PocketSphinx(Described):
    """The bundled model; `pool` is None with one worker."""

    pool: Any = None

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        pcm = [to_pcm16(resample(clip, rate, RATE).clip(-1, 1)).tobytes() for clip in clips]
        return self.pool.map(_decode, pcm, chunksize=1) if self.pool else [_decode(one) for one in pcm]

    def close(self) -> None:
        if self.pool:
            self.pool.terminate()


def load(
    target: str,
    *,
    workers: int = 0,
    lm: str = "",
    dictionary: str = "",
    fwdflat: bool = True,
    maxhmmpf: int = 0,
    maxwpf: int = 0,
) -> Recogniser:
    """`pocketsphinx`, or `pocketsphinx:<acoustic model folder>`; `workers` 0 is one process per core.

    `fwdflat` is the second pass; `maxhmmpf` and `maxwpf` bound the states and words of a frame, 0 is PocketSphinx's own
    bound. Without the second pass and with 3000 states and 5 words it is two to four times as fast, most so
    in noise.
    """
    need("pocketsphinx", "pocketsphinx", INSTALL)
    workers = workers or cores()
    given = {"hmm": target, "lm": lm, "dict": dictionary, "maxhmmpf": maxhmmpf, "maxwpf": maxwpf}
    settings: dict[str, Any] = {key: value for key, value in given.items() if value}
    if not fwdflat:
        settings["fwdflat"] = False
    if workers > 1:
        pool = multiprocessing.get_context("spawn").Pool(workers, _start, (settings,))
    else:
        pool = None
        _start(settings)
    return PocketSphinx(
        name=target or "pocketsphinx",
        revision=importlib.metadata.version("pocketsphinx"),
        options={**settings, "workers": workers},
        batch_size=4 * workers,
        pool=pool,
    )


def _start(settings: dict[str, Any]) -> None:
    global _decoder
    import pocketsphinx

    _decoder = pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", **settings)


def _decode(pcm: bytes) -> str:
    _decoder.reinit_feat()
    _decoder.start_utt()
    if pcm:
        _decoder.process_raw(pcm, full_utt=True)
    _decoder.end_utt()
    best = _decoder.hyp()
    return best.hypstr if best else ""
