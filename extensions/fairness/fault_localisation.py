"""AequeVox's fault localisation (Algorithm 2): the words that a group loses as a transformation gets stronger.

Without transcripts, a word's count is how often it stands in what the recogniser wrote; the drop is the count on clean
speech less the least count over all levels, and a word with a drop above omega is not robust. With transcripts, the
count is how often the word was said and written, so that a word which is invented elsewhere hides nothing, and
the alignment also tells what it turned into. The average drop of a group is over all words of its clean transcripts, as
in the paper's Table 9.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.clip_sets import TranscribedSet
from speech_robust_bench.scoring.word_errors import Coded, align

MOST = 5  # of what a word turned into
OMEGA = 3  # the paper's for two of its three recognisers


@dataclass(frozen=True)
class Faults:
    """Algorithm 2 for one recogniser, transformation and group: each word's count on clean speech and its least count.

    With transcripts, `became` says what a lost word turned into most often, over all levels; None is nothing at all.
    """

    recogniser: str
    form: str
    transformation: str
    group: str
    initial: Mapping[str, int]
    least: Mapping[str, int]
    became: Mapping[str, Sequence[tuple[str | None, int]]] = field(default_factory=dict)

    @cached_property
    def drops(self) -> dict[str, int]:
        """Drop_Count: for each word, how many are lost at the worst level."""
        return {word: max(count - self.least[word], 0) for word, count in self.initial.items()}

    @property
    def average_drop(self) -> float:
        """The mean drop over the words of the clean transcripts."""
        return float(np.mean(list(self.drops.values()))) if self.initial else 0.0

    def non_robust(self, omega: int = OMEGA) -> list[str]:
        """The words with a drop above omega, the largest drop first."""
        drops = self.drops
        return sorted((w for w, drop in drops.items() if drop > omega), key=lambda w: (-drops[w], w))

    def robust(self, minimum: int = 1) -> list[str]:
        """The words without any drop that occur at least so often, the most frequent first."""
        drops = self.drops
        chosen = [w for w, count in self.initial.items() if drops[w] == 0 and count >= minimum]
        return sorted(chosen, key=lambda w: (-self.initial[w], w))


def fault_localiser(
    initial: Mapping[str, int], levels: Iterable[Mapping[str, int]], omega: int = OMEGA
) -> tuple[list[str], dict[str, int]]:
    """Algorithm 2 on word counts: the non-robust words and the drop of every word.

    The paper's example, noise at an SNR of 2 dB:

    >>> fault_localiser({"brother": 16, "nice": 25, "is": 33}, [{"brother": 1, "nice": 23, "is": 32}])
    (['brother'], {'brother': 15, 'nice': 2, 'is': 1})
    """
    levels = list(levels)
    least = {word: min(level.get(word, 0) for level in levels) for word in initial}
    faults = Faults("", "", "", "", dict(initial), least)
    return faults.non_robust(omega), faults.drops


def localise(transcribed: TranscribedSet, groups: Mapping[str, np.ndarray], *, transcripts: bool) -> list[Faults]:
    """Algorithm 2 for each recogniser, transformation and group of a clip set."""
    names = transcribed.vocabulary.words
    scenarios: dict[str, list[str]] = {}
    for config in transcribed.clips.levels:
        scenarios.setdefault(parse(config).scenario, []).append(config)
    number = np.full(len(transcribed.clips.ids), -1)
    for place, clips in enumerate(groups.values()):
        number[clips] = place
    faults = []
    for model, coded in transcribed.transcripts.items():
        count = _Counter(transcribed.reference, number, len(groups), len(names), transcripts)
        initial, _ = count(coded[transcribed.clips.clean])
        for scenario, configs in scenarios.items():
            least: np.ndarray | None = None
            lost = []
            for config in configs:
                counts, confusions = count(coded[config])
                least = counts if least is None else np.minimum(least, counts)
                lost.append(confusions)
            assert least is not None
            became = _became(np.concatenate(lost), names, len(groups))
            for place, group in enumerate(groups):
                there = np.flatnonzero(initial[place])
                faults.append(
                    Faults(
                        model,
                        "transcripts" if transcripts else "alone",
                        scenario,
                        group,
                        {names[w]: int(initial[place, w]) for w in there},
                        {names[w]: int(least[place, w]) for w in there},
                        became[place],
                    )
                )
    return faults


@dataclass(frozen=True)
class _Counter:
    """Counts words by group: those written, or with transcripts those said and written, and then the confusions too."""

    reference: Coded
    group: np.ndarray
    groups: int
    words: int
    transcripts: bool

    def __call__(self, hypothesis: Coded) -> tuple[np.ndarray, np.ndarray]:
        """The counts (groups x words), and a number for each word that was lost, see `_became`."""
        if not self.transcripts:
            return self._by_group(self.group[hypothesis.owner], hypothesis.words), np.zeros(0, dtype=np.int64)
        alignment = align(self.reference, hypothesis)
        group, became = self.group[self.reference.owner], alignment.became
        hit = became == self.reference.words
        hits = self._by_group(np.where(hit, group, -1), self.reference.words)
        lost = ~hit & (group >= 0)
        said = group[lost] * self.words + self.reference.words[lost]
        return hits, said * (self.words + 1) + became[lost] + 1

    def _by_group(self, group: np.ndarray, words: np.ndarray) -> np.ndarray:
        kept = group >= 0
        flat = group[kept] * self.words + words[kept]
        return np.bincount(flat, minlength=self.groups * self.words).reshape(self.groups, self.words)


def _became(lost: np.ndarray, names: Sequence[str], groups: int) -> list[dict[str, list[tuple[str | None, int]]]]:
    """What the words of each group turned into, the most frequent first, `MOST` of each word.

    A lost word is one number made of its group, the word and what it became; a deletion is 0, other words count from 1.
    """
    values, times = np.unique(lost, return_counts=True)
    said = values // (len(names) + 1)
    order = np.lexsort((values, -times, said))
    values, times, said = values[order], times[order], said[order]
    first = np.concatenate([[True], said[1:] != said[:-1]]) if len(said) else np.zeros(0, dtype=bool)
    place = np.arange(len(said)) - np.flatnonzero(first)[np.cumsum(first) - 1] if len(said) else said
    kept = place < MOST
    became_by_group: list[dict[str, list[tuple[str | None, int]]]] = [{} for _ in range(groups)]
    rows = zip(said[kept].tolist(), (values[kept] % (len(names) + 1)).tolist(), times[kept].tolist(), strict=True)
    for pair, word_after, count in rows:
        group, word = divmod(pair, len(names))
        became_by_group[group].setdefault(names[word], []).append(
            (names[word_after - 1] if word_after else None, count)
        )
    return became_by_group


def table9(faults: Iterable[Faults]) -> dict[str, dict[str, dict[str, float]]]:
    """Average drop by group, in the layout of Table 9: by recogniser over all transformations, and the other way."""
    faults = list(faults)

    def mean(of) -> dict[str, dict[str, float]]:
        cells: dict[str, dict[str, list[float]]] = {}
        for fault in faults:
            cells.setdefault(of(fault), {}).setdefault(fault.group, []).append(fault.average_drop)
        return {row: {group: float(np.mean(values)) for group, values in cell.items()} for row, cell in cells.items()}

    return {
        "ASR sensitivity": mean(lambda f: f.recogniser),
        "transformation sensitivity": mean(lambda f: f.transformation),
    }
