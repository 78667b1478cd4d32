"""What `srb contamination` found of a model: the record, its table and section of the report, and what it means.

The file `contamination.json` lies in the model's run folder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from speech_robust_bench.core.records import NULL, Record, Settings, Whole, read
from speech_robust_bench.core.result_records import RunResults
from speech_robust_bench.extensions.contamination.features import (
    FEWEST_FRESH,
    ClipFeatures,
    Clips,
    auc,
    cross_fit,
    drawn_interval,
    family,
    hits_at_false_alarms,
    permutation_p,
    permuted_aucs,
    refit_error,
    share_interval,
    widened,
)
from speech_robust_bench.report.html import Html, table
from speech_robust_bench.report.report_data import Report
from speech_robust_bench.report.sections.parts import name, section
from speech_robust_bench.scoring.measures import Measure, TableForm
from speech_robust_bench.scoring.verdict_guard import refusal

FILE = "contamination.json"
PERMUTATIONS, FEWER_PERMUTATIONS = 199, 49  # for the p-value; for the width of an interval
LARGEST_P = 0.025  # one-sided, as of a 95 % interval
LOW_LOSS, TRANSCRIPTS, ALL = "low loss", "transcripts", "all"
# what a set of features is computed from; `low loss` is the loss itself, with no regression
SETS = {
    TRANSCRIPTS: ("transcript", "masked"),
    LOW_LOSS: ("loss",),
    "loss and noise": ("loss", "noise"),
    "loss and attack": ("loss", "attack"),
    ALL: ("transcript", "masked", "loss", "noise", "attack"),
}


class Share(Record, frozen=True, kw_only=True):
    """A share from 0 to 1 and its interval; null where there are too few speakers or clips."""

    value: float
    interval: tuple[float, float] | None = NULL


class Separation(Record, frozen=True, kw_only=True):
    """How well a set of features tells suspects from fresh clips."""

    name: str
    features: Whole
    auc: Share
    hits: Share | None = NULL  # at 1 % false alarms; null below 100 fresh clips
    p: float | None = NULL  # of the permutation test; of the last set alone


class Group(Record, frozen=True, kw_only=True):
    """The clips of one side."""

    sources: list[str]
    clips: Whole
    left_out: Whole  # no transcript, too long, or not to be written by the model


class Reference(Record, frozen=True, kw_only=True):
    """The same features of a model that has seen neither side, and by how much its AUC is lower."""

    model: str
    auc: Share
    difference: Share


class Contamination(Record, frozen=True, kw_only=True):
    """What `contamination.json` holds."""

    schema: Whole = 1
    model: str
    revision: str | None = NULL
    options: Settings
    settings: Settings
    access: str
    why: str | None = NULL  # why there are no losses
    suspects: Group
    fresh: Group
    resampled: str
    units: Whole  # speakers or clips of the smaller side
    sets: list[Separation]
    reference: Reference | None = NULL
    no_verdict: str | None = NULL  # why the transcripts of this recogniser tell nothing

    @property
    def headline(self) -> Separation:
        """All features together."""
        return self.sets[-1]

    def set(self, which: str) -> Separation | None:
        """The separation by one set of features."""
        return next((each for each in self.sets if each.name == which), None)


def matrix(clips: Sequence[ClipFeatures], families: Sequence[str]) -> np.ndarray:
    """(clip, feature) of the features of some families; NaN where a clip has none."""
    names = sorted({key for clip in clips for key in clip.features if family(key) in families})
    rows = [[clip.features.get(key) for key in names] for clip in clips]
    return np.array(rows, dtype=float).reshape(len(clips), len(names))


@dataclass(frozen=True, eq=False)
class Judged:
    """The sets of features of one model, and of the last the AUC in every replicate and its error by the fit."""

    sets: list[Separation]
    drawn: np.ndarray
    refit_error: float


def separations(found: Sequence[ClipFeatures], clips: Clips, replicates: int, level: float, seed: int) -> Judged:
    """How well each set of features that the clips have tells the two sides apart."""
    draws = clips.draws(replicates, seed)
    have = {family(name) for clip in found for name in clip.features}
    sets, drawn, error, p = [], np.zeros(0), 0.0, None
    for which in SETS if "loss" in have else (TRANSCRIPTS,):
        if SETS[which][-1] not in have and which not in (TRANSCRIPTS, ALL):
            continue
        values = matrix(found, SETS[which])
        fitted = which != LOW_LOSS
        scores = cross_fit(values, clips) if fitted else -values[:, 0]
        drawn = auc(scores, clips, draws, fitted)
        value = float(auc(scores, clips, within_folds=fitted)[0])
        error, last = 0.0, which in (ALL, *([] if "loss" in have else [TRANSCRIPTS]))
        if fitted:
            permuted = permuted_aucs(values, clips, PERMUTATIONS if last else FEWER_PERMUTATIONS, seed)
            error, p = refit_error(permuted, value), round(permutation_p(permuted, value), 4)
        share = _share(value, drawn, clips.fewest_units, level, error)
        hits = None
        if (~clips.suspect).sum() >= FEWEST_FRESH:
            caught = hits_at_false_alarms(scores, clips, draws)
            hits = _share(hits_at_false_alarms(scores, clips)[0], caught, clips.fewest_units, level)
        sets.append(Separation(name=which, features=values.shape[1], auc=share, hits=hits, p=p if last else None))
    return Judged(sets, drawn, error)


def compare_with_reference(model: str, own: Judged, other: Judged, clips: Clips, level: float) -> Reference:
    """A reference model's AUC, and the difference, replicate by replicate."""
    value = own.sets[-1].auc.value - other.sets[-1].auc.value
    error = float(np.hypot(own.refit_error, other.refit_error))
    bounds = widened(drawn_interval(own.drawn - other.drawn, clips.fewest_units, level), value, error, level)
    return Reference(model=model, auc=other.sets[-1].auc, difference=_rounded(value, bounds))


def _share(value: float, drawn: np.ndarray, units: int, level: float, error: float = 0.0) -> Share:
    bounds = widened(share_interval(value, drawn, units, level), value, error, level)
    return _rounded(value, bounds and (max(0.0, bounds[0]), min(1.0, bounds[1])))


def _rounded(value: float, bounds: tuple[float, float] | None) -> Share:
    return Share(value=round(float(value), 4), interval=bounds and (round(bounds[0], 4), round(bounds[1], 4)))


def refused(clips: Sequence[ClipFeatures]) -> str:
    """Why transcripts tell nothing: the recogniser is degenerate on both sides; empty where it is not."""
    reasons = []
    for suspect in (False, True):
        side = [clip for clip in clips if clip.suspect is suspect]
        wer = 100 * float(np.mean([clip.features["wer"] for clip in side]))
        reasons.append(refusal(wer, float(np.mean([not clip.transcript for clip in side]))))
    return reasons[0] if all(reasons) else ""


def conclusion(result: Contamination) -> str:
    """What may be concluded, and what may not, with the clips that it rests on."""
    if result.no_verdict:
        return f"No verdict: {result.no_verdict}, and only transcripts were used."
    return f"{_meaning(result)} ({result.suspects.clips} suspects, {result.fresh.clips} fresh clips)"


def _meaning(result: Contamination) -> str:
    found, low_loss = result.headline.auc, result.set(LOW_LOSS)
    parts = []
    if found.interval is None:
        return f"Nothing can be concluded: {result.units} {result.resampled} on the smaller side are too few."
    if (result.headline.p or 0) > LARGEST_P:
        parts.append("No sign that the model was trained on the suspects. That does not prove that it was not.")
    elif low_loss and low_loss.auc.value < 0.5:
        parts.append(
            "The model tells the two sides apart, but finds the suspects harder. Training does not explain that."
        )
    elif result.reference is None:
        parts.append(
            "The model treats the suspects differently. Training on them is one explanation; that the two sides differ "
            "as speech is another. Use fresh speech of the same kind, or --reference and a model that has seen neither."
        )
    elif result.reference.difference.interval and result.reference.difference.interval[0] > 0:
        parts.append(
            f"The model tells the two sides apart better than {result.reference.model}, which is taken to have seen "
            "neither: a sign that it was trained on the suspects or on speech close to them."
        )
    else:
        parts.append(
            f"{result.reference.model}, which is taken to have seen neither, tells the two sides apart as well: the "
            "difference lies in the speech, and says nothing about training."
        )
    if result.access == "transcripts":
        parts.append(
            "Only transcripts were used, which tell little: a model may know its training data and not show it."
        )
    return " ".join(parts)


def share_text(share: Share | None) -> str:
    """`0.71 (0.60 to 0.81)`."""
    if share is None:
        return "-"
    bounds = f" ({share.interval[0]:.2f} to {share.interval[1]:.2f})" if share.interval else " (too few to tell)"
    return f"{share.value:.2f}{bounds}"


def _p(found: Separation) -> str:
    return "" if found.p is None else f"{found.p:.3f}"


def lines(result: Contamination) -> list[tuple[str, ...]]:
    """The rows of the table: a set of features, its AUC, its hits, its n."""
    count = f"{result.suspects.clips} + {result.fresh.clips} clips, by {result.resampled}"
    rows: list[tuple[str, ...]]
    rows = [
        (each.name, str(each.features), share_text(each.auc), _p(each), share_text(each.hits), count)
        for each in result.sets
    ]
    if result.reference:
        own = result.reference
        rows.append((f"all, of {own.model}", "", share_text(own.auc), "", "-", count))
        rows.append(("difference", "", share_text(own.difference), "", "-", count))
    return rows


HEADS = ("features", "number", "AUC", "p", "hits at 1 % false alarms", "clips")


def of_folder(folder: Path | None) -> Contamination | None:
    """What was found of the model of a run folder."""
    path = folder / FILE if folder else None
    return read(path, Contamination) if path and path.is_file() else None


def _rows(result: RunResults, folder: Path) -> list[tuple[str, ...]]:
    found = of_folder(folder)
    return lines(found) if found else []


CONTAMINATION = Measure(
    "contamination",
    table=TableForm(
        "contamination",
        "print how well a model tells suspected training data from fresh speech (after `srb contamination`)",
        HEADS,
        _rows,
        "these runs have no contamination.json; `srb contamination` writes it",
        advanced=True,
    ),
    section=f"{__name__}:report_section",
)


LEAD = (
    "How well a model's behaviour distinguishes suspected training data from fresh speech; an AUC of 0.5 means not at "
    "all. Hits are the share of suspects that are caught when at most 1 % of the fresh clips are accused."
)


def report_section(report: Report, language: str) -> Html | None:
    """The section, where some model was tested."""
    tested = [(model, found) for model in report.ranked(language) if (found := of_folder(model.folder))]
    if not tested:
        return None
    rows = [[name(model), *line] for model, found in tested for line in lines(found)]
    conclusions = [[name(model), conclusion(found)] for model, found in tested]
    tables = (table(["model", *HEADS], rows), table(["model", "conclusion"], conclusions))
    return section("contamination", "Was it trained on this speech?", LEAD, *tables)
