"""Everything that the page shows, read once: results, word-level studies, model metadata and audio."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.diagnosis.report_card import aligned, card
from speech_robust_bench.report import stream_clip
from speech_robust_bench.report.attacked_clips import AttackedClip, attacked_clips
from speech_robust_bench.report.metadata import About
from speech_robust_bench.report.stream_clip import StreamClip
from speech_robust_bench.report.word_study import Study, study
from speech_robust_bench.scoring.ranking import Standing, order
from speech_robust_bench.scoring.results import Json, check_comparable, load
from speech_robust_bench.scoring.runs import open_run
from speech_robust_bench.scoring.stream_conditions import conditions

Key = tuple[str, str]  # config, clip


@dataclass(frozen=True)
class ReportedModel:
    """One run: its results, its place in the palette, and its words and report cards by language."""

    index: int
    name: str
    results: Json
    studies: Mapping[str, Study]
    about: About = field(default_factory=About)
    cards: Mapping[str, Json] = field(default_factory=dict)
    attacked: Sequence[AttackedClip] = ()

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

    models: Sequence[ReportedModel]
    audio: Mapping[Key, str] = field(default_factory=dict)
    population: Mapping[str, float] = field(default_factory=dict)  # group of speakers -> its share
    stream_clips: Mapping[str, StreamClip] = field(default_factory=dict)  # language -> a clip as its words came

    @property
    def languages(self) -> list[str]:
        """Every language that some model was scored in."""
        return sorted({language for model in self.models for language in model.results["languages"]})

    def ranked(self, language: str) -> list[ReportedModel]:
        """The models that have the language, the most robust first; those that are not ranked stand last."""
        return [model for model, _ in self.standings(language)]

    def standings(self, language: str) -> list[tuple[ReportedModel, Standing]]:
        """The same with the standing of each (`scoring.ranking`)."""
        placed = order([model.results for model in self.models], language)
        return [(self.models[i], standing) for i, standing in placed]


def _value(score: Json | None) -> float:
    return float("inf") if score is None else score["value"]


def gather(
    folders: Sequence[str | Path],
    *,
    meta: Mapping[str, About] | None = None,
    data: ConfigSource | None = None,
    embed: int = 0,
    population: Mapping[str, float] | None = None,
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
    unknown = sorted(set(meta) - {*names, *(result["model"] for result in results)})
    if meta and len(unknown) == len(meta):
        raise UserError(f"--meta: none of its models is here ({', '.join(unknown[:3])}); here are {', '.join(names)}")
    order = sorted(range(len(results)), key=lambda i: (_mean_average(results[i]), names[i]))
    models = []
    for index, i in enumerate(order):
        about = meta.get(names[i]) or meta.get(results[i]["model"]) or About()
        studies, cards = _look(folders[i], results[i], max(embed, 6))
        attacked = attacked_clips(folders[i], results[i], data, embed) if data and embed else []
        models.append(ReportedModel(index, names[i], results[i], studies, about, cards, attacked))
        advance()
    clips = _stream_clips(models, [folders[i] for i in order], data if embed else None)
    audio = _audio(models, data, embed, clips) if data and embed else {}
    return Report(models, audio, population or {}, clips)


def _stream_clips(
    models: Sequence[ReportedModel], folders: Sequence[str | Path], data: ConfigSource | None
) -> dict[str, StreamClip]:
    """The clip of each language that is drawn as a timeline, where models were used live."""
    clips = {}
    for language in {language for model in models for language in model.results["languages"]}:
        runs = {
            model.index: open_run(folder)
            for model, folder in zip(models, folders, strict=True)
            if conditions(model.results["configs"], language)
        }
        if clip := stream_clip.choose(runs, language):
            levels = stream_clip.envelope(data, clip.config, clip.id) if data else []
            clips[language] = replace(clip, envelope=levels)
    return clips


def _names(results: Sequence[Json], folders: Sequence[str | Path]) -> list[str]:
    """Names of models, or of folders where two runs are of one model."""
    names = [str(result["model"]) for result in results]
    return [Path(f).name if names.count(n) > 1 else n for n, f in zip(names, folders, strict=True)]


def _mean_average(results: Json) -> float:
    values = [_value(rows["overall"]["nwerd"]) for rows in results["languages"].values()]
    return sum(values) / len(values) if values else float("inf")


def _look(folder: str | Path, results: Json, clips: int) -> tuple[dict[str, Study], dict[str, Json]]:
    """The words and clips, and the system report card, of every language that has clips with speech."""
    run = open_run(folder)
    studies, cards = {}, {}
    for language in sorted({entry["language"] for entry in results["configs"].values()}):
        aligned_run = aligned(run, language, results["options"]["normaliser"])
        if aligned_run.vocabulary.unit == "word":
            studies[language] = study(aligned_run, most_clips=clips)
        cards[language] = card(aligned_run)
    return studies, cards


def _audio(
    models: Sequence[ReportedModel], data: ConfigSource, most: int, streamed: Mapping[str, StreamClip]
) -> dict[Key, str]:
    """The shown clips and their originals as data URLs; the FLAC of the config as it is, nothing encoded again."""
    wanted: dict[str, set[str]] = {}
    for clip in streamed.values():
        wanted.setdefault(clip.config, set()).add(clip.id)
    for model in models:
        for word_study in model.studies.values():
            for worst in word_study.clips[:most]:
                for config in (worst.config, model.results["configs"][worst.config]["source"]):
                    if config:
                        wanted.setdefault(config, set()).add(worst.id)
    there = set(data.names())
    return {
        (config, clip): "data:audio/flac;base64," + b64encode(content).decode()
        for config, ids in wanted.items()
        if config in there
        for clip, content in data.config(config).stored_audio(ids)
    }
