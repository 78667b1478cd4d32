"""The clips that a group of configs is made from: listed, decoded once to know that they can be used, and hashed.

What the content of a config depends on, and the hash of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from importlib import metadata
from typing import Any, Literal

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.corpora import Corpus, Problem, Utterance
from speech_robust_bench.builders.plan import Job
from speech_robust_bench.builders.scenarios import SCENARIOS, Scenario
from speech_robust_bench.builders.tts import material_of
from speech_robust_bench.core.audio import RATE, Samples, from_pcm16, to_pcm16
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, content_id, later_version

OnError = Literal["stop", "skip"]
Progress = Callable[[str, int], Callable[[int], None]]  # (what, how many) -> advance by n
Check = Callable[[Sequence[Utterance], Callable[[int], None]], list[tuple[str, float] | Problem]]
Keep = Callable[[str, Samples], None]
CLIPS_PER_CHECK = 50


@dataclass(frozen=True)
class CheckedClip:
    """An utterance that could be decoded, the hash of the samples that it had then, and how long it lasts."""

    utterance: Utterance
    samples_digest: str
    seconds: float = 0.0

    def load(self) -> Samples:
        """Its samples; a file that has changed since it was checked would make a config of mixed editions."""
        samples = self.utterance.load()
        if content_id(samples) != self.samples_digest:
            raise UserError(f"{self.utterance.audio.name}: has changed while the build was running; run it again")
        return samples


@dataclass(frozen=True)
class Listing:
    """The clips of a group of configs: the hash of all that is known about them and of their samples, and whose voices
    they are, where they were synthesised."""

    digest: str
    count: int
    voices: str | None


@dataclass(frozen=True)
class CheckedClips:
    """The usable clips of a corpus in its order, and what is wrong with the others."""

    corpus: Corpus
    clips: tuple[CheckedClip, ...]
    problems: tuple[Problem, ...] = ()

    @cached_property
    def listing(self) -> Listing:
        digest = hashlib.sha256()
        for clip in self.clips:
            digest.update(f"{clip.utterance!r}{clip.utterance.columns or ''}{clip.samples_digest}\n".encode())
        return Listing(digest.hexdigest(), len(self.clips), material_of([clip.utterance for clip in self.clips[:1]]))

    @property
    def untranscribed(self) -> Problem | None:
        """How many clips have no transcript, if any: a column that was not recognised looks the same."""
        count = sum(clip.utterance.text is None for clip in self.clips)
        what = f"{count} of {len(self.clips)} clips have no transcript (text): no WER of them"
        return Problem(self.corpus.source, what) if count else None

    def refuse_unusable(self, on_error: OnError) -> None:
        """One clear error where no clip can be used, or where some cannot and may not be left out."""
        if not self.clips:
            raise UserError(f"{self.corpus.source}: holds no clips that can be used")
        if self.problems and on_error == "stop":
            raise UserError(
                f"{self.corpus.source}: {len(self.problems)} of the clips cannot be used (named above); repair them, "
                "or leave them out with --on-error skip"
            )


def check_clips(
    corpus: Corpus, listed: Sequence[Utterance], engine: Engine, progress: Progress, work: Check | None = None
) -> CheckedClips:
    """Decode every clip once, so that a broken one is known before anything is made.

    A clip is given to the worker that its position names, for `work` that keeps what it has decoded.
    """
    show = progress(f"checking {corpus.name}", len(listed))
    step = CLIPS_PER_CHECK * engine.workers
    pieces = [
        range(start + worker, min(start + step, len(listed)), engine.workers)
        for start in range(0, len(listed), step)
        for worker in range(engine.workers)
    ]
    found = engine.map(work or check, [[listed[place] for place in piece] for piece in pieces], show)
    results = dict(pair for piece, part in zip(pieces, found, strict=True) for pair in zip(piece, part, strict=True))
    usable, problems = [], list(corpus.problems)
    for place, item in enumerate(listed):
        result = results[place]
        if isinstance(result, Problem):
            problems.append(result)
        else:
            usable.append(CheckedClip(item, *result))
    return CheckedClips(corpus, tuple(usable), tuple(problems))


def check(
    utterances: Sequence[Utterance], tick: Callable[[int], None], keep: Keep = lambda digest, samples: None
) -> list[tuple[str, float] | Problem]:
    """Decode each clip: the hash of its samples and its seconds, or what is wrong with it."""
    results: list[tuple[str, float] | Problem] = []
    for item in utterances:
        try:
            samples = item.load()
            digest = content_id(samples)
            keep(digest, samples)
            results.append((digest, len(samples) / RATE))
        except UserError as error:
            where, _, what = str(error).partition(": ")
            results.append(Problem(where, f"{what} (id {item.id})"))
        tick(1)
    return results


class KeptClips:
    """Decoded clips that a worker keeps, the first that come up to some bytes: the next config has the same clips."""

    def __init__(self) -> None:
        self.bytes = 0
        self._clips: dict[str, Samples] = {}

    def keep(self, digest: str, samples: Samples, most_bytes: int) -> None:
        """Keep a clip, as 16-bit samples if they hold all of it, while there is room."""
        if digest in self._clips or self.bytes >= most_bytes:
            return
        pcm = to_pcm16(samples)
        whole = np.array_equal(from_pcm16(pcm).view(np.int32), np.asarray(samples, np.float32).view(np.int32))
        self._clips[digest] = pcm if whole else samples
        self.bytes += self._clips[digest].nbytes

    def load(self, clip: CheckedClip, most_bytes: int) -> Samples:
        """The samples that a clip had when it was checked, from memory or else from its file."""
        kept = self._clips.get(clip.samples_digest)
        if kept is None:
            samples = clip.load()
            self.keep(clip.samples_digest, samples, most_bytes)
            return samples
        return from_pcm16(kept) if kept.dtype == np.int16 else kept


Inputs = dict[str, Any]  # everything that a config is made from, as JSON holds it
LIBRARIES = ("speech-robust-bench", "numpy", "scipy", "numba", "soundfile", "soxr", "pyarrow")


@cache
def library_version(library: str) -> str:
    return metadata.version(library)  # parses a file each time


def config_inputs(job: Job, corpus: Corpus, listing: Listing, banks: Banks, seed: str) -> Inputs:
    """Everything that a config's content depends on and that can change between two runs."""
    scenario = job.scenario
    inputs = {
        "benchmark_version": BENCHMARK_VERSION,
        "software": library_version("speech-robust-bench"),
        "config": str(job.name),
        "value": scenario.value(job.severity),
        "transform": _own_transforms(scenario),
        "bank": banks.describe(*scenario.banks) or listing.voices,
        "recordings": banks.fingerprint(*scenario.banks),
        "corpus": corpus.name,
        "clips": [listing.digest, listing.count],
    }
    return {**inputs, **later_version(scenario.edition_with(banks.version)), **({"seed": seed} if seed else {})}


def _own_transforms(scenario: Scenario) -> str | None:
    """The functions of a scenario that are the user's own; those of the table are known by its name and version."""
    own = (row for row in (scenario, *scenario.parts) if row.name not in SCENARIOS and row.function)
    return " + ".join(repr(row.function) for row in own) or None


def fingerprint(inputs: Inputs) -> str:
    """One hash over everything that goes into a config."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
