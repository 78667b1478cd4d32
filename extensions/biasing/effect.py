"""What a list of terms does to a recogniser: two runs on the same clips, one of them with the list.

The clips in which a term is said are the biased set, all others the anti-set, on which the list can only do harm
(Aleksic et al., "Bringing Contextual Information to Google Speech Recognition", Interspeech 2015). The gain is in the
recall of the terms, the harm in false alarms (anti-set clips in which a term is written) and in the WER of the
anti-set. All differences are paired, and tested by flipping signs; Holm's correction is over all tests of a result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from speech_robust_bench.builders.corpora import Corpora
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.names import parse
from speech_robust_bench.core.options import Options, above, at_least, normaliser_option, option, resample_option
from speech_robust_bench.core.records import Prediction, Record, Whole, read, to_json
from speech_robust_bench.core.result_records import ScoreValue
from speech_robust_bench.evaluation import run, run_folder
from speech_robust_bench.models.interface import parse_spec
from speech_robust_bench.models.prompts import fingerprint, read_terms
from speech_robust_bench.options import DataOptions, ModelOptions, Place, RunOptions
from speech_robust_bench.report.html import Html, table, tag
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, number, score, section
from speech_robust_bench.scoring.bootstrap import Units, holm
from speech_robust_bench.scoring.estimate import FEWEST_UNITS, Estimate, ratio
from speech_robust_bench.scoring.measures import Measure
from speech_robust_bench.scoring.runs import Run, open_run
from speech_robust_bench.scoring.scoring import align, normalise
from speech_robust_bench.scoring.verdict_guard import refusal_of_run

RECALL, FALSE_ALARMS, ANTI_WER = FIGURES = ("recall", "false_alarms", "anti_wer")
Verdict = Literal["helps", "harms", "helps and harms", "no clear effect", "no verdict"]


@dataclass(frozen=True)
class BiasingOptions(Options):
    """How two runs are compared."""

    normaliser: str = normaliser_option()
    resample: str = resample_option()
    replicates: int = option(1000, "bootstrap replicates", metavar="N", check=at_least(1))
    level: float = option(0.95, "confidence level of the intervals", check=above(0, 1))
    alpha: float = option(0.05, "significance level after correction", check=above(0, 1))
    seed: int = option(0, "seed of the bootstrap")


class Change(Record, frozen=True, kw_only=True):
    """One figure without the terms, with them, and the difference, in points."""

    without: float
    with_terms: float
    change: ScoreValue
    p: float  # after Holm's correction
    units: Whole  # speakers or clips that the difference is over


class ConfigEffect(Record, frozen=True, kw_only=True):
    """What the terms do on one config."""

    said: Whole  # occurrences of terms in the references
    biased_clips: Whole
    anti_clips: Whole
    unit: str  # speakers or clips
    recall: Change | None
    false_alarms: Change | None
    anti_wer: Change | None
    verdict: Verdict


class BiasingResult(Record, frozen=True, kw_only=True):
    """The effect of a list of terms on every config, `biasing.json`."""

    model: str
    terms: str  # how many, and their hash
    configs: dict[str, ConfigEffect]
    no_verdict: str | None = None  # why nothing is said of this recogniser


def term_counts(text: str, terms: Sequence[tuple[str, ...]]) -> np.ndarray:
    """How often each term stands in a normalised text, word by word.

    >>> term_counts("new york is not new yorkshire", [("new", "york"), ("is",)]).tolist()
    [1, 1]
    """
    words = text.split()
    return np.array(
        [sum(tuple(words[i : i + len(term)]) == term for i in range(len(words) - len(term) + 1)) for term in terms]
    )


def effect(without: Run, with_terms: Run, terms: Sequence[str], options: BiasingOptions) -> BiasingResult:
    """Compare two runs of a recogniser on the configs that both have."""
    shared = [config for config in without.configs if config in with_terms.configs]
    if not shared:
        raise UserError(f"{without.folder} and {with_terms.folder} have no config in common")
    estimates = {config: _estimates(config, without, with_terms, terms, options) for config in shared}
    tested = [each.difference for clips in estimates.values() for each in clips.figures.values()]
    corrected = iter(holm([difference.p for difference in tested]))
    refused = [refusal_of_run(run, options.normaliser) for run in (without, with_terms)]
    why = next(
        (f"{name}: {text}" for name, text in zip(("without terms", "with terms"), refused, strict=True) if text), ""
    )
    return BiasingResult(
        model=without.model,
        terms=fingerprint(list(terms)),
        configs={
            config: _record(clips, {name: next(corrected) for name in clips.figures}, options, bool(why))
            for config, clips in estimates.items()
        },
        no_verdict=why or None,
    )


@dataclass(frozen=True)
class _Figure:
    """A figure of both runs."""

    without: Estimate
    with_terms: Estimate

    @property
    def difference(self) -> Estimate:
        return self.with_terms - self.without


@dataclass(frozen=True)
class _Clips:
    """The figures of one config, and what they are over."""

    said: int
    biased: np.ndarray
    unit: str
    figures: dict[str, _Figure]


def _estimates(config: str, without: Run, with_terms: Run, terms: Sequence[str], options: BiasingOptions) -> _Clips:
    pairs = _paired(config, without, with_terms)
    language = config.split("-")[0].split("_")[0]
    split = [tuple(normalise(term, options.normaliser, language).split()) for term in terms]
    wanted = [term for term in dict.fromkeys(split) if term]

    def counts(texts: Sequence[str]) -> np.ndarray:
        rows = [term_counts(normalise(text, options.normaliser, language), wanted) for text in texts]
        return np.array(rows).reshape(len(texts), len(wanted))

    references = [line.text or "" for line, _ in pairs]
    said = counts(references)
    biased: np.ndarray = np.asarray(said.any(axis=1))
    units = Units.of([line.id for line, _ in pairs], [line.speaker for line, _ in pairs], options.resample)
    how = {"replicates": options.replicates, "seed": options.seed}
    figures: dict[str, list[Estimate]] = {}
    for which in (0, 1):
        texts = [pair[which].transcript for pair in pairs]
        written = counts(texts)
        words = align(references, texts, normaliser=options.normaliser, language=language)
        parts = {
            RECALL: (np.minimum(said, written).sum(axis=1), said.sum(axis=1)),
            FALSE_ALARMS: (~biased & written.any(axis=1), ~biased),
            ANTI_WER: (np.where(biased, 0, words.errors), np.where(biased, 0, words.lengths)),
        }
        for figure, (above_line, below) in parts.items():
            if below.any():
                figures.setdefault(figure, []).append(ratio(units, 1.0 * above_line, 1.0 * below, **how))
    return _Clips(int(said.sum()), biased, units.kind, {name: _Figure(*both) for name, both in figures.items()})


def _paired(config: str, without: Run, with_terms: Run) -> list[tuple[Prediction, Prediction]]:
    """The lines of the clips that both runs have, which must be the same clips."""
    others = {line.id: line for line in with_terms.read(config).transcribed.lines}
    pairs = [(line, others[line.id]) for line in without.read(config).transcribed.lines if line.id in others]
    if not pairs or any(line.text != other.text for line, other in pairs):
        raise UserError(f"{config}: the two runs are not of the same clips; run both on the same data")
    return pairs


def _record(clips: _Clips, p: dict[str, float], options: BiasingOptions, refused: bool) -> ConfigEffect:
    changes = {name: _change(figure, p[name], options) for name, figure in clips.figures.items()}
    return ConfigEffect(
        said=clips.said,
        biased_clips=int(clips.biased.sum()),
        anti_clips=int((~clips.biased).sum()),
        unit=clips.unit,
        verdict="no verdict" if refused else verdict(changes, options.alpha),
        **{name: changes.get(name) for name in FIGURES},
    )


def _change(figure: _Figure, p: float, options: BiasingOptions) -> Change:
    difference = figure.difference
    span = difference.interval(options.level)
    return Change(
        without=round(figure.without.value, 4),
        with_terms=round(figure.with_terms.value, 4),
        change=ScoreValue(value=round(difference.value, 4), interval=span and [round(bound, 4) for bound in span]),
        p=round(p, 6),
        units=difference.resampled.units,
    )


def verdict(changes: dict[str, Change], alpha: float) -> Verdict:
    """What the significant changes say; a set with too few units, or that is missing, leaves it open."""
    if any(name not in changes or changes[name].units < FEWEST_UNITS for name in FIGURES):
        return "no verdict"
    gained, alarmed, lost = (changes[name].p < alpha and changes[name].change.value for name in FIGURES)
    helps, harms = gained > 0, gained < 0 or alarmed > 0 or lost > 0
    if helps and harms:
        return "helps and harms"
    return "helps" if helps else "harms" if harms else "no clear effect"


FILE = "biasing.json"
SUFFIX = "-biased"


def biasing(
    model: str | tuple[Place, Place],
    terms: Place,
    configs: str | Sequence[str] = (),
    *,
    corpus: Corpora = None,
    data: Place | None = None,
    limit: int | None = None,
    out: Place = "runs",
    biasing_options: BiasingOptions = BiasingOptions(),
    data_options: DataOptions = DataOptions(),
    model_options: ModelOptions = ModelOptions(),
    progress: bool = True,
) -> BiasingResult:
    """Measure what a list of terms gains on the clips that contain them, and breaks on the others.

    Args:
        model: a spec whose adapter takes `terms`, or the folders of two runs, without and with terms.
        terms: a file with one term on each line.
        configs, corpus, data, limit: as in `srb.run`.
        out: the folder for both runs, `out/<model>` and `out/<model>-biased`.
        biasing_options: normaliser, intervals, significance level.
        data_options, model_options: as in `srb.run`.
        progress: show progress.

    Returns:
        The effect on every config, which is also written to `biasing.json` of the run with terms.
    """
    expected = read_terms(Path(terms))
    if isinstance(model, str):
        folders = _run_both(model, terms, configs, corpus, data, limit, out, data_options, model_options, progress)
    else:
        folders = Path(model[0]), Path(model[1])
    result = effect(open_run(folders[0]), open_run(folders[1]), expected, biasing_options)
    write_atomically(folders[1] / FILE, to_json(result, indent=2))
    return result


def _run_both(
    model: str,
    terms: Place,
    configs: str | Sequence[str],
    corpus: Corpora,
    data: Place | None,
    limit: int | None,
    out: Place,
    data_options: DataOptions,
    model_options: ModelOptions,
    progress: bool,
) -> tuple[Path, Path]:
    """Run the model without and with terms; the folders."""
    spec = parse_spec(model)
    innermost = parse_spec(spec.wrapped) if spec.wrapped else spec
    if "terms" in innermost.options:
        raise UserError(f"{model}: leave out its terms, --terms gives them to one of the two runs")
    plain = run_folder(model, out, model_options)
    biased = plain.with_name(plain.name + SUFFIX)
    more = f"{'&' if innermost.options else '?'}terms={Path(terms)}"
    known = {name: getattr(model_options, name) for name in ModelOptions.__dataclass_fields__}
    for each, folder in ((model, plain), (model + more, biased)):
        run(
            each,
            configs,
            corpus=corpus,
            data=data,
            limit=limit,
            out=folder,
            data_options=data_options,
            run_options=RunOptions(**{**known, "name": folder.name}),
            progress=progress,
        )
    return plain, biased


LEAD = (
    "The same clips with and without a list of terms. Recall is the share of said terms that were written; a false "
    "alarm is a clip in which a term was written but none was said. Changes are in points, with 95 % intervals."
)
HEADS = (
    "recall, %",
    "change",
    "false alarms, %",
    "change",
    "WER of the other clips, %",
    "change",
    "clips with a term, other clips",
)


def biasing_section(report: Report, language: str) -> Html | None:
    """A row for each config of the runs with terms."""
    rows, reasons = [], []
    for model in report.ranked(language):
        if model.folder is None or not (model.folder / FILE).is_file():
            continue
        result = read(model.folder / FILE, BiasingResult)
        if result.no_verdict:
            reasons.append(tag("p", name(model), f": no verdict, {result.no_verdict}"))
        for config, effect in result.configs.items():
            if parse(config).language != language:
                continue
            changes = [getattr(effect, figure) for figure in FIGURES]
            cells = [
                cell
                for change in changes
                for cell in (number(change and change.with_terms), score(change and change.change))
            ]
            clips = f"{effect.biased_clips}, {effect.anti_clips}"
            rows.append([name(model), config, *cells, clips, effect.verdict])
    if not rows:
        return None
    return section("biasing", "Lists of terms", LEAD, table(["model", "config", *HEADS, "verdict"], rows), *reasons)


BIASING = Measure("biasing", section=f"{__name__}:biasing_section")
