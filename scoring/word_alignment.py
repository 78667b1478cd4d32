"""The one place where words are aligned: how many edits, and which word is hit, substituted, deleted or inserted.

Of the alignments with the fewest errors it takes the one with the most hits, so the counts are unique. Among those that
are left, equal words at both ends of the texts are hits, and from the end backwards a pair of words goes before a
deletion, and that before an insertion, so the operations are unique too.

`count_edits` counts by rapidfuzz, which is fast and keeps no operations. rapidfuzz's own operations have one price for
all edits and describe another alignment (on 3,000 random pairs 331 with other hits), so `operations` and
`align_numbers` share `_trace`: plain Python for a few sentences, compiled for long texts and whole runs.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from speech_robust_bench.core.errors import UserError

HIT, SUBSTITUTION, DELETION, INSERTION = KINDS = ("hit", "substitution", "deletion", "insertion")
MOST_PAIRS = 2_000_000_000  # of words that are compared for one clip, a byte each: 44,000 by 44,000
MOST_IN_PYTHON = 100_000  # beyond so many pairs of words, compiling is worth its second
_PAIRED, _DELETED, _INSERTED = 0, 1, 2


class Operation(NamedTuple):
    """A step of an alignment, with the places of its two words; an insertion and a deletion have only one."""

    kind: str
    reference: int | None
    hypothesis: int | None

    def shifted(self, reference: int, hypothesis: int) -> Operation:
        """The same operation, shifted by a number of words."""
        places = (self.reference, reference), (self.hypothesis, hypothesis)
        return Operation(self.kind, *(None if place is None else place + by for place, by in places))


def count_edits(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> np.ndarray:
    """Substitutions, deletions and insertions (the rows) of each pair of texts, which are words or characters.

    >>> count_edits([["a", "b", "c"]], [["a", "x", "c", "d"]]).tolist()
    [[1], [0], [1]]
    """
    length = np.fromiter(map(len, references), dtype=np.int64, count=len(references))
    growth = np.fromiter(map(len, hypotheses), dtype=np.int64, count=len(hypotheses)) - length  # insertions - deletions
    # A substitution costs a hair more than an insertion or a deletion: so little that the number of errors is still the
    # least possible, and enough to settle which of several such alignments is meant, the one with the most hits.
    step = int(length.max(initial=0)) + 1
    costs = {"weights": (step, step, step + 1)}
    cost = process.cpdist(references, hypotheses, scorer=Levenshtein.distance, scorer_kwargs=costs, dtype=np.int64)
    errors, substitutions = np.divmod(cost, step)
    insertions = (errors - substitutions + growth) // 2
    return np.array([substitutions, insertions - growth, insertions])


def operations(references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]]) -> list[list[Operation]]:
    """The alignment of each pair of texts, which are words or characters, step by step.

    >>> [tuple(step) for step in operations(["a b c".split()], ["a x c d".split()])[0]]
    [('hit', 0, 0), ('substitution', 1, 1), ('hit', 2, 2), ('insertion', None, 3)]
    """
    lengths = [np.fromiter(map(len, texts), dtype=np.int64, count=len(texts)) for texts in (references, hypotheses)]
    _check_sizes(*lengths)
    if (lengths[0] * lengths[1]).sum() > MOST_IN_PYTHON and _can_compile():
        partners = _partners_compiled(references, hypotheses, *lengths)
    else:
        partners = [_partners(*pair) for pair in zip(references, hypotheses, strict=True)]
    return [_steps(*texts) for texts in zip(references, hypotheses, partners, strict=True)]


def align_words(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Operation]:
    """The operations of one pair of texts.

    >>> [step.kind for step in align_words(["so", "it", "is"], ["it", "was"])]
    ['deletion', 'hit', 'substitution']
    """
    return operations([reference], [hypothesis])[0]


def _partners(reference: Sequence[str], hypothesis: Sequence[str]) -> list[int]:
    """For each word of the reference the place of the word it is aligned with, -1 if it was deleted."""
    n, m = len(reference), len(hypothesis)
    partner, moves = [-1] * n, bytearray((n + 1) * (m + 1))
    _trace(reference, [0, n], hypothesis, [0, m], partner, [False] * m, moves, [0] * (m + 1))
    return partner


def _partners_compiled(
    references: Sequence[Sequence[str]], hypotheses: Sequence[Sequence[str]], *lengths: np.ndarray
) -> list[list[int]]:
    """`_partners` of each pair, by `align_numbers`."""
    numbers: dict[str, int] = {}
    coded = [
        np.array([numbers.setdefault(word, len(numbers)) for words in texts for word in words], dtype=np.int32)
        for texts in (references, hypotheses)
    ]
    starts = [np.concatenate([[0], np.cumsum(each)]) for each in lengths]
    partner, _ = align_numbers(coded[0], starts[0], coded[1], starts[1])
    partner = np.where(partner < 0, -1, partner - np.repeat(starts[1][:-1], lengths[0])).tolist()
    return [partner[start:end] for start, end in itertools.pairwise(starts[0].tolist())]


def align_numbers(
    reference: np.ndarray, reference_starts: np.ndarray, hypothesis: np.ndarray, hypothesis_starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Align many texts at once, whose words are numbers (int32) in one array: text i begins at `starts[i]`.

    Returns for each reference word the place in `hypothesis` of the word it is aligned with, -1 if it was deleted; and
    for each word of the hypotheses whether it was inserted.
    """
    lengths = np.diff(reference_starts), np.diff(hypothesis_starts)
    _check_sizes(*lengths)
    partner = np.full(len(reference), -1, dtype=np.int64)
    inserted = np.zeros(len(hypothesis), dtype=bool)
    moves = np.empty(((lengths[0] + 1) * (lengths[1] + 1)).max(initial=1), dtype=np.uint8)
    costs = np.empty(lengths[1].max(initial=0) + 1, dtype=np.int64)
    _compiled_trace()(reference, reference_starts, hypothesis, hypothesis_starts, partner, inserted, moves, costs)
    return partner, inserted


def _check_sizes(references: np.ndarray, hypotheses: np.ndarray) -> None:
    """Errors where texts have no partner, or are so long that comparing all their words would take all the memory."""
    if len(references) != len(hypotheses):  # compiled code would read and write beyond the shorter one
        raise ValueError(f"{len(references)} references and {len(hypotheses)} transcripts cannot be aligned")
    pairs = references * hypotheses
    if pairs.max(initial=0) > MOST_PAIRS:
        clip = int(pairs.argmax())
        raise UserError(
            f"transcript {clip} has {hypotheses[clip]} words and its reference {references[clip]}: too long to be "
            "aligned word by word"
        )


def _steps(reference: Sequence[str], hypothesis: Sequence[str], partner: Sequence[int]) -> list[Operation]:
    """The operations in order; a word that was inserted stands after the words of the reference before it."""
    steps, place = [], 0
    for i, j in enumerate(partner):
        if j < 0:
            steps.append(Operation(DELETION, i, None))
            continue
        steps += [Operation(INSERTION, None, k) for k in range(place, j)]
        steps.append(Operation(HIT if reference[i] == hypothesis[j] else SUBSTITUTION, i, j))
        place = j + 1
    return steps + [Operation(INSERTION, None, k) for k in range(place, len(hypothesis))]


def _trace(reference, reference_starts, hypothesis, hypothesis_starts, partner, inserted, moves, costs):
    """Fill `partner` and `inserted`; `moves` and `costs` are room to work in, for the largest pair of texts.

    Runs on lists as it stands, and on arrays when compiled.
    """
    for pair in range(len(reference_starts) - 1):
        a, a_end = reference_starts[pair], reference_starts[pair + 1]
        b, b_end = hypothesis_starts[pair], hypothesis_starts[pair + 1]
        # Equal words at both ends are hits in a best alignment, so the table is only as large as what differs.
        while a < a_end and b < b_end and reference[a] == hypothesis[b]:
            partner[a] = b
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and reference[a_end - 1] == hypothesis[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            partner[a_end] = b_end
        i, j = a_end - a, b_end - b
        columns = j + 1
        if i and j:
            _fill(reference, a, i, hypothesis, b, j, moves, costs)
        while i or j:
            move = moves[i * columns + j] if i and j else _DELETED if i else _INSERTED
            if move == _PAIRED:
                partner[a + i - 1] = b + j - 1
                i, j = i - 1, j - 1
            elif move == _DELETED:
                partner[a + i - 1] = -1
                i -= 1
            else:
                inserted[b + j - 1] = True
                j -= 1


def _fill(reference, a, rows, hypothesis, b, columns, moves, costs):
    """Of each pair of words, which way the best alignment goes: the fewest errors first, then the fewest substitutions.

    A substitution costs a hair more than an insertion or a deletion, as in `count_edits`.
    """
    step = rows + columns + 1
    for j in range(columns + 1):
        costs[j] = j * step
    here = 0
    for i in range(1, rows + 1):
        here += columns + 1
        word = reference[a + i - 1]
        before = costs[0]  # of the row above, one word back
        left = costs[0] = i * step
        for j in range(1, columns + 1):
            above = costs[j]
            if word == hypothesis[b + j - 1]:
                left = before
                moves[here + j] = _PAIRED
            else:
                move = _PAIRED
                best = before + step + 1
                if above + step < best:
                    best = above + step
                    move = _DELETED
                if left + step < best:
                    best = left + step
                    move = _INSERTED
                left = best
                moves[here + j] = move
            costs[j] = left
            before = above


@cache
def _can_compile() -> bool:
    """Whether Numba is there: it is wherever the package is installed, and not in a metric's Space."""
    try:
        _compiled_trace()
    except ImportError:
        return False
    return True


@cache
def _compiled_trace() -> Callable:
    from numba import types
    from numba.extending import register_jitable

    from speech_robust_bench.core.audio import compiled

    register_jitable(_fill)
    numbers = types.Array(types.int32, 1, "C", readonly=True)
    places = types.Array(types.int64, 1, "C", readonly=True)
    room = types.int64[::1], types.boolean[::1], types.uint8[::1], types.int64[::1]
    return compiled(types.void(numbers, places, numbers, places, *room))(_trace)
