"""Word by word: what was said, what was written instead, which words and which clips fare worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.scoring.report_card import AlignedRun
from speech_robust_bench.scoring.scoring import normalise
from speech_robust_bench.scoring.word_alignment import DELETION, HIT, INSERTION, SUBSTITUTION, align_words

Words = Sequence[str]
_EDITS = {HIT: "equal", SUBSTITUTION: "replace", DELETION: "delete", INSERTION: "insert"}


@dataclass(frozen=True)
class Edit:
    """A piece of an alignment: `equal`, `replace`, `delete` or `insert`, with the words on either side."""

    kind: str
    said: tuple[str, ...]
    hypothesis: tuple[str, ...]


def diff(said: Words, hypothesis: Words) -> list[Edit]:
    """The alignment of two transcripts.

    >>> [(e.kind, e.said, e.hypothesis) for e in diff("a b c".split(), "a x c d".split())]
    [('equal', ('a',), ('a',)), ('replace', ('b',), ('x',)), ('equal', ('c',), ('c',)), ('insert', (), ('d',))]
    """
    edits = []
    for kind, run in groupby(align_words(said, hypothesis), key=lambda step: step.kind):
        steps = list(run)
        ours = tuple(said[step.reference] for step in steps if step.reference is not None)
        theirs = tuple(hypothesis[step.hypothesis] for step in steps if step.hypothesis is not None)
        edits.append(Edit(_EDITS[kind], ours, theirs))
    return edits


@dataclass(frozen=True)
class WordTally:
    """How one word of the references fared."""

    word: str
    said: int
    missed: int
    clean_said: int
    clean_missed: int
    recognised_as: Counter[str]


@dataclass(frozen=True)
class ComparedClip:
    """One clip of a hard config beside its clean original."""

    config: str
    id: str
    edits: list[Edit]
    clean_edits: list[Edit] | None
    errors: int
    clean_errors: int
    words: int
    failed: bool


@dataclass(frozen=True)
class Study:
    """What the word-level sections show of one model."""

    words: list[WordTally]
    inserted: list[tuple[str, int]]
    clips: list[ComparedClip]


def study(aligned_run: AlignedRun, most_words: int = 12, most_clips: int = 6) -> Study:
    """The worst words and clips of one language, which is written with spaces."""
    spelled = aligned_run.vocabulary.words
    return Study(
        _worst_words(aligned_run, spelled, most_words),
        _inserted(aligned_run, spelled, most_words),
        _worst_clips(aligned_run, most_clips),
    )


def _worst_words(aligned_run: AlignedRun, spelled: Sequence[str], most: int) -> list[WordTally]:
    """The words that were missed most often beyond what their rate on clean speech would give."""
    size = len(spelled)
    said, missed, clean_said, clean_missed = np.zeros((4, size), dtype=np.int64)
    confused = []
    for predictions, alignment in aligned_run.speech:
        words, became = alignment.reference.words, alignment.became
        wrong = became != words
        (clean_said if predictions.clean else said)[:] += np.bincount(words, minlength=size)
        (clean_missed if predictions.clean else missed)[:] += np.bincount(words[wrong], minlength=size)
        if not predictions.clean:
            confused.append(np.stack([words, became])[:, wrong & (became >= 0)])
    excess = missed - said * clean_missed / np.maximum(clean_said, 1)
    ranked = sorted(np.flatnonzero(missed > 1).tolist(), key=lambda word: (-excess[word], spelled[word]))
    pairs = np.concatenate(confused, axis=1) if confused else np.zeros((2, 0), dtype=np.int64)
    return [
        WordTally(
            spelled[word],
            said=int(said[word]),
            missed=int(missed[word]),
            clean_said=int(clean_said[word]),
            clean_missed=int(clean_missed[word]),
            recognised_as=Counter(spelled[other] for other in pairs[1, pairs[0] == word]),
        )
        for word in ranked[:most]
    ]


def _inserted(aligned_run: AlignedRun, spelled: Sequence[str], most: int) -> list[tuple[str, int]]:
    """The words that were written in hard conditions and stand for nothing, the most frequent first."""
    inserted: Counter[str] = Counter()
    for predictions, alignment in aligned_run.speech:
        if not predictions.clean:
            inserted.update(spelled[word] for word in alignment.hypothesis.words[alignment.inserted])
    return inserted.most_common(most)


def _worst_clips(aligned_run: AlignedRun, most: int) -> list[ComparedClip]:
    """The clips that lost most against their originals, one of each scenario and of each source clip."""
    normaliser = aligned_run.vocabulary.normaliser
    originals = {
        predictions.config: dict(
            zip(
                predictions.ids,
                zip(predictions.lines, alignment.counts.errors.tolist(), strict=True),
                strict=True,
            )
        )
        for predictions, alignment in aligned_run.speech
        if predictions.clean
    }
    ranked = []
    for predictions, alignment in aligned_run.speech:
        if predictions.clean:
            continue
        known = originals.get(predictions.entry.source or "", {})
        counts = alignment.counts
        before = np.array([known.get(clip, (None, 0))[1] for clip in predictions.ids])
        loss = (counts.errors - before) / np.maximum(counts.lengths, 1)
        for place in np.argsort(-loss, kind="stable")[:most].tolist():  # so many at most have a clip that is taken
            line, errors, words = predictions.lines[place], int(counts.errors[place]), int(counts.lengths[place])
            if loss[place] > 0:
                original = known.get(line.id, (None, 0))
                ranked.append((-loss[place], predictions.config, line.id, errors, words, line, original))
    worst: list[ComparedClip] = []
    scenarios: set[str] = set()
    for _, config, clip, errors, words, line, (clean, clean_errors) in sorted(ranked, key=lambda entry: entry[:3]):
        scenario = parse(config).scenario
        if len(worst) < most and scenario not in scenarios and clip not in {chosen.id for chosen in worst}:
            scenarios.add(scenario)
            edits, clean_edits = _edits(line, normaliser), _edits(clean, normaliser) if clean else None
            failed = line.pred_text is None
            worst.append(ComparedClip(config, clip, edits, clean_edits, errors, clean_errors, words, failed))
    return worst


def _edits(line: Prediction, normaliser: str) -> list[Edit]:
    return diff(normalise(line.text or "", normaliser).split(), normalise(line.transcript, normaliser).split())
