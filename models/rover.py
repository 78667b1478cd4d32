"""ROVER: one transcript out of several, by a vote at every word (Fiscus 1997), with word frequencies alone.

The first transcript is the backbone. Each further one is aligned with the network of words so far by least edit cost,
where agreeing with any word in a slot is free; then every slot's most frequent entry wins, silence included.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

Slot = Counter[str]  # how many transcripts have each word here; "" counts those that have none


def rover(texts: Sequence[str]) -> str:
    """The transcript that most of `texts` agree on, word by word; a tie goes to the earlier transcript."""
    network: list[Slot] = []
    for number, text in enumerate(texts):
        network = _merged(network, text.split(), number)
    return " ".join(word for slot in network if (word := slot.most_common(1)[0][0]))


def _merged(network: list[Slot], words: list[str], before: int) -> list[Slot]:
    """The network with one more transcript in it, `before` being how many it has."""
    merged = []
    for slot, word in _alignment(network, words):
        if slot is None:  # nobody said anything here so far
            slot = Counter({"": before}) if before else Counter()
        slot[word] += 1
        merged.append(slot)
    return merged


def _alignment(network: list[Slot], words: list[str]) -> list[tuple[Slot | None, str]]:
    """Slots and words in pairs, in order; None is a new slot, "" a word that is missing."""
    cost = [[0] * (len(words) + 1) for _ in range(len(network) + 1)]
    for i in range(len(network) + 1):
        for j in range(len(words) + 1):
            ways = []
            if i:
                ways.append(cost[i - 1][j] + ("" not in network[i - 1]))
            if j:
                ways.append(cost[i][j - 1] + 1)
            if i and j:
                ways.append(cost[i - 1][j - 1] + (words[j - 1] not in network[i - 1]))
            cost[i][j] = min(ways, default=0)
    pairs: list[tuple[Slot | None, str]] = []
    i, j = len(network), len(words)
    while i or j:
        if i and j and cost[i][j] == cost[i - 1][j - 1] + (words[j - 1] not in network[i - 1]):
            i, j = i - 1, j - 1
            pairs.append((network[i], words[j]))
        elif i and cost[i][j] == cost[i - 1][j] + ("" not in network[i - 1]):
            i -= 1
            pairs.append((network[i], ""))
        else:
            j -= 1
            pairs.append((None, words[j]))
    return pairs[::-1]
