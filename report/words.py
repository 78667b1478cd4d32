"""Word by word: what was said, what was heard instead, which words and which clips fare worst."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from rapidfuzz.distance import Levenshtein

from srb.builders.names import parse
from srb.metrics.runs import Predictions
from srb.metrics.scoring import default_unit, normalise

Words = Sequence[str]


@dataclass(frozen=True)
class Edit:
    """A piece of an alignment: `equal`, `replace`, `delete` or `insert`, with the words on either side."""

    kind: str
    said: tuple[str, ...]
    heard: tuple[str, ...]


def diff(said: Words, heard: Words) -> list[Edit]:
    """The alignment of two transcripts.

    >>> [(e.kind, e.said, e.heard) for e in diff("a b c".split(), "a x c d".split())]
    [('equal', ('a',), ('a',)), ('replace', ('b',), ('x',)), ('equal', ('c',), ('c',)), ('insert', (), ('d',))]
    """
    codes = Levenshtein.opcodes(said, heard)
    return [Edit(o.tag, tuple(said[o.src_start : o.src_end]), tuple(heard[o.dest_start : o.dest_end])) for o in codes]


@dataclass
class Word:
    """How one word of the references fared."""

    word: str
    said: int = 0
    missed: int = 0
    clean_said: int = 0
    clean_missed: int = 0
    heard_as: Counter[str] = field(default_factory=Counter)

    @property
    def excess(self) -> float:
        """Times it was missed beyond what its rate on clean speech would give."""
        return self.missed - self.said * (self.clean_missed / self.clean_said if self.clean_said else 0.0)


@dataclass(frozen=True)
class Clip:
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

    words: list[Word]
    inserted: list[tuple[str, int]]
    clips: list[Clip]


def study(heard: Sequence[Predictions], normaliser: str, most_words: int = 12, most_clips: int = 6) -> Study:
    """The worst words and clips of the configs of one language, which is written with spaces."""
    clean = {
        one.config: {line["id"]: _edits(line, normaliser) for line in one.lines} for one in heard if _is_clean(one)
    }
    words: dict[str, Word] = {}
    inserted: Counter[str] = Counter()
    clips: list[Clip] = []
    for config in clean.values():
        for edits in config.values():
            _count(edits, words, Counter(), clean=True)
    for one in heard:
        if _is_clean(one):
            continue
        originals = clean.get(one.entry.get("source") or "", {})
        for line in one.lines:
            edits = _edits(line, normaliser)
            _count(edits, words, inserted, clean=False)
            clips.append(_clip(one.config, line, edits, originals.get(line["id"])))
    ranked = sorted(words.values(), key=lambda word: (-word.excess, word.word))
    chosen = [word for word in ranked if word.missed > 1][:most_words]
    return Study(chosen, inserted.most_common(most_words), list(_varied(clips, most_clips)))


def _is_clean(one: Predictions) -> bool:
    return parse(one.config).scenario == "clean"


def spelled_with_spaces(language: str) -> bool:
    """Whether a language can be looked at word by word."""
    return default_unit(language) == "word"


def _edits(line: dict, normaliser: str) -> list[Edit]:
    return diff(normalise(line["text"], normaliser).split(), normalise(line.get("pred_text") or "", normaliser).split())


def _count(edits: Sequence[Edit], words: dict[str, Word], inserted: Counter[str], *, clean: bool) -> None:
    for edit in edits:
        for position, text in enumerate(edit.said):
            word = words.setdefault(text, Word(text))
            wrong = edit.kind != "equal"
            if clean:
                word.clean_said += 1
                word.clean_missed += wrong
            else:
                word.said += 1
                word.missed += wrong
                if edit.kind == "replace":
                    word.heard_as[edit.heard[position]] += 1
        if edit.kind == "insert":
            inserted.update(edit.heard)


def _errors(edits: Sequence[Edit]) -> int:
    return sum(max(len(edit.said), len(edit.heard)) for edit in edits if edit.kind != "equal")


def _clip(config: str, line: dict, edits: list[Edit], clean: list[Edit] | None) -> Clip:
    words = sum(len(edit.said) for edit in edits)
    failed = line.get("pred_text") is None
    return Clip(config, line["id"], edits, clean, _errors(edits), _errors(clean or []), words, failed)


def _varied(clips: Sequence[Clip], most: int) -> Iterator[Clip]:
    """The clips that lost most against their originals, one of each scenario and of each source clip."""
    scenarios: set[str] = set()
    ids: set[str] = set()
    ranked = sorted(clips, key=lambda c: (-(c.errors - c.clean_errors) / max(c.words, 1), c.config, c.id))
    for clip in ranked:
        scenario = parse(clip.config).scenario
        if scenario in scenarios or clip.id in ids or clip.errors <= clip.clean_errors:
            continue
        scenarios.add(scenario)
        ids.add(clip.id)
        yield clip
        if len(scenarios) == most:
            return
