"""What to build, from what: names and globs become groups of configs that share a corpus, and its clips are listed.

Every clip is decoded once to know that it can be used, and hashed. A config's fingerprint is the hash of everything
that its content depends on.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache, cached_property
from importlib import metadata
from numbers import Integral
from pathlib import Path
from typing import Literal

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.banks.recording import Material
from speech_robust_bench.builders.corpora import CORPORA, RECORDED, Corpus, Problem, Sources, Utterance, open_corpus
from speech_robust_bench.builders.scenario import Scenario, check_can_perturb, missing_packages
from speech_robust_bench.builders.scenarios import SCENARIOS, find, perturbations
from speech_robust_bench.builders.tts import default_engine, material_of, speak_all
from speech_robust_bench.core.audio import RATE, Samples
from speech_robust_bench.core.engines import Engine
from speech_robust_bench.core.errors import UserError, did_you_mean, install_hint
from speech_robust_bench.core.names import ConfigName, parse
from speech_robust_bench.core.options import Settings
from speech_robust_bench.core.seeding import BENCHMARK_VERSION, content_id, later_version

DEMO: Sources = {("en", "demo"): None, ("es", "demo"): None}


@dataclass(frozen=True)
class Job:
    """One config to build."""

    name: ConfigName
    scenario: Scenario

    @property
    def severity(self) -> int:
        return self.name.severity

    @property
    def selection(self) -> ConfigName:
        """Which clips it is made from: those of its clean config, unless the scenario has clips of its own."""
        if self.scenario.name in RECORDED:
            return replace(self.name, corpus=RECORDED[self.scenario.name].corpus)
        own_clips = self.scenario.from_clips or self.scenario.maker == "speech synthesis"
        return self.name if own_clips else self.name.clean

    @property
    def source(self) -> ConfigName | None:
        """The clean config that its clips pair with, one by one; None for recordings of their own."""
        return None if self.scenario.maker == "recording" else self.name.clean


def plan(patterns: Iterable[str], sources: Sources, table: Mapping[str, Scenario] = SCENARIOS) -> list[Job]:
    """The configs that names and globs mean, in a fixed order and each once."""
    known = {str(job.name): job for job in available(sources, table)}
    chosen: dict[str, Job] = {}
    for pattern in patterns:
        if any(mark in pattern for mark in "*?["):
            asked_for = [row for row in own_clips_rows(table) if row.category in pattern]
            among = known | {str(job.name): job for job in jobs_of(asked_for, sources)}
            matching = {name: job for name, job in among.items() if fnmatchcase(name, pattern)}
            if not matching and (lacking := uninstalled([pattern], sources, table)):
                raise UserError(f"'{pattern}': {', '.join(lacking)} needs more packages: {install_hint('codecs')}")
            if not matching:
                corpora = ", ".join(f"{language}-{corpus}" for language, corpus in sources)
                raise UserError(
                    f"no config matches '{pattern}'; {did_you_mean(pattern, known)}; the corpora given are {corpora}"
                )
            chosen |= matching
        else:
            job = job_named(pattern, table)
            chosen[str(job.name)] = job
    return [chosen[name] for name in sorted(chosen)]


def lacking_clean(names: Iterable[str], there: Container[str] = ()) -> list[str]:
    """The clean configs that some configs are compared with and that are not among them, nor there already.

    >>> lacking_clean(["en_noise_sev3", "es_gsm", "es_clean", "en_silence"])
    ['en_clean']
    """
    chosen = list(names)
    rows = [(parse(name).clean, SCENARIOS.get(parse(name).scenario)) for name in chosen]
    wanted = dict.fromkeys(str(clean) for clean, row in rows if row is None or row.has_speech)
    return [clean for clean in wanted if clean not in chosen and clean not in there]


def tts_without_engine(patterns: Iterable[str], sources: Sources) -> list[str]:
    """The configs of synthetic speech that globs would match, but leave out: they need a voice, so they are named."""
    recorded = {entry.corpus for entry in RECORDED.values()}
    names = [str(ConfigName(language, "tts", 0, corpus)) for language, corpus in sources if corpus not in recorded]
    patterns = list(patterns)
    return [name for name in names if name not in patterns and any(fnmatchcase(name, each) for each in patterns)]


def uninstalled(patterns: Iterable[str], sources: Sources, table: Mapping[str, Scenario] = SCENARIOS) -> list[str]:
    """The scenarios that globs would match, but leave out: the packages that they need are not installed."""
    patterns = list(patterns)
    lacking = [row for row in table.values() if row.perturbs and missing_packages(row)]
    names = {
        row.name: [str(ConfigName(language, row.name, n, corpus)) for language, corpus in sources for n in row.levels]
        for row in lacking
    }
    return [row for row, configs in names.items() if any(fnmatchcase(c, each) for c in configs for each in patterns)]


def available(sources: Sources, table: Mapping[str, Scenario] = SCENARIOS) -> list[Job]:
    """Every config that globs range over: clean, perturbed and recorded ones of the corpora given."""
    jobs = []
    for language, corpus in sources:
        recorded = [table[name] for name, entry in RECORDED.items() if entry.corpus == corpus]
        for scenario in recorded or [table["clean"], *perturbations(table)]:
            named = None if recorded else corpus
            jobs += [Job(ConfigName(language, scenario.name, level, named), scenario) for level in scenario.levels]
    return jobs


def config_names() -> list[str]:
    """The names of all configs of the known corpora: in their languages, those of other corpora in the benchmark's."""
    languages = sorted({language for entry in CORPORA.values() for language in entry.languages})
    sources = {(language, name): None for name, entry in CORPORA.items() for language in entry.languages or languages}
    jobs = [*available(sources), *jobs_of(own_clips_rows(SCENARIOS), sources)]
    spoken = [str(ConfigName(language, "tts", 0, corpus)) for language, corpus in sources]
    return sorted({*(str(job.name) for job in jobs), *spoken})


def own_clips_rows(table: Mapping[str, Scenario]) -> list[Scenario]:
    """The scenarios that make clips of their own before they are perturbed."""
    return [row for row in table.values() if row.from_clips]


def jobs_of(rows: Iterable[Scenario], sources: Sources) -> list[Job]:
    """The configs of some scenarios in the corpora given."""
    return [
        Job(ConfigName(language, row.name, level, corpus), row)
        for language, corpus in sources
        for row in rows
        if not row.languages or language in row.languages
        for level in row.levels
    ]


def job_named(name: str, table: Mapping[str, Scenario] = SCENARIOS) -> Job:
    """The config of that name, checked against the scenario table."""
    parts = parse(name)
    scenario = find(parts.scenario, table)
    if scenario.maker == "attack":
        raise UserError(f"'{name}' is adversarial and belongs to one model; make it with `srb attack {scenario.name}`")
    if parts.model:
        raise UserError(f"'{name}' names a model, and only adversarial configs belong to one; leave it out")
    if parts.value is not None:
        scenario = scenario.at(parts.value, parts.parameter)
    if scenario.graded and not parts.severity:
        raise UserError(f"'{name}' needs a severity: {name}_sev1 to {name}_sev{len(scenario.severities)}")
    scenario.value(parts.severity)
    if scenario.perturbs:
        check_can_perturb(scenario)
    return Job(parts, scenario)


def check_limit(limit: int | None) -> None:
    """Refuse a number of clips below 1."""
    if limit is not None and (not isinstance(limit, Integral) or limit < 1):
        raise UserError(f"a limit is a whole number of clips, 1 or more, not {limit!r}")


def clips(
    selection: ConfigName,
    sources: Sources,
    limit: int | None = None,
    tts: str | None = None,
    *,
    spoken: Path | None = None,
    seed: str = "",
) -> tuple[Corpus, list[Utterance]]:
    """The corpus that a group of configs is made from, and its clips: as recorded, spoken, or made of them.

    Spoken clips are kept in the folder `spoken`, if there is one, so that each is synthesised once. `seed` is that of a
    private edition, whose voices are drawn anew.
    """
    check_limit(limit)
    language, scenario = selection.language, selection.scenario
    corpus = open_corpus(sources.get(selection.data), *selection.data, scenario)
    chosen = corpus.utterances[:limit]
    if scenario == "tts":
        return corpus, list(speak_all(chosen, tts or default_engine(language), spoken, seed))
    row = SCENARIOS.get(scenario)
    if row and row.from_clips:
        return corpus, list(row.from_clips(chosen, corpus.utterances, row, selection.severity, seed))
    return corpus, chosen


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
    voices: Material | None


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


LIBRARIES = ("speech-robust-bench", "numpy", "scipy", "numba", "soundfile", "soxr", "pyarrow")


@cache
def library_version(library: str) -> str:
    return metadata.version(library)  # parses a file each time


def material(job: Job, banks: Banks, listing: Listing) -> Material | None:
    """The noises, rooms or voices of a config; None for one that has none."""
    return banks.material(*job.scenario.banks) or listing.voices


def config_inputs(job: Job, corpus: Corpus, listing: Listing, banks: Banks, seed: str) -> Settings:
    """Everything that a config's content depends on and that can change between two runs."""
    scenario, went_in = job.scenario, material(job, banks, listing)
    inputs = {
        "benchmark_version": BENCHMARK_VERSION,
        "software": library_version("speech-robust-bench"),
        "config": str(job.name),
        "value": scenario.value(job.severity),
        "transform": _own_transforms(scenario),
        "bank": went_in and went_in.title,
        "recordings": banks.fingerprint(*scenario.banks),
        "corpus": corpus.name,
        "clips": [listing.digest, listing.count],
    }
    later = {"scenario_version": later_version(scenario.edition_with(banks.version)), "seed": seed}
    return {**inputs, **{key: value for key, value in later.items() if value}}


def _own_transforms(scenario: Scenario) -> str | None:
    """The functions of a scenario that are the user's own; those of the table are known by its name and version."""
    own = (row for row in (scenario, *scenario.parts) if row.name not in SCENARIOS and row.function)
    return " + ".join(repr(row.function) for row in own) or None


def fingerprint(inputs: Settings) -> str:
    """One hash over everything that goes into a config."""
    return hashlib.sha256(json.dumps(inputs, sort_keys=True, default=str).encode()).hexdigest()
