"""Semantic error: the distance in meaning between transcript and reference, by a given sentence-embedding model.

100 x (1 - cosine) of the two embeddings, the semantic distance of Kim et al. (Interspeech 2021), in points: 0 for the
same meaning, about 100 for unrelated ones. "The cats sat down" and "the bat sat down" for "the cat sat down" have one
wrong word each; only the second changes the meaning. Texts that are equal without case and punctuation have no error,
and a transcript without words has 100.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.records import Settings
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.models.interface import folder_revision
from speech_robust_bench.scoring.json_values import score_value
from speech_robust_bench.scoring.measures import ConfigClips, Measure, Setting
from speech_robust_bench.scoring.score_options import ScoreOptions, ratio_of
from speech_robust_bench.scoring.scoring import check_texts, normalise

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


def _of_config(clips: ConfigClips) -> ScoreValue | None:
    """The mean semantic error, where an embedding model is given."""
    embedder = _embedder(clips.options)
    if embedder is None or not clips.counts:
        return None
    errors = semantic_errors(clips.predictions.references, clips.predictions.transcripts, embedder)
    mean = ratio_of(clips.counts, errors, np.ones(len(errors)), clips.options, scale=1.0)
    return score_value(mean.value, mean.interval(clips.options.level))


def _versions(options: ScoreOptions) -> Settings | None:
    embedder = _embedder(options)
    return {"model": embedder.folder.name, "revision": embedder.revision} if embedder else None


SEMANTIC_ERROR = Measure(
    "semantic_error",
    ScoreValue,
    _of_config,
    settings={
        "embeddings": Setting(
            "folder of a sentence-embedding model; adds the semantic error, a distance in meaning", "FOLDER"
        )
    },
    versions=_versions,
)
