"""Fewer clips for the next recogniser, where others were run on everything: `srb anchors` from Python."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.builders.suites import AnchorsFile, load
from speech_robust_bench.core.categories import AVERAGED
from speech_robust_bench.core.options import Options, normaliser_option, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.extensions.sampling import anchors
from speech_robust_bench.options import Place
from speech_robust_bench.scoring.runs import open_run


@dataclass(frozen=True)
class AnchorOptions(Options):
    """How many anchors to choose, and how."""

    clips: int = option(300, "perturbed clips to choose, beside all clean ones", metavar="N")
    clean: str | None = option(None, "clean config of the corpus, where the runs have several", metavar="CONFIG")
    normaliser: str = normaliser_option()
    seed: int = option(0, "seed of the choice; another seed draws other clips")


@dataclass(frozen=True)
class AnchorPrediction:
    """The predicted NWERD on all clips, with its standard error, for each category and for their average."""

    scores: dict[str, tuple[float, float]]
    configs: int  # that the anchors stand for
    perturbed_clips: int  # that were run, of them
    clean_clips: int
    speakers: int | None  # of the clean clips, where they are known

    @property
    def missing(self) -> list[str]:
        """The categories of the average that the anchors do not cover."""
        return [category for category in AVERAGED if category not in self.scores]

    def interval(self, name: str) -> tuple[float, float]:
        """The 95 % interval of a score."""
        value, error = self.scores[name]
        return value - anchors.Z * error, value + anchors.Z * error


def choose_anchors(
    runs: Sequence[Place],
    suite: Place,
    anchor_options: AnchorOptions = AnchorOptions(),
    *,
    progress: bool = True,
) -> dict[str, float]:
    """Choose the clips on which recognisers differ most, and write them as a suite for `srb run --suite FILE`.

    Args:
        runs: three or more run folders, each on all clips of the same configs.
        suite: the JSON file to write; an existing file with other anchors is not replaced.
        anchor_options: how many clips, of which corpus, by which normaliser and seed.
        progress: show progress.

    Returns:
        The error of each run's average NWERD, in points, when it is predicted from the other runs.
    """
    opened, options = [open_run(str(run)) for run in runs], anchor_options
    with progress_bar(not progress) as bar:
        task = bar.add_task("reading runs, predicting each from the others", total=len(opened) + anchors.DRAWS)
        return anchors.choose(
            opened,
            Path(suite),
            options.clips,
            normaliser=options.normaliser,
            seed=options.seed,
            clean=options.clean,
            advance=lambda: bar.advance(task),
        )


def predict_from_anchors(run: Place, runs: Sequence[Place], suite: Place, *, progress: bool = True) -> AnchorPrediction:
    """Predict the score on all clips of a run that has only the anchors.

    Args:
        run: the run folder of the new recogniser, made with `srb run --suite FILE`.
        runs: the run folders that the anchors were chosen from.
        suite: the file of `choose_anchors`.
        progress: show progress.
    """
    opened, about = [open_run(str(known)) for known in runs], load(os.fspath(suite)).about
    with progress_bar(not progress) as bar:
        task = bar.add_task("reading runs", total=len(opened) + 1)
        new = open_run(str(run))
        scores = anchors.predict(new, opened, about, lambda: bar.advance(task))
    assert isinstance(about, AnchorsFile)  # `predict` refuses others
    clean = new.read(about.clean)
    speakers = {line.speaker for line in clean.lines} - {None}
    perturbed = sum(map(len, about.cells.values()))
    return AnchorPrediction(scores, len(about.configs), perturbed, len(clean.lines), len(speakers) or None)
