"""Transcribe a sample of a submission again: does the model that is named give the predictions that were sent?

The clips are drawn with a fresh seed that nobody knew before, and which is recorded with the result. Another machine or
library version may change a word here and there, so the two transcripts are compared by their word error rate. A
submission that was used live is streamed again in the same chunks: on the virtual clock a recogniser shows the same
words after the same audio on every machine, only not as quickly.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Prediction, Stream, Told, convert, parse_line, read_run_record
from speech_robust_bench.models.interface import Recogniser
from speech_robust_bench.models.transcriber import Transcriber, Transcription
from speech_robust_bench.push import parquet_predictions
from speech_robust_bench.scoring.scoring import align

MOST_DIFFERENCE = 5.0  # points of WER between the sent and the new transcripts
LEAST_SHOWN = 0.5  # of the clips with the same words: those in which they were shown after the same audio
Json = dict[str, Any]
Key = tuple[str, str]  # a config and a clip


@dataclass(frozen=True)
class Rerun:
    """How many of the clips gave the same words, and how far the transcripts are apart (`difference`, in points)."""

    spec: str
    revision: str | None
    seed: int
    clips: int
    same: int
    difference: float
    shown: int | None = None  # of a stream: clips with the same words, shown after the same audio
    slower: float | None = None  # of a stream: the time of the calls now over that which was sent

    @property
    def agrees(self) -> bool:
        if self.shown is not None and self.shown < LEAST_SHOWN * self.same:
            return False
        return self.difference <= MOST_DIFFERENCE

    def to_json(self) -> Json:
        """The outcome as a verified file keeps it."""
        return asdict(self)


def rerun(folder: str | Path, data: str | Path, spec: str, sample: int, seed: int | None = None) -> Rerun:
    """Transcribe `sample` clips of an accepted submission again; `data` is the built folder that it was made from."""
    from speech_robust_bench.builders.config_sources import open_data
    from speech_robust_bench.models.interface import open_model

    if Path(data).is_file():
        raise UserError(f"--data {data}: a rerun needs the audio; point to the built folder or ORG/srb")
    folder, place = Path(folder), open_data(str(data))
    sent = {(config, line.id): line for config in _configs(folder) for line in _lines(folder, config)}
    seed = secrets.randbits(63) if seed is None else seed
    chosen = random.Random(seed).sample(sorted(sent), min(sample, len(sent)))
    streams = {key: stream for key in chosen if (stream := sent[key].stream)}
    claimed = read_run_record(folder / "run.json").revision
    model = open_model(spec)
    try:
        if claimed and model.revision != claimed:
            raise UserError(f"{spec} is at revision {model.revision}, the submission was made with {claimed}")
        again = dict(_transcribe(place, _as_sent(model, streams), chosen))
        revision = model.revision
    finally:
        model.close()
    before = [sent[key].transcript for key in chosen]
    after = [again[key].text or "" for key in chosen]
    counts = align(before, after)
    same = {key for key, errors in zip(chosen, counts.errors, strict=True) if errors == 0}
    live = _live(streams, {key: convert(outcome.details, Told).stream for key, outcome in again.items()}, same)
    return Rerun(spec, revision, seed, len(chosen), len(same), round(counts.rate, 2), *live)


def _as_sent(model: Recogniser, streams: dict[Key, Stream]) -> Recogniser:
    """The model as the submission used it: on whole clips, or live in chunks of the same length."""
    if not streams:
        return model
    from speech_robust_bench.models.streaming.replay import StreamOptions
    from speech_robust_bench.models.streaming.streamed import streamed

    first = next(iter(streams.values()))
    return streamed(model, StreamOptions(first.chunk_ms, realtime=first.realtime))


def _live(sent: dict[Key, Stream], now: dict[Key, Stream | None], same: set[Key]) -> tuple[int | None, float | None]:
    """How many of the clips with the same words showed them after the same audio, and how the times compare."""
    pairs = [(key, sent[key], again) for key in sent if (again := now[key])]
    if not pairs or pairs[0][1].realtime:  # a server shows its words when it likes
        return None, None
    shown = sum(key in same and _shown(before) == _shown(after) for key, before, after in pairs)
    before_ms = sum(sum(before.took_ms) for _, before, _ in pairs)
    after_ms = sum(sum(after.took_ms) for _, _, after in pairs)
    return shown, round(after_ms / before_ms, 2) if before_ms else None


def _shown(stream: Stream) -> list[tuple[float, str, str]]:
    """What was shown, and after how much of the audio."""
    return [event[1:] for event in stream.events]


def _configs(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.iterdir() if path.suffix in (".jsonl", parquet_predictions.SUFFIX)})


def _lines(folder: Path, config: str) -> Iterator[Prediction]:
    packed = folder / f"{config}{parquet_predictions.SUFFIX}"
    lines = parquet_predictions.lines(packed, 10**9) if packed.exists() else (folder / f"{config}.jsonl").open("rb")
    yield from map(parse_line, lines)


def _transcribe(place: Any, model: Recogniser, chosen: list[Key]) -> Iterator[tuple[Key, Transcription]]:
    from speech_robust_bench.models.transcriber import read_batches

    transcriber = Transcriber(model)
    for name in sorted({config for config, _ in chosen}):
        config = place.config(name)
        wanted = {row.position for row in config.rows if (name, row.id) in chosen}
        for batch in read_batches(config, wanted, model.batch_size, None):
            for row, outcome in zip(batch.rows, transcriber.transcribe(batch), strict=True):
                yield (name, row.id), outcome
