"""`srb table --streaming`: one row per config, accuracy beside latency and stability."""

from __future__ import annotations

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.result_records import RunResults, ScoreValue, Streaming

# head, where in `streaming`, which quantile, unit factor and digits; narrow enough for a terminal of 80 columns
COLUMNS = (
    ("first\ns", "first_word_s", "median", 1, 2),
    ("settle\ns", "settle_s", "median", 1, 2),
    ("p95\ns", "settle_s", "p95", 1, 2),
    ("end\ns", "endpoint_s", "median", 1, 2),
    ("cut\n%", "early_cutoffs", None, 100, 0),
    ("churn\n%", "churn", None, 100, 0),
    ("late\n%", "late_chunks", None, 100, 0),
    ("RTF\n", "rtf", None, 1, 2),
)
LEGEND = """\
first, settle, end: median time until any word is shown, until a word no longer changes, until the final transcript
p95: 95th percentile of settle; cut: segments that ended before the last word; churn: words taken back per final word
late: chunks finished after the next one arrived; RTF: processing time / audio time"""
HEADS = ("config\n", "WER\n%", *(column[0] for column in COLUMNS))


def stream_rows(result: RunResults) -> list[list[str]]:
    """The cells of every config of a run that was streamed, as text; a measure that a config does not have is empty."""
    rows = [
        [config, _score(getattr(entry, "wer", None)), *(_cell(entry.streaming, *column[1:]) for column in COLUMNS)]
        for config, entry in result.entries()
        if entry.streaming
    ]
    if not rows:
        raise UserError(f"{result.model} was not streamed; srb run --stream does")
    return rows


def _score(score: ScoreValue | None) -> str:
    return f"{score.value:.1f}" if score else ""


def _cell(measures: Streaming, name: str, quantile: str | None, factor: float, digits: int) -> str:
    measure = measures.figure(name, quantile)
    return f"{factor * measure.value:.{digits}f}" if measure else ""
