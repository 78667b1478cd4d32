"""Everything that the page shows, read once: results, word-level studies, model metadata and audio."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from srb.builders.errors import UserError
from srb.diagnosis.reportcard import aligned, card
from srb.metrics.results import Json, check_comparable, load
from srb.metrics.runs import open_run
from srb.report.metadata import About
from srb.report.words import Study, study

Key = tuple[str, str]  # config, clip


@dataclass(frozen=True)
class Model:
    """One run: its results, its place in the palette, and its words and report cards by language."""

    index: int
    name: str
    results: Json
    studies: Mapping[str, Study]
    about: About = field(default_factory=About)
    cards: Mapping[str, Json] = field(default_factory=dict)

    def rows(self, language: str) -> Json | None:
        """Its tables of one language."""
        return self.results["languages"].get(language)

    def average(self, language: str) -> Json | None:
        """Its average NWERD."""
        rows = self.rows(language)
        return rows["overall"]["nwerd"] if rows else None


@dataclass(frozen=True)
class Report:
    """What a page is made from; models are in the order of their average NWERD."""

    models: Sequence[Model]
    audio: Mapping[Key, str] = field(default_factory=dict)

    @property
    def languages(self) -> list[str]:
        """Every language that some model was scored in."""
        return sorted({language for model in self.models for language in model.results["languages"]})

    def ranked(self, language: str) -> list[Model]:
        """The models that have the language, the most robust first."""
        have = [model for model in self.models if model.rows(language)]
        return sorted(have, key=lambda model: _value(model.average(language)))


def _value(score: Json | None) -> float:
    return float("inf") if score is None else score["value"]


def gather(
    folders: Sequence[str | Path],
    *,
    meta: Mapping[str, About] | None = None,
    data: str | None = None,
    embed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Report:
    """Read runs, scoring those that have no results yet; embed the audio of the `embed` worst clips of each.

    `advance` is called twice for each run: when it is scored, and when its words have been studied.
    """
    results = []
    for folder in folders:
        results.append(load(folder))
        advance()
    check_comparable(results)
    names = _names(results, folders)
    meta = meta or {}
    unknown = sorted(set(meta) - {*names, *(made["model"] for made in results)})
    if meta and len(unknown) == len(meta):
        raise UserError(f"--meta: none of its models is here ({', '.join(unknown[:3])}); here are {', '.join(names)}")
    order = sorted(range(len(results)), key=lambda i: (_mean_average(results[i]), names[i]))
    models = []
    for index, i in enumerate(order):
        about = meta.get(names[i]) or meta.get(results[i]["model"]) or About()
        studies, cards = _look(folders[i], results[i], max(embed, 6))
        models.append(Model(index, names[i], results[i], studies, about, cards))
        advance()
    return Report(models, _audio(models, data, embed) if data and embed else {})


def _names(results: Sequence[Json], folders: Sequence[str | Path]) -> list[str]:
    """Names of models, or of folders where two runs are of one model."""
    names = [str(made["model"]) for made in results]
    return [Path(f).name if names.count(n) > 1 else n for n, f in zip(names, folders, strict=True)]


def _mean_average(made: Json) -> float:
    values = [_value(rows["overall"]["nwerd"]) for rows in made["languages"].values()]
    return sum(values) / len(values) if values else float("inf")


def _look(folder: str | Path, made: Json, clips: int) -> tuple[dict[str, Study], dict[str, Json]]:
    """The words and clips, and the system report card, of every language that has clips with speech."""
    run = open_run(folder)
    studies, cards = {}, {}
    for language in sorted({entry["language"] for entry in made["configs"].values()}):
        heard = aligned(run, language, made["options"]["normaliser"])
        if heard.vocabulary.unit == "word":
            studies[language] = study(heard, most_clips=clips)
        cards[language] = card(heard)
    return studies, cards


def _audio(models: Sequence[Model], where: str, most: int) -> dict[Key, str]:
    """The shown clips and their originals as data URLs; the FLAC of the config as it is, nothing encoded again."""
    from srb.models.data import open_data

    wanted: dict[str, set[str]] = {}
    for model in models:
        for one in model.studies.values():
            for clip in one.clips[:most]:
                for config in (clip.config, model.results["configs"][clip.config]["source"]):
                    if config:
                        wanted.setdefault(config, set()).add(clip.id)
    data = open_data(where)
    there = set(data.names())
    return {
        (config, clip): "data:audio/flac;base64," + b64encode(content).decode()
        for config, ids in wanted.items()
        if config in there
        for clip, content in _stored(data.config(config), ids)
    }


def _stored(config: Any, ids: set[str]) -> list[tuple[str, bytes]]:
    """The audio files of some clips of a config, as they are stored."""
    found = []
    for group in config.groups:
        rows = group.read([config.columns["id"], "audio"])
        for clip, audio in zip(rows.column(0).to_pylist(), rows.column(1), strict=True):
            if clip in ids and audio["bytes"].as_py():
                found.append((clip, audio["bytes"].as_py()))
    return found
