"""PocketSphinx 5 with the US English model that its package carries: a classical GMM-HMM recogniser, in processes.

It decodes on one core and holds the interpreter's lock, so a batch is spread over `workers` processes. Each utterance
starts from a fresh cepstral mean: otherwise the running estimate of the earlier clips would leak into this one.
"""

from __future__ import annotations

import importlib.metadata
import multiprocessing
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import islice
from typing import Any

from speech_robust_bench.core.audio import RATE, resample, to_pcm16
from speech_robust_bench.core.engines import cores, follow_parent
from speech_robust_bench.core.errors import install_hint
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.interface import (
    Clip,
    Described,
    Event,
    Recogniser,
    need,
    with_alternatives,
    with_confidences,
)

INSTALL = install_hint("demo")
FRAMES_PER_S = 100
LONGEST_S = 60.0  # of a live utterance: the search remembers all of it
PATHS_PER_TEXT = 200  # of the lattice: most differ in fillers and pronunciations alone
_decoder: Any = None  # of this process


@dataclass
class PocketSphinx(Described):
    """The bundled model; `pool` is None with one worker."""

    pool: Any = None
    settings: Settings = field(default_factory=dict)
    nbest: int = 0

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        pcm = [to_pcm16(resample(clip, rate, RATE).clip(-1, 1)).tobytes() for clip in clips]
        decode = partial(_decode, nbest=self.nbest)
        return self.pool.map(decode, pcm, chunksize=1) if self.pool else [decode(clip) for clip in pcm]

    def stream(self, rate: int, language: str | None) -> PocketSphinxSession:
        return PocketSphinxSession(rate, self._live_decoder)

    @cached_property
    def _live_decoder(self) -> Any:
        return _open_decoder(self.settings)

    def close(self) -> None:
        if self.pool:
            self.pool.terminate()


class PocketSphinxSession:
    """PocketSphinx live: its own endpointer decides where speech begins and ends, the decoder gets the speech."""

    def __init__(self, rate: int, decoder: Any) -> None:
        import pocketsphinx

        self.rate = rate
        self._decoder = decoder
        self._decoder.reinit_feat()
        self._endpointer = pocketsphinx.Endpointer(sample_rate=RATE)
        self._rest = b""
        self._in_speech = False
        self._speech_s = 0.0  # of the utterance so far
        self._shown = ""

    def accept(self, chunk: Clip) -> list[Event]:
        self._rest += to_pcm16(resample(chunk, self.rate, RATE).clip(-1, 1)).tobytes()
        size = self._endpointer.frame_bytes
        events: list[Event] = []
        while len(self._rest) >= size:
            frame, self._rest = self._rest[:size], self._rest[size:]
            events += self._decode(self._endpointer.process(frame))
        return [*events, *self._partial()]

    def finish(self) -> list[Event]:
        return self._decode(self._endpointer.end_stream(self._rest or bytes(2)), ended=True)  # it takes no empty frame

    def _decode(self, speech: bytes | None, *, ended: bool = False) -> list[Event]:
        if speech and not self._in_speech:
            self._decoder.start_utt()
            self._in_speech, self._speech_s, self._shown = True, 0.0, ""
        if speech:
            self._decoder.process_raw(speech, False, False)
            self._speech_s += len(speech) / 2 / RATE
        goes_on = self._endpointer.in_speech and not ended
        if not self._in_speech or (goes_on and self._speech_s < LONGEST_S):
            return []
        self._decoder.end_utt()
        self._in_speech = False
        return [Event(self._hypothesis(), final=True, endpoint=not (goes_on or ended))]

    def _partial(self) -> list[Event]:
        text = self._hypothesis() if self._in_speech else ""
        if not self._in_speech or text == self._shown:
            return []
        self._shown = text
        return [Event(text)]

    def _hypothesis(self) -> str:
        best = self._decoder.hyp()
        return best.hypstr if best else ""


def load(
    target: str,
    *,
    workers: int = 0,
    lm: str = "",
    dictionary: str = "",
    fwdflat: bool = True,
    maxhmmpf: int = 0,
    maxwpf: int = 0,
    nbest: int = 0,
) -> Recogniser:
    """`pocketsphinx`, or `pocketsphinx:<acoustic model folder>`; `workers` 0 is one process per core.

    `fwdflat` is the second pass; `maxhmmpf` and `maxwpf` bound the states and words of a frame, 0 is PocketSphinx's own
    bound. Without the second pass and with 3000 states and 5 words it is two to four times as fast, most so
    in noise. `nbest` stores that many transcripts of each clip.
    """
    need("pocketsphinx", "pocketsphinx", INSTALL)
    workers = workers or cores()
    given = {"hmm": target, "lm": lm, "dict": dictionary, "maxhmmpf": maxhmmpf, "maxwpf": maxwpf}
    settings: Settings = {key: value for key, value in given.items() if value}
    if not fwdflat:
        settings["fwdflat"] = False
    if workers > 1:
        pool = multiprocessing.get_context("spawn").Pool(workers, _start_worker, (settings,))
    else:
        pool = None
        _start(settings)
    return PocketSphinx(
        name=target or "pocketsphinx",
        revision=importlib.metadata.version("pocketsphinx"),
        options={**settings, "workers": workers, **({"nbest": nbest} if nbest else {})},
        batch_size=4 * workers,
        pool=pool,
        settings=settings,
        nbest=nbest,
    )


def _start_worker(settings: Settings) -> None:
    follow_parent()
    _start(settings)


def _start(settings: Settings) -> None:
    global _decoder
    _decoder = _open_decoder(settings)


def _open_decoder(settings: Settings) -> Any:
    import pocketsphinx

    return pocketsphinx.Decoder(samprate=RATE, loglevel="FATAL", **settings)


def _decode(pcm: bytes, nbest: int = 0) -> str:
    _decoder.reinit_feat()
    _decoder.start_utt()
    if pcm:
        _decoder.process_raw(pcm, full_utt=True)
    _decoder.end_utt()
    best = _decoder.hyp()
    if not best:
        return ""
    # The posterior of each word in the lattice. Fillers (<sil>, [NOISE]) are not words; "a(2)" is "a" said another way.
    transcript = with_confidences(
        best.hypstr,
        [
            (
                part.word.partition("(")[0],
                part.prob,
                part.start_frame / FRAMES_PER_S,
                (part.end_frame + 1) / FRAMES_PER_S,
            )
            for part in _decoder.seg()
            if part.word[0] not in "<["
        ],
    )
    return with_alternatives([transcript, *_others(nbest, transcript)]) if nbest else transcript


def _others(nbest: int, best: str) -> list[str]:
    """The texts of the best paths through the lattice that differ from the best one in words."""
    paths = (path.hypstr for path in islice(_decoder.nbest() or (), nbest * PATHS_PER_TEXT))
    return list(islice(dict.fromkeys(text for text in paths if text and text != best), nbest - 1))
