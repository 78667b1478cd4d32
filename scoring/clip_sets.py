"""From run folders to what the tests need: for every clean config the clips, their groups, and how wrong each
recogniser (or each pair of recognisers) was on every clip at every level of every transformation.

AequeVox (Rajan, Udeshi and Chattopadhyay, "AequeVox: Automated Fairness Testing of Speech Recognition Systems", FASE
2022) has two measures of error, and both are a sum over a sum. Without transcripts: the word Levenshtein distances of
two recognisers' transcripts over the lengths of the longer ones, as its code pools them. With transcripts: WER.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from speech_robust_bench.core.categories import REJECT
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scenario_facts import OTHER_TEXTS, RECORDINGS
from speech_robust_bench.scoring.word_errors import Coded, Vocabulary, align

COLUMNS = ("gender", "accent", "age", "speaker")
JOIN = "+"  # between the columns of an intersection


@dataclass(frozen=True)
class ClipSet:
    """The clips of one clean config, in one order for every config made from it."""

    clean: str
    levels: tuple[str, ...]
    ids: tuple[str, ...]
    speakers: tuple[str | None, ...]
    columns: Mapping[str, tuple[str | None, ...]]
    left_out: int = 0  # clips that are not in every config

    def speaker_count(self, clips: np.ndarray) -> int | None:
        """How many people speak in some clips; None where a clip does not say who speaks."""
        names = {self.speakers[clip] for clip in clips}
        return None if None in names else len(names)

    def labels(self, groups: str) -> list[str | None]:
        """The group of each clip: a column, or several joined by `+` (None where a part is not known)."""
        parts = [self.columns[name] for name in groups.split(JOIN)]
        return [" & ".join(map(str, row)) if all(row) else None for row in zip(*parts, strict=True)]


@dataclass(frozen=True)
class ErrorMatrix:
    """How wrong one recogniser, or a pair of them, was on the clips of a set.

    `errors` and `lengths` have a row for the clean config and one for each level, and a column for each clip.
    """

    name: str
    form: str  # "pair" or "transcripts"
    clips: ClipSet
    errors: np.ndarray
    lengths: np.ndarray


@dataclass(frozen=True)
class TranscribedSet:
    """What the recognisers wrote for one clip set, as word numbers of one vocabulary."""

    clips: ClipSet
    vocabulary: Vocabulary
    reference: Coded
    transcripts: Mapping[str, Mapping[str, Coded]]  # model -> config -> words
    known: np.ndarray  # per clip: whether it has a reference

    @property
    def configs(self) -> tuple[str, ...]:
        """The clean config, then the levels."""
        return (self.clips.clean, *self.clips.levels)


def clip_sets(
    runs: Sequence[Run],
    columns: Mapping[str, Mapping[str, str | None]] | None = None,
    *,
    groups: str = "",
    normaliser: str = "srb-paper-1",
    unit: str | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Iterator[TranscribedSet]:
    """For each clean config of the runs with at least one level: their transcripts.

    `columns` adds a column, id -> group; `groups` names further columns of the predictions to read, joined
    by `+`. Every run must have the same configs of a set and the same clips in each; a clip that is not in every config
    is left out and counted. `advance` is called for every file read.
    """
    known = columns or {}
    read = tuple(dict.fromkeys([*COLUMNS, *(name for name in groups.split(JOIN) if name and name not in known)]))
    names = [run.model for run in runs]
    if len(set(names)) < len(names):
        raise UserError(f"two runs are of the same model, {names[0]}; give runs of different recognisers")
    any_set = False
    for clean, levels in _sets(runs).items():
        any_set = True
        vocabulary = Vocabulary.of(parse(clean).language, normaliser, unit)
        yield _transcribed_set(runs, (clean, *levels), vocabulary, read, known, advance)
    if not any_set:
        raise UserError(
            f"{runs[0].folder} has no transformed config beside its clean one; build and run some, for example "
            "`srb build 'en-demo_aeq_*'`"
        )


def _sets(runs: Sequence[Run]) -> dict[str, list[str]]:
    """Clean config -> its levels, in order of scenario and severity."""
    first, *others = ({c for c in run.configs if _usable(run, c)} for run in runs)
    for run, configs in zip(runs[1:], others, strict=True):
        lonely = sorted(first ^ configs)
        if lonely:
            raise UserError(
                f"{runs[0].model} and {run.model} were not run on the same configs: {some(lonely)} only in one"
            )
    levels_by_clean: dict[str, list[str]] = {}
    for config in sorted(first, key=lambda c: (parse(c).scenario, parse(c).severity)):
        clean = runs[0].about.config(config).source or str(parse(config).clean)
        if parse(config).scenario != "clean" and clean in first:
            levels_by_clean.setdefault(clean, []).append(config)
    return levels_by_clean


def _usable(run: Run, config: str) -> bool:
    """Clean, or made clip by clip from clean ones: no recordings of their own, other texts, silence or attacks."""
    category = run.about.config(config).category
    return category not in (*RECORDINGS, *OTHER_TEXTS, REJECT) and parse(config).model is None


def _transcribed_set(
    runs: Sequence[Run],
    configs: Sequence[str],
    vocabulary: Vocabulary,
    read_columns: Sequence[str],
    columns: Mapping[str, Mapping[str, str | None]],
    advance: Callable[[], None],
) -> TranscribedSet:
    clean, *levels = configs
    about = runs[0].table(clean, ["id", "text", *read_columns])
    ids: dict[str, pa.ChunkedArray] = {}
    coded: dict[str, dict[str, Coded]] = {run.model: {} for run in runs}
    for config in configs:
        for run in runs:
            read = run.table(config, ["id", "pred_text"])
            advance()
            coded[run.model][config] = vocabulary.encode(read["pred_text"])
            _same_clips(config, runs[0].model, ids.setdefault(config, read["id"]), run.model, read["id"])
    every = common = about["id"]
    for there in ids.values():
        if not there.equals(common):
            common = common.filter(pc.is_in(common, there))
    if not len(common):
        raise UserError(f"{clean} and the configs made from it have no clip in common; run them again")
    for config, there in ids.items():
        if len(there) > len(common):
            kept = pc.is_in(there, common).to_numpy()
            for transcripts in coded.values():
                transcripts[config] = transcripts[config].take(kept)
    about = about.filter(pc.is_in(every, common))

    def column(name: str) -> tuple[Any, ...]:
        return tuple(value or None for value in about[name].to_pylist())

    known = {name: column(name) for name in read_columns}
    known |= {name: tuple(of.get(clip) for clip in column("id")) for name, of in columns.items()}
    clips = ClipSet(clean, tuple(levels), column("id"), known["speaker"], known, len(every) - len(common))
    return TranscribedSet(
        clips, vocabulary, vocabulary.encode(about["text"]), coded, about["text"].is_valid().to_numpy()
    )


def _same_clips(config: str, one: str, ids: pa.ChunkedArray, other: str, others: pa.ChunkedArray) -> None:
    if not ids.equals(others):
        lonely = sorted(set(ids.to_pylist()) ^ set(others.to_pylist()))
        raise UserError(
            f"{config}: {one} and {other} were not run on the same clips, {len(lonely)} are in one only "
            f"({some(lonely)}); run both on the same clips"
        )


def with_transcripts(transcribed: TranscribedSet) -> list[ErrorMatrix]:
    """WER, one row per config, of each recogniser. A clip without a reference is 0 errors of 0 words."""
    matrices: list[ErrorMatrix] = []
    if not transcribed.known.any():
        return matrices
    lengths = np.tile(transcribed.reference.lengths, (len(transcribed.configs), 1))
    for model, words in transcribed.transcripts.items():
        errors = np.array([align(transcribed.reference, words[config]).counts.errors for config in transcribed.configs])
        errors *= transcribed.known
        matrices.append(ErrorMatrix(model, "transcripts", transcribed.clips, errors, lengths))
    return matrices


def without_transcripts(transcribed: TranscribedSet) -> list[ErrorMatrix]:
    """How far each two recognisers are apart: no reference is looked at."""
    pairs = list(combinations(transcribed.transcripts, 2))
    errors: dict[tuple[str, str], list[np.ndarray]] = {pair: [] for pair in pairs}
    lengths: dict[tuple[str, str], list[np.ndarray]] = {pair: [] for pair in pairs}
    for config in transcribed.configs:
        coded = {model: words[config] for model, words in transcribed.transcripts.items()}
        for one, other in pairs:
            errors[one, other].append(align(coded[one], coded[other]).counts.errors)
            lengths[one, other].append(np.maximum(coded[one].lengths, coded[other].lengths))
    return [
        ErrorMatrix(pair_name(*pair), "pair", transcribed.clips, np.array(errors[pair]), np.array(lengths[pair]))
        for pair in pairs
    ]


def pair_name(one: str, other: str) -> str:
    """What two recognisers are called together."""
    return f"{one} {other}"


def some(names: Sequence[str], count: int = 3) -> str:
    """The first few names."""
    return ", ".join(names[:count]) + (", ..." if len(names) > count else "")
