"""Suites: named parts of the benchmark that stand for the whole, `srb run --suite fast`.

A suite is a versioned file, `data/<name>.json`: its configs by category, as scenario and severity, and how many clips
it takes. Clips are chosen by their ids alone, so that everybody who has the same corpus takes the same ones, and a
suite works with any corpus. To add a suite, add its file and its row here. `paper` and `paper-lite` follow from the
scenario table. A file that names every clip, as `srb anchors` writes it, is a suite too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from typing import Any

from speech_robust_bench.builders.scenarios import SCENARIOS
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.errors import UserError, did_you_mean
from speech_robust_bench.core.names import ConfigName, default_corpus, parse
from speech_robust_bench.core.records import Record, Whole, decode
from speech_robust_bench.core.result_records import always
from speech_robust_bench.core.untrusted_files import read_text

SUITES = {
    "paper": "the paper's benchmark on one corpus: clean speech and 25 scenarios at 4 severities, all clips",
    "paper-lite": "the same 101 configs, 2,600 clips: 200 of clean speech and 24 of every other config",
    "fast": "ten configs, all clips: ranks recognisers as the paper's Table 1 does",
    "lite": "300 clips over every scenario of the average: a first look, with wide intervals",
    "ood": "other languages and spontaneous speech: OOD-ASR of SUPERB-SG",
}

PAPER_LITE = {"pool": 200, "clips": 24}  # 1 % of what test-clean has in the 100 perturbed configs
LEAST_CHANCE = 1e-9  # of a clip to be drawn


class SuiteFile(Record, frozen=True, kw_only=True):
    """What a suite is, as the files in data/suites say it."""

    name: str | None = None
    version: Whole = always(1)
    made_by: str | None = None
    source: str | None = None
    configs: dict[str, list[str]]  # scenario and severity, by category
    corpora: dict[str, tuple[str, str]] | None = None  # language and corpus, by the name that the paper gives the task
    languages: list[str] | None = None  # that it was measured on
    clips: dict[str, Whole] | None = None  # of a config in each category
    pool: Whole | None = None  # clips of the corpus that these are taken from
    measured: Any = None  # how well it stands for the whole benchmark
    simulated: Any = None
    summary: list[str] | None = None


class AnchorsFile(Record, frozen=True, kw_only=True):
    """A file of `srb anchors`: the clips of each config, and the chance that each had to be drawn."""

    name: str = always("anchors")
    version: str
    models: list[str]
    normaliser: str
    clean: str
    configs: list[str]
    clips_sha256: str
    cells: dict[str, dict[str, float]]


@dataclass(frozen=True)
class Suite:
    """Some configs, and some clips of each.

    `pool` clips are taken of the corpus, and clean speech is run on all of them; every other config has as many of the
    pool as `clips` says of its category, the next ones in turn. Without a pool, all clips are taken. Anchors
    name their configs and the clips of each, and clean speech is run on all clips.
    """

    name: str
    about: SuiteFile | AnchorsFile

    @property
    def label(self) -> str:
        """What run.json and results.json call it: the name and the version."""
        return f"{self.name}-{self.about.version}"

    @cached_property
    def members(self) -> list[str]:
        """Scenario and severity of every config but clean speech."""
        if isinstance(self.about, AnchorsFile):
            return [parse(config).level for config in self.about.cells]
        return [member for members in self.about.configs.values() for member in members]

    @property
    def corpora(self) -> dict[str, tuple[str, str]]:
        """The corpora that it is of, if it is of some only: language and name, by the name of the task."""
        return {} if isinstance(self.about, AnchorsFile) else self.about.corpora or {}

    @property
    def takes_clips(self) -> bool:
        """Whether it is of some clips only."""
        return isinstance(self.about, SuiteFile) and self.about.pool is not None

    @cached_property
    def _clips(self) -> dict[str, int]:
        """How many clips of the pool each config has."""
        if isinstance(self.about, AnchorsFile):
            return {config: len(clips) for config, clips in self.about.cells.items()}
        clips, configs = self.about.clips or {}, self.about.configs
        return {member: clips[category] for category, members in configs.items() for member in members}

    def configs(self, corpora: Iterable[tuple[str, str | None]], *, tts: bool = True) -> list[str]:
        """Its configs on some corpora, given as language and name, clean speech first; `tts` is false where nothing
        speaks."""
        if isinstance(self.about, AnchorsFile):
            return [self.about.clean, *self.about.cells]
        corpora = list(corpora)
        if own := list(self.corpora.values()):
            if not set(own) & set(corpora):
                wanted = ", ".join(f"{language}-{corpus}" for language, corpus in own)
                raise UserError(f"the suite '{self.name}' is of the corpora {wanted}; none of them is here")
            usual = {(language, default_corpus(language)) for language, _ in own}  # to compare with
            corpora = [pair for pair in corpora if pair in own or pair in usual]
        if languages := self.about.languages:
            others = sorted({language for language, _ in corpora} - set(languages))
            corpora = [pair for pair in corpora if pair[0] in languages]
            if others and not corpora:
                raise UserError(
                    f"the suite '{self.name}' was measured on {', '.join(languages)} alone, not on "
                    f"{', '.join(others)}; take --until there, which needs no measured suite"
                )
        prefixes = [str(ConfigName(language, "", corpus=corpus)) for language, corpus in corpora]
        members = [member for member in ("clean", *self.members) if tts or member != "tts"]
        return [f"{prefix}{member}" for prefix in prefixes for member in members]

    def on_data(self, names: Sequence[str]) -> list[str]:
        """Its configs on every corpus that built data has clean speech of."""
        if isinstance(self.about, AnchorsFile):
            return self.configs([])
        clean = [parse(name) for name in names if parse(name).scenario == "clean"]
        return self.configs([(name.language, name.corpus) for name in clean], tts=any("_tts" in name for name in names))

    def choose(self, config: str, ids: Sequence[str]) -> set[str]:
        """The ids of the clips that it takes of a config."""
        if isinstance(self.about, AnchorsFile) and config != self.about.clean:
            wanted = set(self.about.cells[config])
            if missing := sorted(wanted - set(ids)):
                raise UserError(
                    f"{config} has no clip {missing[0]}, which the anchors name; are they of another corpus?"
                )
            return wanted
        if isinstance(self.about, AnchorsFile) or self.about.pool is None:
            return set(ids)
        pool, clips = self.about.pool, self._clips
        ranked = sorted(ids, key=lambda clip: hashlib.sha256(f"{self.label}/{clip}".encode()).digest())[:pool]
        level = parse(config).level
        if level not in clips or len(ranked) <= clips[level]:
            return set(ranked)
        start = sum(clips[member] for member in self.members[: self.members.index(level)])
        return {ranked[place % len(ranked)] for place in range(start, start + clips[level])}


def load(name: str) -> Suite:
    """A suite by its name, or a file that names every clip."""
    if name.endswith(".json"):
        return Suite("anchors", _checked_cells(decode(read_text(name), AnchorsFile, name), name))
    if name in ("paper", "paper-lite"):
        return Suite(name, _paper(sampled=name == "paper-lite"))
    if name not in SUITES:
        raise UserError(f"there is no suite '{name}'; {did_you_mean(name, SUITES)}, or a file of `srb anchors`")
    text = resources.files("speech_robust_bench.builders").joinpath(f"data/suites/{name}.json").read_text("utf-8")
    return Suite(name, decode(text, SuiteFile, f"{name}.json"))


def _paper(sampled: bool) -> SuiteFile:
    """The scenarios of the paper's average that are made from clean clips, by category; all clips, or some of each."""
    configs: dict[str, list[str]] = {category: [] for category in AVERAGED}
    for row in SCENARIOS.values():
        if row.category in configs and row.perturbs:
            configs[row.category] += [f"{row.name}_sev{severity}" for severity in row.levels]
    configs = {category: members for category, members in configs.items() if members}
    if not sampled:
        return SuiteFile(configs=configs, summary=[SUITES["paper"]])
    clips = dict.fromkeys(configs, PAPER_LITE["clips"])
    return SuiteFile(configs=configs, pool=PAPER_LITE["pool"], clips=clips, summary=[SUITES["paper-lite"]])


def _checked_cells(about: AnchorsFile, where: str) -> AnchorsFile:
    """What a file of anchors says, if its parts fit together."""
    if parse(about.clean).scenario != "clean":
        raise UserError(f"{where}: 'clean' is {about.clean}, which is not a clean config")
    for config, clips in about.cells.items():
        if str(parse(config)) != config or str(parse(config).clean) != about.clean or config == about.clean:
            raise UserError(f"{where}: {config} is not made from {about.clean}")
        if config not in about.configs:
            raise UserError(f"{where}: {config} is not one of its configs")
        if not clips:
            raise UserError(f"{where}: {config} has no clips")
        if bad := [str(chance)[:20] for chance in clips.values() if not LEAST_CHANCE <= chance <= 1]:
            raise UserError(f"{where}: {config} has a chance of {bad[0]}; a chance is above 0 and up to 1")
    if not about.cells:
        raise UserError(f"{where}: it names no clips; make it again with `srb anchors`")
    return about
