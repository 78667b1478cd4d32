"""Transcribe a sample of a submission again: does the model that is named give the predictions that were sent?

The clips are drawn with a fresh seed that nobody knew before, and which is recorded with the result. Another machine or
library version may change a word here and there, so the two transcripts are compared by their word error rate.
"""

from __future__ import annotations

import json
import random
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from srb.core.errors import UserError
from srb.metrics.scoring import align
from srb.push import parquet_predictions

MOST_DIFFERENCE = 5.0  # points of WER between the sent and the new transcripts
Json = dict[str, Any]


@dataclass(frozen=True)
class Rerun:
    """How many of the clips gave the same words, and how far the transcripts are apart (`difference`, in points)."""

    spec: str
    revision: str | None
    seed: int
    clips: int
    same: int
    difference: float

    @property
    def agrees(self) -> bool:
        return self.difference <= MOST_DIFFERENCE

    def to_json(self) -> Json:
        """For the verified file."""
        return asdict(self)


def rerun(folder: str | Path, data: str | Path, spec: str, sample: int, seed: int | None = None) -> Rerun:
    """Transcribe `sample` clips of an accepted submission again; `data` is the built folder that it was made from."""
    from srb.models.config_sources import open_data
    from srb.models.interface import open_model

    if Path(data).is_file():
        raise UserError(f"--data {data}: a rerun needs the audio; point to the built folder or ORG/srb")
    folder, place = Path(folder), open_data(str(data))
    sent = {(config, line["id"]): line for config in _configs(folder) for line in _lines(folder, config)}
    seed = secrets.randbits(63) if seed is None else seed
    chosen = random.Random(seed).sample(sorted(sent), min(sample, len(sent)))
    claimed = json.loads((folder / "run.json").read_text("utf-8")).get("revision")
    model = open_model(spec)
    try:
        if claimed and model.revision != claimed:
            raise UserError(f"{spec} is at revision {model.revision}, the submission was made with {claimed}")
        again = dict(_transcribe(place, model, chosen))
        revision = model.revision
    finally:
        model.close()
    before = [sent[key]["pred_text"] or "" for key in chosen]
    after = [again[key] or "" for key in chosen]
    counts = align(before, after)
    return Rerun(spec, revision, seed, len(chosen), int((counts.errors == 0).sum()), round(counts.rate, 2))


def _configs(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.iterdir() if path.suffix in (".jsonl", parquet_predictions.SUFFIX)})


def _lines(folder: Path, config: str) -> Iterator[Json]:
    packed = folder / f"{config}{parquet_predictions.SUFFIX}"
    lines = parquet_predictions.lines(packed, 10**9) if packed.exists() else (folder / f"{config}.jsonl").open("rb")
    yield from map(json.loads, lines)


def _transcribe(place: Any, model: Any, chosen: list[tuple[str, str]]) -> Iterator[tuple[tuple[str, str], str | None]]:
    from srb.models.batches import read_batches
    from srb.models.transcriber import Transcriber

    transcriber = Transcriber(model)
    for name in sorted({config for config, _ in chosen}):
        config = place.config(name)
        wanted = {row.position for row in config.rows if (name, row.id) in chosen}
        for batch in read_batches(config, wanted, model.batch_size, None):
            for row, outcome in zip(batch.rows, transcriber.transcribe(batch), strict=True):
                yield (name, row.id), outcome.text
