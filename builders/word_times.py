"""Where the words of a config's clips lie: latencies and the word times of recognisers are compared with it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from speech_robust_bench.builders.configs import ClipRow, Config
from speech_robust_bench.builders.forced_alignment import LANGUAGE, align
from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Record, WordTime, read, to_json

WordTimes = dict[str, list[WordTime] | None]  # clip id -> where each of its words lies, or None if not known


class AlignedWords(Record, frozen=True, kw_only=True):
    """The file of word times of a clean config; `edition` is the hash of its content."""

    edition: str | None
    words: WordTimes


def word_times_of(
    config: Config, clean: Config, wanted: set[int], store: Path
) -> Callable[[Prediction], list[WordTime] | None] | None:
    """Where the words of a line of predictions lie, in seconds of its own audio; None for languages without a model.

    The clean clips are aligned once and kept in `store`. A scenario that stretches a clip moves its words in
    proportion, and only the line knows how long the clip has become; under all others they stay where they were.
    """
    if parse(config.name).language != LANGUAGE:
        return None
    ids = {row.id for row in config.rows if row.position in wanted}
    rows = {row.id: row for row in clean.rows if row.id in ids}
    known = _aligned(clean, list(rows.values()), store / f"{clean.name}.json")
    scenario = SCENARIOS.get(parse(config.name).scenario)

    def of_line(line: Prediction) -> list[WordTime] | None:
        words = known.get(line.id) if line.id in rows and line.text == rows[line.id].text else None
        if not words or (scenario and not scenario.keeps_start):  # nobody knows by how much the words moved
            return None
        factor = line.seconds / rows[line.id].duration if scenario and scenario.stretches else 1.0
        return [WordTime(word.text, *(round(t * factor, 3) for t in word[1:])) for word in words]

    return of_line


def _aligned(clean: Config, rows: list[ClipRow], path: Path) -> WordTimes:
    """The word times of clean clips: those in the file, and the missing ones, which are added to it."""
    edition = clean.about.content_sha256 or clean.about.rows_sha256
    known = _stored(path, edition)
    missing = {row.position for row in rows if row.id not in known}
    for window in clean.windows(missing):
        for row in window.rows:
            words = align(window.decode(row), row.text or "")
            known[row.id] = [WordTime(*word) for word in words] if words else None
    if missing:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, to_json(AlignedWords(edition=edition, words=known)))
    return known


def _stored(path: Path, edition: str | None) -> WordTimes:
    """What the file holds of this edition of the clips; a torn or foreign file holds nothing, and is made anew."""
    try:
        stored = read(path, AlignedWords)
    except (OSError, UserError):
        return {}
    return stored.words if stored.edition == edition else {}
