"""Errors that change the meaning: the semantic error, and the WER that accepts other ways to write the same words.

Semantic error: the distance in meaning between transcript and reference, by a given sentence-embedding model.

100 x (1 - cosine) of the two embeddings, the semantic distance of Kim et al. (Interspeech 2021), in points: 0 for the
same meaning, about 100 for unrelated ones. "The cats sat down" and "the bat sat down" for "the cat sat down" have one
wrong word each; only the second changes the meaning. Texts that are equal without case and punctuation have no error,
and a transcript without words has 100.

WER lenient accepts numbers in words and digits (`srb-numbers-1`), the equivalences of a file: optional disfluencies,
contractions, abbreviations, spellings (`data/conventions_en.csv`, made for this project; a user's file is added to it),
and compounds written apart or together. The errors of an utterance are the fewer of the strict and the lenient ones,
over the words of the strict reference, so WER lenient is never above WER strict.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.records import Settings
from speech_robust_bench.core.result_records import RunResults, ScoreValue
from speech_robust_bench.core.rows import TALKER_CHANGE, talkers
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.core.untrusted_files import csv_cells, read_text
from speech_robust_bench.models.interface import folder_revision
from speech_robust_bench.scoring.measures import ConfigClips, Measure, Setting, TableForm
from speech_robust_bench.scoring.score_options import ScoreOptions, ratio_of, score_value
from speech_robust_bench.scoring.scoring import Counts, align, check_texts, error_rate, normalise, versions
from speech_robust_bench.scoring.table1 import cell_text

Embed = Callable[[list[str]], np.ndarray]  # texts to one vector each
BATCH = 32
NO_MEANING = 100.0


def semantic_errors(references: Sequence[str], predictions: Sequence[str], embed: Embed) -> np.ndarray:
    """The semantic error of every utterance, in points.

    >>> by_length = lambda texts: np.array([[len(text), 1.0] for text in texts])
    >>> semantic_errors(["a cat", "Hello!", "so"], ["", "hello", "so so"], by_length).round(1).tolist()
    [100.0, 0.0, 3.5]
    """
    check_texts(references=references, predictions=predictions)
    said, written = ([normalise(text) for text in texts] for texts in (references, predictions))
    errors = np.array([0.0 if a == b else NO_MEANING for a, b in zip(said, written, strict=True)])
    told = [i for i, (a, b) in enumerate(zip(said, written, strict=True)) if a != b and a and b]
    if told:
        vectors = _unit(embed([*(references[i] for i in told), *(predictions[i] for i in told)]), 2 * len(told))
        errors[told] = 100 * (1 - np.sum(vectors[: len(told)] * vectors[len(told) :], axis=1))
    return np.clip(errors, 0, 200)


def _unit(vectors: np.ndarray, count: int) -> np.ndarray:
    vectors = np.asarray(vectors, dtype=float)
    if vectors.ndim != 2 or len(vectors) != count or not np.isfinite(vectors).all():
        raise UserError(f"the embedding model must return a finite vector for each of {count} texts")
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True)
class Embedder:
    """A sentence-embedding model in a folder, as sentence-transformers keeps them."""

    folder: Path
    tokenizer: Any
    model: Any
    first_token: bool  # whether the sentence is the first token's vector, or the mean of all

    @property
    def revision(self) -> str:
        """A short hash of its weights and settings."""
        return folder_revision(self.folder, ("*.safetensors", "*.json"))

    def __call__(self, texts: list[str]) -> np.ndarray:
        import torch

        vectors = []
        for start in range(0, len(texts), BATCH):
            batch = self.tokenizer(texts[start : start + BATCH], padding=True, truncation=True, return_tensors="pt")
            with torch.inference_mode():
                hidden = self.model(**batch).last_hidden_state
            mask = batch["attention_mask"].unsqueeze(-1).to(hidden.dtype)
            pooled = hidden[:, 0] if self.first_token else (hidden * mask).sum(1) / mask.sum(1)
            vectors.append(pooled.float().numpy())
        return np.concatenate(vectors)


def open_embedder(folder: str) -> Embedder:
    """The sentence-embedding model in a folder (config.json, weights, tokenizer)."""
    path = Path(folder)
    if not (path / "config.json").is_file():
        raise UserError(f"--embeddings {folder}: not a folder with a sentence-embedding model (config.json, weights)")
    try:
        from transformers import AutoModel, AutoTokenizer
    except ImportError:
        raise UserError(f"--embeddings needs transformers and torch: {install_hint('models')}") from None
    pooling = path / "1_Pooling" / "config.json"
    try:
        settings = json.loads(pooling.read_text("utf-8")) if pooling.is_file() else {}
        by_first_token = bool(settings.get("pooling_mode_cls_token"))
        where = {"local_files_only": True, "trust_remote_code": False}
        with closed_stdin():
            tokenizer = AutoTokenizer.from_pretrained(path, **where)
            model = AutoModel.from_pretrained(path, use_safetensors=True, **where).eval()
    except Exception as error:  # transformers raises what it likes for a damaged folder
        raise UserError(f"--embeddings {folder}: cannot be loaded ({' '.join(str(error).split())[:200]})") from None
    return Embedder(path, tokenizer, model, by_first_token)


@lru_cache(maxsize=1)
def _opened(folder: str) -> Embedder:
    return open_embedder(folder)


def _embedder(options: ScoreOptions) -> Embedder | None:
    folder = (options.settings or {}).get("embeddings")
    return _opened(folder) if folder else None


def _semantic_of_config(clips: ConfigClips) -> ScoreValue | None:
    """The mean semantic error, where an embedding model is given."""
    embedder = _embedder(clips.options)
    if embedder is None or not clips.counts:
        return None
    errors = semantic_errors(clips.predictions.references, clips.predictions.transcripts, embedder)
    mean = ratio_of(clips.counts, errors, np.ones(len(errors)), clips.options, scale=1.0)
    return score_value(mean.value, mean.interval(clips.options.level))


def _embedder_version(options: ScoreOptions) -> Settings | None:
    embedder = _embedder(options)
    return {"model": embedder.folder.name, "revision": embedder.revision} if embedder else None


SEMANTIC_ERROR = Measure(
    "semantic_error",
    ScoreValue,
    _semantic_of_config,
    settings={
        "embeddings": Setting(
            "folder of a sentence-embedding model; adds the semantic error, a distance in meaning", "FOLDER"
        )
    },
    versions=_embedder_version,
)


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


def _conventions_version(options: ScoreOptions) -> Settings | None:
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
    versions=_conventions_version,
    headline="lenient",
    table=TableForm(
        "lenient",
        "print strict and lenient WER, and the semantic error",
        ("config", "WER strict", "WER lenient", "semantic error"),
        _table_rows,
        "these results have no WER lenient; score them again with `srb score`",
    ),
)
