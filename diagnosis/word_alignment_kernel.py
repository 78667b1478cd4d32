"""The inner loop of word alignment, compiled by Numba. Import it inside the function that needs it.

Why not rapidfuzz: its `opcodes` has one price for all edits, so of several shortest alignments it takes any, where WER
counts the one with the most hits (3 % more substitutions on 20,000 simulated transcripts), and turning its answers into
arrays takes 9 to 17 times as long as this loop.
"""

from __future__ import annotations

import numpy as np
from numba import types

from srb.core.compiled import compiled

_numbers = types.Array(types.int32, 1, "C", readonly=True)
PAIRED, DELETED, INSERTED = 0, 1, 2
_places = types.Array(types.int64, 1, "C", readonly=True)


@compiled(types.void(_numbers, _places, _numbers, _places, types.int64[:, ::1], types.int64[::1], types.boolean[::1]))
def align(reference, ref_starts, hypothesis, hypothesis_starts, counts, partner, inserted):
    """Fill `counts` (hits, substitutions, deletions, insertions of each pair), `partner` and `inserted`.

    `partner` is, for each word of the reference, the place in `hypothesis` of the word it is aligned with, -1 if it was
    deleted. The least number of errors comes first, then the least number of substitutions: a substitution costs a hair
    more than an insertion or a deletion, as in `srb.metrics.scoring.align`. Of each pair of words a byte is kept:
    which way the best alignment goes.
    """
    moves = np.zeros(1024, dtype=np.uint8)
    costs = np.zeros(1024, dtype=np.int64)  # of one row at a time
    for pair in range(len(ref_starts) - 1):
        a, a_end = ref_starts[pair], ref_starts[pair + 1]
        b, b_end = hypothesis_starts[pair], hypothesis_starts[pair + 1]
        longest = a_end - a
        # Equal words at both ends are hits in a best alignment, so the table is only as large as what differs.
        while a < a_end and b < b_end and reference[a] == hypothesis[b]:
            partner[a] = b
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and reference[a_end - 1] == hypothesis[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
            partner[a_end] = b_end
        rows, columns = a_end - a + 1, b_end - b + 1
        step = longest + 1
        if rows * columns > len(moves):
            moves = np.zeros(rows * columns, dtype=np.uint8)
        if columns > len(costs):
            costs = np.zeros(columns, dtype=np.int64)
        for j in range(columns):
            costs[j] = j * step
            moves[j] = INSERTED
        for i in range(1, rows):
            here = i * columns
            word = reference[a + i - 1]
            before = costs[0]  # of the row above, one word back
            costs[0] = i * step
            moves[here] = DELETED
            for j in range(1, columns):
                above = costs[j]
                if word == hypothesis[b + j - 1]:
                    costs[j] = before
                    moves[here + j] = PAIRED
                else:
                    other = before + step + 1
                    costs[j] = min(min(above, costs[j - 1]) + step, other)
                    moves[here + j] = PAIRED if costs[j] == other else DELETED if costs[j] == above + step else INSERTED
                before = above
        substitutions = deletions = insertions = 0
        i, j = rows - 1, columns - 1
        while i or j:
            move = moves[i * columns + j]
            if move == PAIRED:
                partner[a + i - 1] = b + j - 1
                substitutions += reference[a + i - 1] != hypothesis[b + j - 1]
                i, j = i - 1, j - 1
            elif move == DELETED:
                partner[a + i - 1] = -1
                deletions += 1
                i -= 1
            else:
                inserted[b + j - 1] = True
                insertions += 1
                j -= 1
        counts[pair, 0] = longest - substitutions - deletions
        counts[pair, 1] = substitutions
        counts[pair, 2] = deletions
        counts[pair, 3] = insertions
