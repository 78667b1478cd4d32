"""The system report card (Aksenova et al., Conclusion): one page on one recogniser in one language, as plain data.

It reads each config of a run once: which kinds of words are missed, what is invented, for which clips and speakers it
is worse, and how unequal the groups are. `clean` is clean speech, `hard` all other configs with speech together.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from speech_robust_bench.core.categories import OVERLAP, REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.diagnosis import clip_conditions, hallucination, word_kinds
from speech_robust_bench.diagnosis.disparity import lwerr_table
from speech_robust_bench.diagnosis.word_ids import Alignment, Coded, Vocabulary, align
from speech_robust_bench.scoring.groups import disparity, with_intersections
from speech_robust_bench.scoring.runs import Predictions, Run, group_columns
from speech_robust_bench.scoring.scoring import Counts

Json = dict[str, Any]
SCHEMA = 1
MINIMUM = 10  # clips that a group must have to be compared
EXAMPLES = 5


@dataclass
class _Part:
    """What is known of clean speech, or of hard speech."""

    counts: list[Counts] = field(default_factory=list)
    lines: list[Prediction] = field(default_factory=list)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    bursts: int = 0
    burst_words: int = 0
    loops: int = 0
    examples: list[Json] = field(default_factory=list)

    def together(self) -> Counts:
        names = ("hits", "substitutions", "deletions", "insertions")
        none = np.zeros(0, dtype=np.int64)
        return Counts(*(np.concatenate([none, *(getattr(c, name) for c in self.counts)]) for name in names))


@dataclass(frozen=True)
class AlignedRun:
    """All that a run wrote in one language, in one vocabulary; what has speech is aligned with what was said."""

    run: Run
    language: str
    vocabulary: Vocabulary
    speech: list[tuple[Predictions, Alignment]]
    reject: list[tuple[Predictions, Coded]]
    untranscribed: list[tuple[Predictions, Coded]] = field(default_factory=list)  # nobody has said what was said


def aligned(run: Run, language: str, normaliser: str = "srb-paper-1") -> AlignedRun:
    """Read the configs of a language, each once."""
    run.refuse_anchors()
    aligned_run = AlignedRun(run, language, Vocabulary.of(language, normaliser), [], [])
    encode = aligned_run.vocabulary.encode
    texts: list[str] = []
    said = encode(texts)
    for config in (c for c in run.configs if parse(c).language == language):
        whole = run.read(config)
        if whole.entry.category == REJECT:
            aligned_run.reject.append((whole, encode(whole.transcripts)))
            continue
        if whole.entry.category == OVERLAP:  # which talker a word belongs to is not told
            continue
        if (unknown := whole.untranscribed).lines:
            aligned_run.untranscribed.append((unknown, encode(unknown.transcripts)))
        read = whole.transcribed
        hypothesis = encode(read.transcripts)
        if read.lines:
            if read.references != texts:  # mostly those of the config before
                texts = read.references
                said = encode(texts)
            aligned_run.speech.append((read, align(said, hypothesis)))
    if not aligned_run.speech and not aligned_run.untranscribed:
        raise UserError(f"{run.folder} has no config with speech in '{language}'")
    return aligned_run


def card(
    aligned_run: AlignedRun,
    *,
    minimum: int = MINIMUM,
    frequency: Mapping[str, int] | None = None,
    names: set[str] | None = None,
    replicates: int = 200,
) -> Json:
    """The card of a run in one language."""
    said = {
        (predictions.config.split("_")[0], line.id): line.text or ""
        for predictions, _ in aligned_run.speech
        for line in predictions.lines
    }
    texts = list(said.values())
    coded = aligned_run.vocabulary.encode(texts)
    spelled = aligned_run.vocabulary.words
    if frequency is None:
        counted = np.bincount(coded.words, minlength=len(spelled))
        frequency = {word: int(n) for word, n in zip(spelled, counted, strict=True) if n}
    kinds = word_kinds.kinds(spelled, texts, aligned_run.language, frequency, names)
    parts = {"clean": _Part(), "hard": _Part()}
    for predictions, alignment in aligned_run.speech:
        _add(parts["clean" if predictions.clean else "hard"], predictions, alignment, kinds, spelled)
    return {
        "schema": SCHEMA,
        "model": aligned_run.run.model,
        "language": aligned_run.language,
        "unit": aligned_run.vocabulary.unit,
        "normaliser": aligned_run.vocabulary.normaliser,
        "configs": {"clean": len(parts["clean"].counts), "speech": len(aligned_run.speech)},
        **{name: _part(part, minimum) for name, part in parts.items() if part.counts},
        "unknown": dict(kinds.unknown),
        "reject": _reject(aligned_run.reject, spelled),
        **({"untranscribed": _reject(aligned_run.untranscribed, spelled)} if aligned_run.untranscribed else {}),
        "lwerr": lwerr_table(
            ((predictions, alignment.counts) for predictions, alignment in aligned_run.speech), replicates=replicates
        ),
    }


def _add(
    part: _Part,
    read: Predictions,
    alignment: Alignment,
    kinds: word_kinds.Kinds,
    spelled: Sequence[str],
) -> None:
    part.counts.append(alignment.counts)
    part.lines += read.lines
    for kind, (said, missed) in word_kinds.missed(alignment, kinds).items():
        part.kinds[kind, "said"] += said
        part.kinds[kind, "missed"] += missed
    bursts, loops = hallucination.bursts(alignment), hallucination.invented_loops(alignment)
    part.bursts += len(bursts)
    part.burst_words += sum(span.length for span in bursts)
    part.loops += len(loops)
    for name, spans in (("loop", loops), ("burst", bursts)):
        for span in sorted(spans, key=lambda s: -s.length)[:EXAMPLES]:
            first = int(alignment.hypothesis.starts[span.clip]) + span.start
            text = " ".join(spelled[number] for number in alignment.hypothesis.words[first : first + span.length])
            entry = {"kind": name, "config": read.config, "id": read.lines[span.clip].id, "words": span.length}
            part.examples.append({**entry, "period": span.period or None, "text": text})


def _part(part: _Part, minimum: int) -> Json:
    counts = part.together()
    minutes = sum(line.seconds for line in part.lines) / 60

    def column(name: str) -> list[str | None]:
        return [line.label(name) or None for line in part.lines]

    columns = {name: column(name) for name in group_columns(part.lines)}
    groups = with_intersections(columns, [("gender", "accent"), ("gender", "age")])
    return {
        "clips": len(counts),
        "words": int(counts.lengths.sum()),
        "wer": counts.rate,
        **{key: value for key, value in counts.totals().items() if key != "hits"},
        "spread": clip_conditions.spread(counts),
        "kinds": {
            kind: {
                "said": part.kinds[kind, "said"],
                "missed": part.kinds[kind, "missed"],
                "rate": 100 * part.kinds[kind, "missed"] / part.kinds[kind, "said"]
                if part.kinds[kind, "said"]
                else None,
            }
            for kind in dict.fromkeys(kind for kind, _ in part.kinds)
        },
        "hallucination": {
            "bursts": part.bursts,
            "burst_words": part.burst_words,
            "loops": part.loops,
            "bursts_per_hour": 60 * part.bursts / minutes if minutes else None,
            "loops_per_hour": 60 * part.loops / minutes if minutes else None,
            "examples": sorted(part.examples, key=lambda e: -e["words"])[:EXAMPLES],
        },
        "conditions": dict(
            clip_conditions.bins_of(
                counts, [line.duration or None for line in part.lines], [line.loudness_dbfs for line in part.lines]
            )
        ),
        "speakers": clip_conditions.speakers(counts, column("speaker")),
        "groups": {
            name: _disparity(counts, labels, [line.id for line in part.lines], minimum)
            for name, labels in groups.items()
            if len({*labels} - {None}) > 1
        },
    }


def _disparity(counts: Counts, labels: Sequence[str | None], ids: Sequence[str], minimum: int) -> Json:
    """Groups with enough clips, each clip counted once however many configs it is in; the others are named."""
    clips = {group: len({i for i, label in zip(ids, labels, strict=True) if label == group}) for group in {*labels}}
    small = sorted(group for group, size in clips.items() if group is not None and size < minimum)
    rates = disparity(counts, [None if label in small else label for label in labels])
    if len(rates["groups"]) < 2:
        rates |= {"gap": None, "log2_ratio": None, "best": None, "worst": None}
    finite = {key: None for key, value in rates.items() if isinstance(value, float) and not np.isfinite(value)}
    return {**rates, **finite, "too_small": small}


def _reject(rejected: Sequence[tuple[Predictions, Coded]], spelled: Sequence[str]) -> Json | None:
    """What was written where nobody speaks, so that any word is invented; or where nobody knows what was said."""
    if not rejected:
        return None
    invented: Json = {"clips": 0, "clips_with_words": 0, "words": 0, "loops": 0, "minutes": 0.0, "phrases": []}
    said: Counter[str] = Counter()
    for predictions, coded in rejected:
        invented["clips"] += len(coded)
        invented["clips_with_words"] += int((coded.lengths > 0).sum())
        invented["words"] += len(coded.words)
        invented["loops"] += len(hallucination.loops(coded))
        invented["minutes"] += sum(line.seconds for line in predictions.lines) / 60
        said.update(dict(hallucination.phrases(coded, spelled)))
    invented["words_per_minute"] = invented["words"] / invented["minutes"] if invented["minutes"] else None
    invented["phrases"] = [list(pair) for pair in said.most_common(EXAMPLES)]
    return invented
