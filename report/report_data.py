"""Everything that the page shows, read once: results, word-level studies, attacked clips, facts about models, audio.

Facts about models stand in a CSV file: parameters, hours of training, architecture, family.
"""

from __future__ import annotations

import math
import re
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from speech_robust_bench.builders.configs import ConfigSource
from speech_robust_bench.builders.gallery import spectrogram_png
from speech_robust_bench.core.audio import encode_flac, read, to_pcm16
from speech_robust_bench.core.card_records import ReportCard
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.records import Prediction
from speech_robust_bench.core.result_records import LanguageResults, RunResults, ScoreValue
from speech_robust_bench.core.untrusted_files import csv_rows, read_text
from speech_robust_bench.report.word_study import Study, study
from speech_robust_bench.scoring.ranking import Standing, candidate_of, order, rank, refusal_of_results
from speech_robust_bench.scoring.report_card import AlignedRun, aligned, card
from speech_robust_bench.scoring.results import check_comparable, load
from speech_robust_bench.scoring.runs import Predictions, open_run
from speech_robust_bench.scoring.scoring import error_rate
from speech_robust_bench.scoring.word_errors import looped_insertions

COLUMNS = {
    "model": ("model", "name"),
    "parameters": ("parameters", "params", "size"),
    "hours": ("hours", "training_hours", "data_hours"),
    "architecture": ("architecture", "arch", "type"),
    "family": ("family",),
}
_UNITS = {"": 1.0, "k": 1e3, "m": 1e6, "b": 1e9, "g": 1e9}


@dataclass(frozen=True)
class About:
    """One line of the file; None where it says nothing."""

    parameters: float | None = None
    hours: float | None = None
    architecture: str | None = None
    family: str | None = None


def read_metadata(path: str | Path) -> dict[str, About]:
    """Model -> what is known about it. `244M` and `1.5B` are understood."""
    lines = [row for _, row in csv_rows(read_text(path), (), path)]
    if not lines or _metadata_value(lines[0], "model") is None:
        raise UserError(f"--meta {path}: no column 'model'; its columns are {', '.join(COLUMNS)}")
    return {
        str(_metadata_value(line, "model")): About(
            _number(path, _metadata_value(line, "parameters")),
            _number(path, _metadata_value(line, "hours")),
            _metadata_value(line, "architecture"),
            _metadata_value(line, "family"),
        )
        for line in lines
    }


def _metadata_value(line: dict[str, str], column: str) -> str | None:
    lower = {key.lower(): value for key, value in line.items()}
    text = next((lower[name] for name in COLUMNS[column] if lower.get(name)), None)
    return text.strip() or None if text else None


def _number(path: str | Path, text: str | None) -> float | None:
    if text is None:
        return None
    match = re.fullmatch(r"([0-9][0-9_,]*\.?[0-9]*(?:e[0-9]+)?)\s*([kmbg]?)", text.lower())
    value = float(re.sub("[_,]", "", match[1])) * _UNITS[match[2]] if match else 0.0
    if not 0 < value < math.inf:
        raise UserError(f"--meta {path}: '{text}' is not a positive number such as 244M or 680000")
    return value


Key = tuple[str, str]  # config, clip


@dataclass(frozen=True)
class LoopShare:
    """How many of the words that a recogniser inserted are in loops, and its NWER without those."""

    inserted: int
    looped: int
    nwer: float | None

    @classmethod
    def of(cls, aligned_run: AlignedRun, results: RunResults) -> LoopShare:
        """Of the configs of one language."""
        looped = {read.config: int(looped_insertions(each).sum()) for read, each in aligned_run.speech}
        counts = {read.config: each.counts for read, each in aligned_run.speech}
        candidate = candidate_of(results, aligned_run.language)
        rows = [
            replace(row, wer=row.wer - float(error_rate(looped[row.config], counts[row.config].lengths.sum())))
            for row in candidate.configs
            if row.config in looped
        ]
        (standing,) = rank([replace(candidate, configs=rows)])
        inserted = sum(int(each.insertions.sum()) for each in counts.values())
        return cls(inserted, sum(looped.values()), standing.nwer)


@dataclass(frozen=True)
class ReportedModel:
    """One run: its results, its place in the palette, and its words and report cards by language."""

    index: int
    name: str
    results: RunResults
    studies: Mapping[str, Study]
    about: About = field(default_factory=About)
    cards: Mapping[str, ReportCard] = field(default_factory=dict)
    loops: Mapping[str, LoopShare] = field(default_factory=dict)  # by language
    attacked: Sequence[AttackedClip] = ()
    folder: Path | None = None  # of the run

    def rows(self, language: str) -> LanguageResults | None:
        """Its tables of one language, if it was run on it."""
        return self.results.languages.get(language)

    def tables(self, language: str) -> LanguageResults:
        """Its tables of a language that it was run on."""
        return self.results.languages[language]

    def average(self, language: str, measure: str = "nwerd") -> ScoreValue | None:
        """Its average NWERD, or the NWER that ranks."""
        rows = self.rows(language)
        return rows.overall.score(measure) if rows else None


@dataclass(frozen=True)
class Report:
    """What a page is made from; models are in the order of their average NWER."""

    models: Sequence[ReportedModel]
    audio: Mapping[Key, str] = field(default_factory=dict)
    population: Mapping[str, float] = field(default_factory=dict)  # group of speakers -> its share
    data: ConfigSource | None = None  # where audio for the page is; None where it gets none

    @property
    def languages(self) -> list[str]:
        """Every language that some model was scored in."""
        return sorted({language for model in self.models for language in model.results.languages})

    def ranked(self, language: str) -> list[ReportedModel]:
        """The models that have the language, the most robust first; those that are not ranked stand last."""
        return [model for model, _ in self.standings(language)]

    def standings(self, language: str) -> list[tuple[ReportedModel, Standing]]:
        """The same with the standing of each (`scoring.ranking`)."""
        placed = order([model.results for model in self.models], language)
        return [(self.models[i], standing) for i, standing in placed]

    def judged(self, language: str) -> list[ReportedModel]:
        """The models that the guard of verdicts lets pass: of others no plot says that they are better than any."""
        return [model for model in self.ranked(language) if not refusal_of_results(model.results, language)]


def _value(score: ScoreValue | None) -> float:
    return float("inf") if score is None else score.value


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
    unknown = sorted(set(meta) - {*names, *(result.model for result in results)})
    if meta and len(unknown) == len(meta):
        raise UserError(f"--meta: none of its models is here ({', '.join(unknown[:3])}); here are {', '.join(names)}")
    order = sorted(range(len(results)), key=lambda i: (_mean_average(results[i]), names[i]))
    models = []
    for index, i in enumerate(order):
        about = meta.get(names[i]) or meta.get(results[i].model) or About()
        studies, cards, loops = _look(folders[i], results[i], max(embed, 6))
        attacked = attacked_clips(folders[i], results[i], data, embed) if data and embed else []
        models.append(
            ReportedModel(index, names[i], results[i], studies, about, cards, loops, attacked, Path(folders[i]))
        )
        advance()
    audio = _audio(models, data, embed) if data and embed else {}
    return Report(models, audio, population or {}, data if embed else None)


def _names(results: Sequence[RunResults], folders: Sequence[str | Path]) -> list[str]:
    """Names of models, or of folders where two runs are of one model."""
    names = [result.model for result in results]
    return [Path(f).name if names.count(n) > 1 else n for n, f in zip(names, folders, strict=True)]


def _mean_average(results: RunResults) -> float:
    values = [_value(rows.overall.nwer) for rows in results.languages.values()]
    return sum(values) / len(values) if values else float("inf")


def _look(
    folder: str | Path, results: RunResults, clips: int
) -> tuple[dict[str, Study], dict[str, ReportCard], dict[str, LoopShare]]:
    """The words and clips, the system report card, and the loops, of every language that has clips with speech."""
    run = open_run(folder)
    studies, cards, loops = {}, {}, {}
    for language in sorted({entry.language for entry in results.configs.values()}):
        aligned_run = aligned(run, language, results.options.normaliser)
        if aligned_run.vocabulary.unit == "word":
            studies[language] = study(aligned_run, most_clips=clips)
        cards[language] = card(aligned_run)
        loops[language] = LoopShare.of(aligned_run, results)
    return studies, cards, loops


def _audio(models: Sequence[ReportedModel], data: ConfigSource, most: int) -> dict[Key, str]:
    """The shown clips and their originals."""
    wanted: dict[str, set[str]] = {}
    for model in models:
        for word_study in model.studies.values():
            for worst in word_study.clips[:most]:
                for config in (worst.config, model.results.configs[worst.config].source):
                    if config:
                        wanted.setdefault(config, set()).add(worst.id)
    return audio_urls(data, wanted)


def audio_urls(data: ConfigSource, wanted: Mapping[str, set[str]]) -> dict[Key, str]:
    """Clips by config as data URLs; the FLAC of the config as it is, nothing encoded again."""
    there = set(data.names())
    return {
        (config, clip): "data:audio/flac;base64," + b64encode(content).decode()
        for config, ids in wanted.items()
        if config in there
        for clip, content in data.config(config).stored_audio(ids)
    }


PEAK = 0.5  # of the added signal as it is played


@dataclass(frozen=True)
class AttackedClip:
    """One clip of an adversarial config; sounds and pictures are data URLs."""

    config: str
    id: str
    text: str
    clean_hypothesis: str | None
    hypothesis: str | None
    target: str | None
    clean: str
    attacked: str
    added: str
    gain_db: float  # by which the added signal was raised to be heard
    spectrograms: Mapping[str, str]  # what it shows -> PNG


def attacked_clips(folder: str | Path, results: RunResults, data: ConfigSource, most: int) -> list[AttackedClip]:
    """The most damaged clip of each adversarial config of a run whose audio is at hand, at most `most`."""
    run, there = open_run(folder), set(data.names())
    shown: list[AttackedClip] = []
    for config in run.configs:
        entry = results.configs.get(config)
        source = entry.source if entry and entry.attack and parse(config).model else None
        if source is None or not {config, source} <= there or len(shown) == most:
            continue
        predictions = run.read(config)
        worst = _worst(predictions, results.options.normaliser)
        sounds = [dict(data.config(name).stored_audio({worst.id})).get(worst.id) for name in (source, config)]
        if sounds[0] is None or sounds[1] is None:
            continue
        clean = run.read(source).lines if source in run.configs else []
        clean_texts = {line.id: line.pred_text for line in clean}
        shown.append(_clip(config, worst, clean_texts.get(worst.id), sounds[0], sounds[1]))
    return shown


def _worst(predictions: Predictions, normaliser: str) -> Prediction:
    errors = predictions.count(normaliser).counts.errors
    return predictions.lines[int(np.argmax(errors))]


def _clip(config: str, line: Prediction, clean_hypothesis: str | None, clean: bytes, attacked: bytes) -> AttackedClip:
    before, after = read(clean), read(attacked)
    length = min(len(before), len(after))
    change = after[:length] - before[:length]
    gain = PEAK / max(float(np.abs(change).max(initial=0)), 1e-9)
    pictures = {"clean": before, "attacked": after, "added": change}
    return AttackedClip(
        config,
        line.id,
        line.text or "",
        clean_hypothesis,
        line.pred_text,
        line.target,
        _url("audio/flac", clean),
        _url("audio/flac", attacked),
        _url("audio/flac", encode_flac(to_pcm16(change * np.float32(gain)))),
        20 * float(np.log10(gain)),
        {name: _url("image/png", spectrogram_png(samples)) for name, samples in pictures.items()},
    )


def _url(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{b64encode(content).decode()}"
