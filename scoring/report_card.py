"""The system report card (Aksenova et al., Conclusion): what one recogniser does in one language, in one record.

It reads each config of a run once: which kinds of words are missed, what is invented, for which clips and speakers it
is worse, and how unequal the groups are. `clean` is clean speech, `hard` all other configs with speech together.
Percentiles and the standard deviation of the clips' own error rates say what an average does not (Section 3.1).

Bursts and loops of inserted words: `scoring.word_errors`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from speech_robust_bench.core.card_records import (
    Bin,
    CardConfigs,
    CardPart,
    GroupGap,
    Hallucinations,
    InventedSpan,
    ReportCard,
    SpeakerRate,
    SpeakerRates,
    Spread,
    WordKind,
    WrittenWords,
)
from speech_robust_bench.core.categories import REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, convert
from speech_robust_bench.scoring import word_errors
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.disparity import lwerr_table
from speech_robust_bench.scoring.groups import disparity, with_intersections
from speech_robust_bench.scoring.runs import Predictions, Run, group_columns
from speech_robust_bench.scoring.scenario_facts import OTHER_TEXTS
from speech_robust_bench.scoring.scoring import Counts
from speech_robust_bench.scoring.verdict_guard import refusal_of_counts
from speech_robust_bench.scoring.word_errors import (
    Alignment,
    Coded,
    Vocabulary,
    align,
    bursts,
    folded,
    invented_loops,
    looped_insertions,
    loops,
)

# what -> the edges between its bins; the unit is in the name
EDGES: dict[str, tuple[float, ...]] = {
    "length_s": (2, 5, 10, 20),
    "words_per_s": (1.5, 2.0, 2.5, 3.0, 3.5),
    "loudness_dbfs": (-40, -35, -30, -25, -20),
}
PERCENTILES = (50, 90, 95, 99)


def by_bins(counts: Counts, values: np.ndarray, edges: Sequence[float]) -> list[Bin]:
    """WER of the clips in each bin; empty bins and clips without a value (NaN) are left out."""
    place = np.digitize(values, edges)
    labels = [
        f"< {edges[0]:g}",
        *(f"{a:g} to {b:g}" for a, b in pairwise(edges)),
        f">= {edges[-1]:g}",
    ]
    rows = []
    for number, title in enumerate(labels):
        part = counts.take((place == number) & ~np.isnan(values))
        if len(part):
            start = edges[number - 1] if number else None
            words = int(part.lengths.sum())
            rows.append(Bin(bin=title, start=start, clips=len(part), words=words, wer=part.rate))
    return rows


def spread(counts: Counts) -> Spread:
    """Percentiles and standard deviation of the clips' own error rates, and the share of clips without an error."""
    rates = counts.rates
    p50, p90, p95, p99 = (float(np.percentile(rates, p)) for p in PERCENTILES)
    without_error = float((counts.errors == 0).mean())
    return Spread(p50=p50, p90=p90, p95=p95, p99=p99, sd=float(rates.std()), without_error=without_error)


def speakers(counts: Counts, names: Sequence[str | None], minimum_clips: int = 3, most: int = 5) -> SpeakerRates:
    """The speakers with the highest error rates, among those with enough clips, and the spread over speakers."""
    known = np.array([name or "" for name in names], dtype=object)
    rows: list[SpeakerRate] = []
    for name in sorted(set(known) - {""}):
        part = counts.take(known == name)
        if len(part) >= minimum_clips:
            rows.append(SpeakerRate(speaker=str(name), clips=len(part), wer=part.rate))
    rows.sort(key=lambda row: -row.wer)
    rates = [row.wer for row in rows]
    return SpeakerRates(
        speakers=len(rows),
        median=float(np.median(rates)) if rates else None,
        p90=float(np.percentile(rates, 90)) if rates else None,
        worst=rows[:most],
    )


def bins_of(
    counts: Counts, durations: Sequence[float | None], loudness: Sequence[float | None]
) -> dict[str, list[Bin]]:
    """All the tables there is something for."""
    seconds, level = (np.array([np.nan if v is None else v for v in values]) for values in (durations, loudness))
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = np.where(seconds > 0, counts.lengths / seconds, np.nan)
    values = {"length_s": seconds, "words_per_s": rate, "loudness_dbfs": level}
    return {what: rows for what, measured in values.items() if (rows := by_bins(counts, measured, EDGES[what]))}


def phrases(hypothesis: Coded, words: Sequence[str], most: int = 5) -> list[tuple[str, int]]:
    """Whole transcripts that were written for several clips, the most frequent first."""
    texts = Counter(
        " ".join(words[number] for number in hypothesis.words[a:b])
        for a, b in zip(hypothesis.starts[:-1], hypothesis.starts[1:], strict=True)
        if b > a
    )
    return [(text, count) for text, count in texts.most_common(most) if count > 1]


WORDS_FOR_BANDS = 1000  # running words whose frequencies tell common words from rare ones
TOO_FEW_WORDS = f"{{}} words are too few to tell common from rare ones; {WORDS_FOR_BANDS} are needed, or --frequencies"
SCHEMA = 1
MINIMUM = 10  # clips that a group must have to be compared
EXAMPLES = 5


@dataclass
class _Part:
    """The figures of clean speech, or of hard speech."""

    counts: list[Counts] = field(default_factory=list)
    lines: list[Prediction] = field(default_factory=list)
    kinds: Counter[tuple[str, str]] = field(default_factory=Counter)
    bursts: int = 0
    burst_words: int = 0
    loops: int = 0
    looped_words: int = 0
    examples: list[InventedSpan] = field(default_factory=list)

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
        if whole.entry.category in OTHER_TEXTS:  # of two talkers, for example: whose a word is, is not told
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
) -> ReportCard:
    """The card of a run in one language."""
    said = {
        (predictions.config.split("_")[0], line.id): line.text or ""
        for predictions, _ in aligned_run.speech
        for line in predictions.lines
    }
    texts = list(said.values())
    coded = aligned_run.vocabulary.encode(texts)
    spelled = aligned_run.vocabulary.words
    few = frequency is None and len(coded.words) < WORDS_FOR_BANDS
    if frequency is None:
        counted = np.zeros(len(spelled)) if few else np.bincount(coded.words, minlength=len(spelled))
        frequency = {word: int(n) for word, n in zip(spelled, counted, strict=True) if n}
    kinds = word_errors.kinds(spelled, texts, aligned_run.language, frequency, names)
    parts = {"clean": _Part(), "hard": _Part()}
    for predictions, alignment in aligned_run.speech:
        _add(parts["clean" if predictions.clean else "hard"], predictions, alignment, kinds, spelled)
    return ReportCard(
        schema=SCHEMA,
        model=aligned_run.run.model,
        language=aligned_run.language,
        unit=aligned_run.vocabulary.unit,
        normaliser=aligned_run.vocabulary.normaliser,
        configs=CardConfigs(clean=len(parts["clean"].counts), speech=len(aligned_run.speech)),
        **{name: _part(part, minimum) for name, part in parts.items() if part.counts},
        unknown={**kinds.unknown, **({"frequency": TOO_FEW_WORDS.format(len(coded.words))} if few else {})},
        reject=_written(aligned_run.reject, spelled),
        untranscribed=_written(aligned_run.untranscribed, spelled),
        lwerr=lwerr_table(
            ((predictions, alignment.counts) for predictions, alignment in aligned_run.speech), replicates=replicates
        ),
        no_verdict=_refusal(aligned_run) or None,
    )


def _refusal(aligned_run: AlignedRun) -> str:
    return refusal_of_counts(
        ConfigCounts(read.config, read.entry.category or "", read.ids, alignment.counts, failed=read.failed)
        for read, alignment in aligned_run.speech
    )


def _add(
    part: _Part,
    read: Predictions,
    alignment: Alignment,
    kinds: word_errors.Kinds,
    spelled: Sequence[str],
) -> None:
    part.counts.append(alignment.counts)
    part.lines += read.lines
    for kind, (said, missed) in word_errors.missed(alignment, kinds).items():
        part.kinds[kind, "said"] += said
        part.kinds[kind, "missed"] += missed
    invented, repeated = bursts(alignment), invented_loops(alignment)
    part.bursts += len(invented)
    part.burst_words += sum(span.length for span in invented)
    part.loops += len(repeated)
    part.looped_words += int(looped_insertions(alignment, repeated).sum())
    for name, spans in (("loop", repeated), ("burst", invented)):
        for span in sorted(spans, key=lambda s: -s.length)[:EXAMPLES]:
            first = int(alignment.hypothesis.starts[span.clip]) + span.start
            written = folded([spelled[n] for n in alignment.hypothesis.words[first : first + span.length]])
            clip, period = read.lines[span.clip].id, span.period or None
            part.examples.append(
                InventedSpan(kind=name, config=read.config, id=clip, words=span.length, period=period, text=written)
            )


def _part(part: _Part, minimum: int) -> CardPart:
    counts = part.together()

    def column(name: str) -> list[str | None]:
        return [line.label(name) or None for line in part.lines]

    columns = {name: column(name) for name in group_columns(part.lines)}
    groups = with_intersections(columns, [("gender", "accent"), ("gender", "age")])
    totals, ids = counts.totals(), [line.id for line in part.lines]
    return CardPart(
        clips=len(counts),
        words=int(counts.lengths.sum()),
        wer=counts.rate,
        substitutions=totals["substitutions"],
        deletions=totals["deletions"],
        insertions=totals["insertions"],
        spread=spread(counts),
        kinds={kind: _kind(part, kind) for kind in dict.fromkeys(kind for kind, _ in part.kinds)},
        hallucination=_hallucinations(part),
        conditions=bins_of(
            counts, [line.duration or None for line in part.lines], [line.loudness_dbfs for line in part.lines]
        ),
        speakers=speakers(counts, column("speaker")),
        groups={
            name: _gap(counts, labels, ids, minimum) for name, labels in groups.items() if len({*labels} - {None}) > 1
        },
    )


def _kind(part: _Part, kind: str) -> WordKind:
    said, missed = part.kinds[kind, "said"], part.kinds[kind, "missed"]
    return WordKind(said=said, missed=missed, rate=100 * missed / said if said else None)


def _hallucinations(part: _Part) -> Hallucinations:
    minutes = sum(line.seconds for line in part.lines) / 60
    return Hallucinations(
        bursts=part.bursts,
        burst_words=part.burst_words,
        loops=part.loops,
        looped_words=part.looped_words,
        bursts_per_hour=60 * part.bursts / minutes if minutes else None,
        loops_per_hour=60 * part.loops / minutes if minutes else None,
        examples=sorted(part.examples, key=lambda example: -example.words)[:EXAMPLES],
    )


def _gap(counts: Counts, labels: Sequence[str | None], ids: Sequence[str], minimum: int) -> GroupGap:
    """Groups with enough clips, each clip counted once however many configs it is in; the others are named."""
    clips = {
        group: len({i for i, group_of_clip in zip(ids, labels, strict=True) if group_of_clip == group})
        for group in {*labels}
    }
    small = sorted(group for group, size in clips.items() if group is not None and size < minimum)
    rates = disparity(counts, [None if group in small else group for group in labels])
    if len(rates["groups"]) < 2:
        rates |= {"gap": None, "log2_ratio": None, "best": None, "worst": None}
    finite = {key: None for key, value in rates.items() if isinstance(value, float) and not np.isfinite(value)}
    return convert({**rates, **finite, "too_small": small}, GroupGap)


def _written(read: Sequence[tuple[Predictions, Coded]], spelled: Sequence[str]) -> WrittenWords | None:
    """What was written where nobody speaks, so that any word is invented; or where nobody knows what was said."""
    if not read:
        return None
    said: Counter[str] = Counter()
    for _, coded in read:
        said.update(dict(phrases(coded, spelled)))
    words = sum(len(coded.words) for _, coded in read)
    minutes = sum(line.seconds for predictions, _ in read for line in predictions.lines) / 60
    return WrittenWords(
        clips=sum(len(coded) for _, coded in read),
        clips_with_words=sum(int((coded.lengths > 0).sum()) for _, coded in read),
        words=words,
        loops=sum(len(loops(coded)) for _, coded in read),
        minutes=minutes,
        phrases=said.most_common(EXAMPLES),
        words_per_minute=words / minutes if minutes else None,
    )
