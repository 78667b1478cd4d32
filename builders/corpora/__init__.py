"""Corpora: published layouts, Hugging Face datasets, folders and the built-in demo, all as one kind of `Utterance`."""

from speech_robust_bench.builders.corpora.base import Corpus, CorpusInfo, FileAudio, Problem, Utterance
from speech_robust_bench.builders.corpora.registry import (
    CORPORA,
    RECORDED,
    Recorded,
    as_sources,
    dev_splits,
    open_corpus,
    parse_flags,
)

__all__ = [
    "CORPORA",
    "RECORDED",
    "Corpus",
    "CorpusInfo",
    "FileAudio",
    "Problem",
    "Recorded",
    "Utterance",
    "as_sources",
    "dev_splits",
    "open_corpus",
    "parse_flags",
]
