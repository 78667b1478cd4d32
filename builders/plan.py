"""Which configs to build, from which clips: names and globs become groups of configs that share a corpus."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

from srb.builders.corpora import RECORDED, Corpus, open_corpus
from srb.builders.errors import UserError
from srb.builders.names import ConfigName, parse
from srb.builders.scenarios import SCENARIOS, Scenario, find, nearest, perturbations

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
        """What decides which clips it is made from: language, corpus and, for recorded scenarios, the scenario."""
        if self.scenario.name in RECORDED:
            return self.name.language, RECORDED[self.scenario.name].corpus, self.scenario.name
        return self.name.language, str(self.name.corpus), None


def plan(patterns: Iterable[str], sources: Sources, table: Mapping[str, Scenario] = SCENARIOS) -> list[Job]:
    """The configs that names and globs mean, in a fixed order and each once."""
    known = {str(job.name): job for job in available(sources, table)}
    chosen: dict[str, Job] = {}
    for pattern in patterns:
        if any(mark in pattern for mark in "*?["):
            found = {name: job for name, job in known.items() if fnmatchcase(name, pattern)}
            if not found:
                corpora = ", ".join(f"{language}-{corpus}" for language, corpus in sources)
                raise UserError(
                    f"no config matches '{pattern}'{nearest(pattern, known)}; the corpora at hand are {corpora}"
                )
            chosen |= found
        else:
            job = job_named(pattern, table)
            chosen[str(job.name)] = job
    return [chosen[name] for name in sorted(chosen)]


def available(sources: Sources, table: Mapping[str, Scenario] = SCENARIOS) -> list[Job]:
    """Every config that globs range over: clean, perturbed and recorded ones of the corpora at hand."""
    jobs = []
    for language, corpus in sources:
        recorded = [table[name] for name, entry in RECORDED.items() if entry.corpus == corpus]
        for scenario in recorded or [table["clean"], *perturbations(table)]:
            named = None if recorded else corpus
            jobs += [Job(ConfigName(language, scenario.name, level, named), scenario) for level in scenario.levels]
    return jobs


def job_named(name: str, table: Mapping[str, Scenario] = SCENARIOS) -> Job:
    """The config of that name, checked against the scenario table."""
    parts = parse(name)
    scenario = find(parts.scenario, table)
    if scenario.maker == "attack":
        raise UserError(f"'{name}' is adversarial and belongs to one model; make it with `srb attack {scenario.name}`")
    if scenario.graded and not parts.severity:
        raise UserError(f"'{name}' needs a severity: {name}_sev1 to {name}_sev{len(scenario.severities)}")
    scenario.value(parts.severity)
    return Job(parts, scenario)


def open_selection(selection: tuple[str, str, str | None], sources: Sources) -> Corpus:
    """The corpus, or the part of it, that a group of configs is made from."""
    language, corpus, scenario = selection
    return open_corpus(sources.get((language, corpus)), language, corpus, scenario)
