"""WER lenient: different ways to write the same words are not errors.

It accepts numbers in words and digits (`srb-numbers-1`), the equivalences of a file: optional disfluencies,
contractions, abbreviations, spellings (`data/conventions_en.csv`, made for this project; a user's file is added to it),
and compounds written apart or together. The errors of an utterance are the fewer of the strict and the lenient ones,
over the words of the strict reference, so WER lenient is never above WER strict.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path

import numpy as np

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Settings
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.core.rows import TALKER_CHANGE, talkers
from speech_robust_bench.core.untrusted_files import csv_cells, read_text
from speech_robust_bench.extensions.text_metrics.semantic import SEMANTIC_ERROR
from speech_robust_bench.scoring.json_values import score_value
from speech_robust_bench.scoring.measures import ConfigClips, Measure, Setting, TableForm
from speech_robust_bench.scoring.score_options import ScoreOptions, ratio_of
from speech_robust_bench.scoring.scoring import Counts, align, error_rate, normalise, versions
from speech_robust_bench.scoring.table1 import cell_text

NORMALISER = "srb-numbers-1"
HEAD = ["kind", "written", "counted_as"]
MOST_BYTES = 5_000_000
SHORTEST = 3  # letters of the beginning of a word that has another spelling
_DATA = Path(__file__).parent / "data"


@dataclass(frozen=True)
class Conventions:
    """Equivalences: phrases and the phrases they count as, beginnings of words and their other spelling."""

    phrases: dict[tuple[str, ...], tuple[str, ...]]
    beginnings: dict[str, str]

    @cached_property
    def longest(self) -> dict[str, int]:
        """The number of words of the longest phrase, by its first word."""
        return {first: max(len(p) for p in self.phrases if p[0] == first) for first in {p[0] for p in self.phrases}}

    @cached_property
    def stems(self) -> frozenset[str]:
        """The first letters of the beginnings; a word with other letters has none of them."""
        return frozenset(beginning[:SHORTEST] for beginning in self.beginnings)

    def apply(self, text: str) -> list[str]:
        """The words of a normalised text in the form in which they are counted; the longest phrase first."""
        words, at = text.split(), 0
        if self.longest.keys().isdisjoint(words):
            return [self._spelling(word) for word in words]
        out: list[str] = []
        while at < len(words):
            for length in range(min(self.longest.get(words[at], 0), len(words) - at), 0, -1):
                known = self.phrases.get(tuple(words[at : at + length]))
                if known is not None:
                    out += known
                    at += length
                    break
            else:
                out.append(self._spelling(words[at]))
                at += 1
        return out

    def _spelling(self, word: str) -> str:
        if word[:SHORTEST] not in self.stems:
            return word
        for length in range(len(word), SHORTEST - 1, -1):
            if (form := self.beginnings.get(word[:length])) is not None:
                return form + word[length:]
        return word


@lru_cache(maxsize=16)
def load(language: str | None, own: str | None = None) -> Conventions:
    """The conventions of a language, and those of a user's file, whose lines replace the same ones of ours."""
    base = re.split("[-_]", (language or "en").lower())[0]
    shipped = _DATA / f"conventions_{base}.csv"
    texts = [path.read_text("utf-8") for path in (shipped,) if path.is_file()]
    texts += [read_text(own, MOST_BYTES)] if own else []
    phrases: dict[tuple[str, ...], tuple[str, ...]] = {}
    beginnings: dict[str, str] = {}
    for number, text in enumerate(texts):
        for written, form in _rows(text, str(own) if number == len(texts) - 1 and own else shipped.name):
            if written.endswith("*"):
                beginnings[normalise(written[:-1], language=base)] = normalise(form.removesuffix("*"), language=base)
            else:
                key = tuple(normalise(written, NORMALISER, base).split())
                phrases[key] = tuple(normalise(form, NORMALISER, base).split())
    return Conventions({phrase: form for phrase, form in phrases.items() if phrase}, beginnings)


def file_digest(path: str) -> str:
    """The hash of a user's file."""
    return hashlib.sha256(read_text(path, MOST_BYTES).encode()).hexdigest()


def _rows(text: str, where: str) -> list[tuple[str, str]]:
    rows = csv_cells(text, where)
    if not rows or [cell.strip() for cell in rows[0][1]] != HEAD:
        raise UserError(f"{where}: its first line must be {','.join(HEAD)}")
    pairs = []
    for number, row in rows[1:]:
        if not row:
            continue
        if len(row) != len(HEAD) or not row[1].strip():
            raise UserError(f"{where}, line {number}: needs a kind, what is written, and what it is counted as")
        written, form = row[1].strip(), row[2].strip()
        if written.endswith("*") != form.endswith("*") or (written.endswith("*") and " " in written):
            raise UserError(f"{where}, line {number}: a * stands at the end of both words, or of none")
        pairs.append((written, form))
    return pairs


def lenient_errors(
    strict: Counts,
    references: Sequence[str],
    predictions: Sequence[str],
    language: str | None = None,
    own: str | None = None,
) -> np.ndarray:
    """The errors of every utterance, without differences in writing."""
    errors = strict.errors.copy()
    wrong = np.flatnonzero(errors)
    said, written = [], []
    for index in map(int, wrong):
        reference, prediction = (
            _counted_as(texts[index], language, own).split() for texts in (references, predictions)
        )
        said.append(" ".join(reference))
        written.append(" ".join(_compounds_as_in(reference, prediction)))
    lenient = align(said, written, normaliser="none", unit="word").errors
    errors[wrong] = np.minimum(errors[wrong], lenient)
    return errors


@lru_cache(maxsize=1 << 16)  # the same texts come back with every config of a corpus
def _counted_as(text: str, language: str | None, own: str | None) -> str:
    """The words that a text counts as, with the mark between two talkers."""
    known = load(language, own)
    first, second = (" ".join(known.apply(normalise(part, NORMALISER, language))) for part in talkers(text))
    return f"{first} {TALKER_CHANGE} {second}" if second else first


def _compounds_as_in(reference: Sequence[str], prediction: Sequence[str]) -> list[str]:
    """The prediction with its compounds apart or together, as the reference has them."""
    singles = set(reference)
    apart = {a + b: (a, b) for a, b in pairwise(reference)}
    out: list[str] = []
    at = 0
    while at < len(prediction):
        word = prediction[at]
        joined = word + prediction[at + 1] if at + 1 < len(prediction) else ""
        if joined in singles and not {word, prediction[at + 1]} <= singles:
            out.append(joined)
            at += 2
            continue
        out += apart[word] if word in apart and word not in singles else [word]
        at += 1
    return out


def lenient_wer(
    references: Sequence[str],
    predictions: Sequence[str],
    *,
    normaliser: str = "srb-paper-1",
    language: str | None = "en",
    conventions: str | None = None,
) -> dict[str, float]:
    """WER strict and WER lenient of some transcripts, in points; `conventions` is a CSV file with more lines.

    >>> lenient_wer(["i do not like the colour of room 847"], ["I don't like the color of room eight four seven, um"])
    {'wer': 77.77777777777777, 'wer_lenient': 0.0}
    """
    strict = align(references, predictions, normaliser=normaliser, unit="word", language=language)
    errors = lenient_errors(strict, references, predictions, language, conventions)
    return {"wer": strict.rate, "wer_lenient": float(error_rate(errors.sum(), strict.lengths.sum()))}


def _of_config(clips: ConfigClips) -> ScoreValue | None:
    """WER lenient beside the strict one, where words are counted."""
    options, predictions = clips.options, clips.predictions
    if not clips.counts or versions(options.normaliser, options.unit, clips.language)["unit"] != "word":
        return None
    counts = clips.counts.counts
    errors = lenient_errors(counts, predictions.references, predictions.transcripts, clips.language, _own(options))
    rate = ratio_of(clips.counts, errors, counts.lengths, options)
    return score_value(rate.value, rate.interval(options.level))


def _own(options: ScoreOptions) -> str | None:
    return (options.settings or {}).get("conventions")


def _versions(options: ScoreOptions) -> Settings | None:
    own = _own(options)
    return {"conventions": Path(own).name, "sha256": file_digest(own)} if own else None


def _table_rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    return [
        (config, *(cell_text(score, True) for score in (entry.wer, lenient, SEMANTIC_ERROR.of(entry))))
        for config, entry in result.configs.items()
        if (lenient := WER_LENIENT.of(entry))
    ]


WER_LENIENT = Measure(
    "wer_lenient",
    ScoreValue,
    _of_config,
    settings={
        "conventions": Setting(
            "CSV file with more spellings to accept in the lenient WER (docs/concepts/normalisation.md)", "CSV"
        )
    },
    versions=_versions,
    headline="lenient",
    table=TableForm(
        "lenient",
        "print strict and lenient WER, and the semantic error",
        ("config", "WER strict", "WER lenient", "semantic error"),
        _table_rows,
        "these results have no WER lenient; score them again with `srb score`",
    ),
)
