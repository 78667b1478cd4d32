"""Transcribe a sample of a submission again: does the model that is named give the predictions that were sent?

The clips are drawn with a fresh seed that nobody knew before and that is recorded with the result: half of them clean,
the others evenly over the categories, as the score weighs them. Another machine or library version may change a word
here and there, so the two transcripts are compared in two ways: by their word error rate, and by the errors that each
makes. An honest difference goes either way, a dishonest one the way that pays: fewer errors than the model makes, or
more of them on clean speech, which lowers NWERD. An exact sign-flip test over the clips tells the two apart.

A submission that was used live is streamed again in the same chunks: on the virtual clock a recogniser shows the same
words after the same audio on every machine, only not as quickly.
"""

from __future__ import annotations

import math
import random
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from speech_robust_bench.core.categories import CLEAN
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction, Told, convert, parse_line, read_run_record
from speech_robust_bench.core.result_records import RerunGain, RerunRecord
from speech_robust_bench.models.interface import Recogniser, mode_of
from speech_robust_bench.models.transcriber import Transcriber, Transcription
from speech_robust_bench.push import submitted_files
from speech_robust_bench.scoring.scoring import align

if TYPE_CHECKING:
    from speech_robust_bench.builders.config_sources import StoredSource

MOST_DIFFERENCE = 5.0  # points of WER between the sent and the new transcripts
CLEAN_SHARE = 0.5  # of the sample: a tenth of the benchmark is clean, and every NWERD rests on it
ALPHA = 0.01  # of each test: how often an honest submission fails it, at most
PAYING = {"perturbed": (-1,), CLEAN: (-1, 1)}  # which difference in errors pays: fewer, and on clean speech more
LEAST_SHOWN = 0.5  # of the clips with the same words: those in which they were shown after the same audio
Key = tuple[str, str]  # a config and a clip


@dataclass(frozen=True)
class Gain:
    """What a difference in errors would pay: on the drawn clips of a kind, the predictions sent have `errors` more.

    `errors` is negative where they have fewer. `p` is the probability of so much in this direction by chance.
    """

    kind: str
    clips: int
    errors: int
    p: float

    def __str__(self) -> str:
        which = "fewer" if self.errors < 0 else "more"
        return (
            f"on {self.clips} {self.kind} clips the predictions sent have {abs(self.errors)} errors {which} than the "
            f"model makes (p = {self.p:.2g})"
        )


@dataclass(frozen=True)
class Rerun:
    """How many of the clips gave the same words, and how far the transcripts are apart (`difference`, in points).

    `gains` has a test for every direction that pays.
    """

    spec: str
    revision: str | None
    seed: int
    clips: int
    same: int
    difference: float
    gains: tuple[Gain, ...] = ()
    shown: int | None = None  # in a mode: clips with the same words that came about in the same way
    slower: float | None = None  # in a mode: the time that it took now over that which was sent

    @property
    def agrees(self) -> bool:
        if self.shown is not None and self.shown < LEAST_SHOWN * self.same:
            return False
        return self.difference <= MOST_DIFFERENCE and not self.paid

    @property
    def paid(self) -> list[Gain]:
        """The directions that pay in which the predictions differ from the model's by more than chance."""
        return [gain for gain in self.gains if gain.p < ALPHA]

    @property
    def record(self) -> RerunRecord:
        """The outcome as a verified file keeps it."""
        facts = {**asdict(self), "gains": [RerunGain(**asdict(gain)) for gain in self.gains]}
        return RerunRecord(**facts, agrees=self.agrees)


def rerun(folder: str | Path, data: str | Path, spec: str, sample: int, seed: int | None = None) -> Rerun:
    """Transcribe `sample` clips of an accepted submission again; `data` is the built folder that it was made from."""
    from speech_robust_bench.builders.config_sources import open_data
    from speech_robust_bench.models.interface import open_model

    if Path(data).is_file():
        raise UserError(f"--data {data}: a rerun needs the audio; point to the built folder or ORG/srb")
    folder, place = Path(folder), open_data(str(data))
    run = read_run_record(folder / "run.json")
    sent = {(config, line.id): line for config in _configs(folder) for line in _lines(folder, config)}
    seed = secrets.randbits(63) if seed is None else seed
    categories = {config: run.config(config).category or "" for config, _ in sent}
    chosen = draw(sorted(sent), categories, sample, seed)
    mode = mode_of(run.options or {})
    claimed = run.revision
    model = open_model(spec)
    try:
        if claimed and model.revision != claimed:
            raise UserError(f"{spec} is at revision {model.revision}, the submission was made with {claimed}")
        again = dict(_transcribe(place, mode.wrap(model) if mode else model, chosen))
        revision = model.revision
    finally:
        model.close()
    before = [sent[key].transcript for key in chosen]
    after = [again[key].text or "" for key in chosen]
    counts = align(before, after)
    same = {key for key, errors in zip(chosen, counts.errors, strict=True) if errors == 0}
    told = {key: convert(outcome.details, Told) for key, outcome in again.items()}
    agreement = mode.agreement({key: sent[key] for key in chosen}, told, same) if mode else (None, None)
    tests = gains(chosen, [sent[key].text for key in chosen], before, after)
    return Rerun(spec, revision, seed, len(chosen), len(same), round(counts.rate, 2), tests, *agreement)


def draw(keys: Sequence[Key], categories: Mapping[str, str], sample: int, seed: int) -> list[Key]:
    """Which clips to transcribe again: `CLEAN_SHARE` of them clean, the others evenly over the categories.

    Where one kind has too few clips, the other fills up the sample.
    """
    rng = random.Random(seed)
    by_category: dict[str, list[Key]] = {}
    for key in keys:
        by_category.setdefault(categories[key[0]], []).append(key)
    for group in by_category.values():
        rng.shuffle(group)
    clean = by_category.pop(CLEAN, [])
    turns = [
        group[i]
        for i in range(max(map(len, by_category.values()), default=0))
        for group in by_category.values()
        if i < len(group)
    ]
    few = min(round(CLEAN_SHARE * sample), len(clean))
    few = max(few, min(sample - len(turns), len(clean)))
    return sorted([*clean[:few], *turns[: max(sample - few, 0)]])


def gains(
    keys: Sequence[Key], references: Sequence[str | None], sent: Sequence[str], now: Sequence[str]
) -> tuple[Gain, ...]:
    """A test for each direction that pays; clips that nobody has transcribed tell nothing about errors."""
    more: dict[str, list[int]] = {kind: [] for kind in PAYING}
    for (config, _), reference, before, after in zip(keys, references, sent, now, strict=True):
        if reference is not None:
            name = parse(config)
            errors = align([reference, reference], [before, after], language=name.language).errors
            more[CLEAN if name.scenario == CLEAN else "perturbed"].append(int(errors[0] - errors[1]))
    return tuple(
        Gain(kind, len(differences), sum(differences), sign_flip_p([way * d for d in differences]))
        for kind, differences in more.items()
        for way in PAYING[kind]
    )


def sign_flip_p(differences: Iterable[int]) -> float:
    """How often the sum would be as high if every difference were as likely to be of the other sign; exact.

    >>> sign_flip_p([1, 1, 1, 2]), sign_flip_p([1, -1]), sign_flip_p([])
    (0.0625, 0.75, 1.0)
    """
    values = [d for d in differences if d]
    chances = np.ones(1)  # of each sum of those that are positive
    for size in map(abs, values):
        grown = np.zeros(len(chances) + size)
        grown[: len(chances)] += chances / 2
        grown[size:] += chances / 2
        chances = grown
    return float(min(chances[sum(d for d in values if d > 0) :].sum(), 1.0))


def power(clips: int, changed: float, alpha: float = ALPHA) -> float:
    """How probably a test over that many clips fails if a share of them was changed in the direction that pays.

    Exact where nothing else differs: with k changed clips p is 2 ** -k, and k is binomial.

    >>> round(power(100, 0.1), 2), round(power(25, 0.1), 2)
    (0.88, 0.01)
    """
    least = math.ceil(math.log2(1 / alpha))
    missed = sum(math.comb(clips, k) * changed**k * (1 - changed) ** (clips - k) for k in range(min(least, clips + 1)))
    return 1 - missed


def _configs(folder: Path) -> list[str]:
    return sorted({path.stem for path in folder.iterdir() if path.suffix in (".jsonl", submitted_files.SUFFIX)})


def _lines(folder: Path, config: str) -> Iterator[Prediction]:
    packed = folder / f"{config}{submitted_files.SUFFIX}"
    lines = submitted_files.lines(packed, 10**9) if packed.exists() else (folder / f"{config}.jsonl").open("rb")
    yield from map(parse_line, lines)


def _transcribe(place: StoredSource, model: Recogniser, chosen: list[Key]) -> Iterator[tuple[Key, Transcription]]:
    from speech_robust_bench.models.transcriber import read_batches

    transcriber = Transcriber(model)
    for name in sorted({config for config, _ in chosen}):
        config = place.config(name)
        wanted = {row.position for row in config.rows if (name, row.id) in chosen}
        for batch in read_batches(config, wanted, model.batch_size, None):
            for row, outcome in zip(batch.rows, transcriber.transcribe(batch), strict=True):
                yield (name, row.id), outcome
