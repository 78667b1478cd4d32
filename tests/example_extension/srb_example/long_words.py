"""A measure: how many of the words that were written have more than six letters, in per cent."""

from __future__ import annotations

from pathlib import Path

from speech_robust_bench.core.records import Record
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.scoring.measures import ConfigClips, Measure, PageTable, Setting, TableForm


class LongWords(Record, frozen=True, kw_only=True):
    """Words, and the share of long ones."""

    words: int
    share: float


def count(clips: ConfigClips) -> LongWords | None:
    """The long words of a config; None where nothing was written."""
    longest = int((clips.options.settings or {}).get("short_letters", 6))
    words = " ".join(clips.predictions.transcripts).split()
    if not words:
        return None
    return LongWords(words=len(words), share=100 * sum(len(word) > longest for word in words) / len(words))


def rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    """A row for each config."""
    found = {config: LONG_WORDS.of(entry) for config, entry in result.entries()}
    return [(config, str(record.words), f"{record.share:.1f}") for config, record in found.items() if record]


LONG_WORDS = Measure(
    "long_words",
    LongWords,
    count,
    settings={"short_letters": Setting("letters that a word may have and still be short (default: 6)", "N")},
    columns=lambda record: {"long_words": record.share},
    table=TableForm("long_words", "share of long words", ("config", "words", "long %"), rows),
    section=PageTable(
        "Long words",
        "Who writes long words?",
        ("words", "long %"),
        lambda entry, record: ((record.words, 0), (record.share, 1)),
    ),
)
