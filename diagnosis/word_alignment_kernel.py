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
_places = types.Array(types.int64, 1, "C", readonly=True)


@compiled(types.void(_numbers, _places, _numbers, _places, types.int64[:, ::1], types.int64[::1], types.boolean[::1]))
def align(reference, ref_starts, hypothesis, hypothesis_starts, counts, partner, inserted):
    """Fill `counts` (hits, substitutions, deletions, insertions of each pair), `partner` and `inserted`.

    `partner` is, for each word of the reference, the place in `hypothesis` of the word it is aligned with, -1 if it was
    deleted. The least number of errors comes first, then the least number of substitutions: a substitution costs a hair
    more than an insertion or a deletion, as in `srb.metrics.scoring.align`.
    """
    table = np.zeros(1024, dtype=np.int64)
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
        if rows * columns > len(table):
            table = np.zeros(rows * columns, dtype=np.int64)
        for j in range(columns):
            table[j] = j * step
        for i in range(1, rows):
            above, here = (i - 1) * columns, i * columns
            word = reference[a + i - 1]
            table[here] = i * step
            for j in range(1, columns):
                if word == hypothesis[b + j - 1]:
                    table[here + j] = table[above + j - 1]
                else:
                    gap = min(table[above + j], table[here + j - 1]) + step
                    table[here + j] = min(gap, table[above + j - 1] + step + 1)
        substitutions = deletions = insertions = 0
        i, j = rows - 1, columns - 1
        while i or j:
            cost = table[i * columns + j]
            same = i and j and reference[a + i - 1] == hypothesis[b + j - 1]
            if same or (i and j and cost == table[(i - 1) * columns + j - 1] + step + 1):
                partner[a + i - 1] = b + j - 1
                substitutions += not same
                i, j = i - 1, j - 1
            elif i and cost == table[(i - 1) * columns + j] + step:
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
