"""Which configs to build, from which clips: names and globs become groups of configs that share a corpus."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from pathlib import Path

from speech_robust_bench.builders.corpora import CORPORA, RECORDED, Corpus, Utterance, open_corpus
from speech_robust_bench.builders.scenarios import (
    SCENARIOS,
    Scenario,
    check_can_perturb,
    find,
    missing_packages,
    perturbations,
)
from speech_robust_bench.builders.tts import default_engine, speak_all
from speech_robust_bench.core.about import install_hint
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import ConfigName, parse

DEMO = {("en", "demo"): None, ("es", "demo"): None}
Sources = Mapping[tuple[str, str], str | None]  # (language, corpus) -> folder or dataset; None for what is built in


@dataclass(frozen=True)
class Job:
    """One config to build."""

    name: ConfigName
    scenario: Scenario

    @property
    def severity(self) -> int:
        return self.name.severity

    @property
    def selection(self) -> tuple[str, str, str | None]:
        """What decides which clips it is made from: language, corpus and, unless they are all of it, the scenario."""
        if self.scenario.name in RECORDED:
            return self.name.language, RECORDED[self.scenario.name].corpus, self.scenario.name
        own_clips = self.scenario.from_clips or self.scenario.maker == "speech synthesis"
        return self.name.language, str(self.name.corpus), self.name.level if own_clips else None

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
    selection: tuple[str, str, str | None],
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
    language, name, scenario = selection
    check_limit(limit)
    corpus = open_corpus(sources.get((language, name)), language, name, scenario)
    chosen = corpus.utterances[:limit]
    if scenario == "tts":
        return corpus, list(speak_all(chosen, tts or default_engine(language), spoken, seed))
    if scenario and (level := parse(f"{language}_{scenario}")).scenario in SCENARIOS:
        row = SCENARIOS[level.scenario]
        if row.from_clips:
            return corpus, list(row.from_clips(chosen, corpus.utterances, row, level.severity, seed))
    return corpus, chosen
