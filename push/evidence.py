"""How many of a model's wrong words are another model's: a copy is still one when some of its words were changed.

A wrong word is one that a perturbed clip's prediction has and its reference has not, nor the prediction of the clean
clip: names that nobody can spell, and mistakes of the reference, are shared by everybody. Two recognisers have up to
29 % of them in common (two Kaldi models), the same weights behind a front end up to 71 % (`results/matrix-2.parquet`,
13 systems), a copy all but those that were changed: the bound of 75 % stands just above what honest systems share. A
verified file keeps a sample of them as hashes (the smallest ones, a bottom-k sketch: Cohen and Kaplan, 2007), so that
submissions are compared without their predictions.

Signs that predictions were not made by a recogniser: copies of references, of clean predictions, of another model.

None of them is a proof, so they flag a submission and do not refuse it: the leaderboard shows the evidence, and a
flagged model is not ranked. The one exception is wrong transcripts that are those of another config of the same
submission to the letter, which no recogniser gives.
"""

from __future__ import annotations

import hashlib
import heapq
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, RunConfig

SKETCH = 500  # hashes that are kept
FEWEST = 40  # wrong words that are needed to say anything
MOST_SHARED = 0.75
MOST_TIMES = 3  # as many wrong words: who writes every word there is has those of everybody
_ABOVE = 1 << 48  # every hash


def wrong_words(reference: str, prediction: str | None) -> tuple[str, ...]:
    """The words of a prediction that its reference does not have; one that is there twice too often is two."""
    if not prediction or prediction == reference:
        return ()
    surplus = Counter(_words(prediction)) - Counter(_words(reference))
    return tuple(sys.intern(f"{word} {count}") for word, extra in surplus.items() for count in range(extra))


class _LettersAndDigits(dict[int, int | None]):
    """A table for `str.translate` that keeps letters, digits and spaces, filled in as characters come."""

    def __missing__(self, code: int) -> int | None:
        self[code] = code if chr(code).isalnum() or chr(code).isspace() else None
        return self[code]


_LETTERS_AND_DIGITS = _LettersAndDigits()


@lru_cache(maxsize=10_000)  # the same references come back with every config
def _words(text: str) -> list[str]:
    """Its words without case and punctuation."""
    return text.casefold().translate(_LETTERS_AND_DIGITS).split()


def sketch(items: Iterable[str]) -> list[int]:
    """The smallest hashes of some texts, in order: a sample that is the same for the same texts."""
    smallest: set[int] = set()
    waiting = iter(items)
    while part := [
        int.from_bytes(hashlib.sha256(i.encode()).digest()[:6], "big") for i in islice(waiting, 100 * SKETCH)
    ]:
        smallest = set(heapq.nsmallest(SKETCH, smallest.union(part)))
    return sorted(smallest)


def near_copy(ours: Sequence[int], theirs: Sequence[int]) -> str | None:
    """What two sketches have in common, if it is more than two recognisers have; None if it is not."""
    bound = min(numbers[-1] if len(numbers) == SKETCH else _ABOVE for numbers in (ours, theirs))  # both know all below
    few, many = sorted(({number for number in numbers if number <= bound} for numbers in (ours, theirs)), key=len)
    same = len(few & many)
    if len(few) < FEWEST or len(many) > MOST_TIMES * len(few) or same < MOST_SHARED * len(few):
        return None
    return f"{same} of {len(few)} wrong words of a sample"


SAME_ERRORS = 20  # so many wrong transcripts that are the same to the letter are not chance
MOST_EQUAL = 0.98  # of the clips of a config
FEWEST_CLIPS = 20
HARD_SEVERITY = 3  # from here on a scenario changes what a recogniser writes


@dataclass
class Evidence:
    """The evidence kept of each config's predictions while a submission is read."""

    predictions: dict[str, dict[str, str | None]] = field(default_factory=dict)
    equal_to_reference: dict[str, int] = field(default_factory=dict)
    same_letters: dict[str, int] = field(default_factory=dict)  # as the reference, but for case and punctuation
    errors: dict[str, str] = field(default_factory=dict)  # digest of the wrong transcripts -> config
    wrong: dict[str, set[str]] = field(default_factory=dict)  # config -> clips
    wrong_words: dict[str, dict[str, tuple[str, ...]]] = field(default_factory=dict)  # config -> clip -> words

    def add(self, config: str, lines: Sequence[Prediction]) -> str | None:
        """Remember a config; returns an earlier one that has the same wrong transcripts."""
        self.predictions[config] = {sys.intern(line.id): line.pred_text for line in lines}
        self.equal_to_reference[config] = sum(bool(line.text) and line.pred_text == line.text for line in lines)
        differ = [line for line in lines if line.pred_text != line.text and not _same_letters(line)]
        self.wrong[config] = {sys.intern(line.id) for line in differ}
        self.same_letters[config] = sum(bool(line.text) for line in lines) - sum(bool(line.text) for line in differ)
        words = ((sys.intern(line.id), wrong_words(line.text or "", line.pred_text)) for line in lines)
        self.wrong_words[config] = {clip: wrong for clip, wrong in words if wrong}
        wrong = [f"{line.id}\x1f{line.pred_text}" for line in lines if line.pred_text != line.text]
        if len(wrong) < SAME_ERRORS or len({line.pred_text for line in lines}) < 2:
            return None
        digest = hashlib.sha256("\x1e".join(wrong).encode()).hexdigest()
        earlier = self.errors.get(digest)
        self.errors[digest] = config
        return earlier

    def digests(self) -> dict[str, str]:
        """Config -> digest of its wrong transcripts, of those that have enough of them."""
        return {config: digest for digest, config in self.errors.items()}

    def sketches(self, entries: Mapping[str, RunConfig]) -> dict[str, list[int]]:
        """Language -> a sample of the wrong words that its scenarios cause; see `shared_errors`."""
        configs: dict[str, list[str]] = {}
        for config in self.wrong_words:
            entry = entries[config]
            if entry.scenario != "clean" and not parse(config).model:  # adversarial configs are a model's own
                configs.setdefault(entry.language or "", []).append(config)
        return {
            language: sketch(
                f"{config}\x1f{clip}\x1f{word}"
                for config in own
                for clip, words in self.wrong_words[config].items()
                for word in set(words).difference(self.wrong_words.get(str(entries[config].source), {}).get(clip, ()))
            )
            for language, own in configs.items()
        }

    def flags(self, entries: Mapping[str, RunConfig]) -> list[str]:
        """One line for each config that looks copied."""
        lines = []
        for config, predictions in self.predictions.items():
            entry, clips = entries[config], len(predictions)
            if clips < FEWEST_CLIPS or entry.scenario == "clean":
                continue
            if self.equal_to_reference[config] >= MOST_EQUAL * clips:
                equal = self.equal_to_reference[config]
                lines.append(f"{config}: {equal} of {clips} predictions are exactly the references")
            clean = self.predictions.get(str(entry.source), {})
            same = sum(bool(text) and clean.get(clip) == text for clip, text in predictions.items())
            if (entry.severity or 0) >= HARD_SEVERITY and same >= MOST_EQUAL * clips:
                lines.append(f"{config}: {same} of {clips} predictions are those of {entry.source}, to the letter")
            elif wrong := self.wrong.get(str(entry.source), set()) & predictions.keys():
                same = sum(_letters(predictions[clip]) == _letters(clean[clip]) != "" for clip in wrong)
                if len(wrong) >= SAME_ERRORS and same >= MOST_EQUAL * len(wrong):
                    told = f"{same} of {len(wrong)} wrong predictions of {entry.source}"
                    lines.append(f"{config}: has {told} again, but for case and punctuation")
        hard = [config for config in self.predictions if (entries[config].severity or 0) >= HARD_SEVERITY]
        clips, same = sum(len(self.predictions[c]) for c in hard), sum(self.same_letters[c] for c in hard)
        if not lines and clips >= FEWEST_CLIPS and same >= MOST_EQUAL * clips:
            told = f"{same} of {clips} predictions from severity {HARD_SEVERITY} on are the references"
            lines.append(f"{told}, but for case and punctuation")
        return lines


def _letters(text: str | None) -> str:
    return "".join(_words(text or ""))


def _same_letters(line: Prediction) -> bool:
    return line.pred_text == line.text or _letters(line.pred_text) == _letters(line.text)


@dataclass(frozen=True)
class Fingerprints:
    """What a verified file keeps of a model's wrong transcripts, to be compared with those of other models."""

    digests: Mapping[str, str] = field(default_factory=dict)  # config -> hash of all of them
    sketches: Mapping[str, Sequence[int]] = field(default_factory=dict)  # language -> sample of wrong words


def copies(ours: Fingerprints, others: Mapping[str, Fingerprints]) -> dict[str, str]:
    """Other model -> the flag that says what is the same, for those whose wrong transcripts or words ours are."""
    flags = {}
    for other, theirs in sorted(others.items()):
        same = sorted(config for config, digest in ours.digests.items() if theirs.digests.get(config) == digest)
        if same:
            more = f" and {len(same) - 1} more configs" if len(same) > 1 else ""
            flags[other] = f"{same[0]}{more}: the wrong transcripts are those of {other}, to the letter"
            continue
        for language, sample in ours.sketches.items():
            if told := near_copy(sample, theirs.sketches.get(language, ())):
                flags[other] = f"{language}: {told} are those of {other}, on the same clips"
    return flags
