"""Rows that are never stored: the clips of a corpus, listed and checked once, and perturbed when they are asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from speech_robust_bench.builders.banks import Banks
from speech_robust_bench.builders.build import (
    OnError,
    Progress,
    check_clips,
    refuse_unusable,
    report_untranscribed,
)
from speech_robust_bench.builders.corpora import Corpus, Problem
from speech_robust_bench.builders.fingerprints import Listing, config_inputs, fingerprint
from speech_robust_bench.builders.plan import Job, Sources, clips
from speech_robust_bench.builders.row_generator import unencoded_row
from speech_robust_bench.builders.shards import CheckedClip
from speech_robust_bench.core.engines import Engine


@dataclass(frozen=True)
class CheckedClips:
    """The usable clips of a corpus, in its order."""

    corpus: Corpus
    clips: tuple[CheckedClip, ...]

    def fingerprint(self, job: Job, banks: Banks) -> str:
        """What `srb build` would write into the manifest of a config made from these clips."""
        return fingerprint(config_inputs(job, self.corpus, Listing.of(self.clips), banks, seed=""))


def list_clips(
    selection: tuple[str, str, str | None],
    sources: Sources,
    engine: Engine,
    progress: Progress,
    *,
    limit: int | None = None,
    tts: str | None = None,
    on_error: OnError = "stop",
    report: Callable[[Problem], None] = lambda problem: None,
) -> CheckedClips:
    """List the clips that a group of configs is made from, and decode each once to know that it can be."""
    corpus, listed = clips(selection, sources, limit, tts)
    usable, problems = check_clips(corpus, listed, engine, progress)
    for problem in problems:
        report(problem)
    refuse_unusable(corpus, usable, problems, on_error)
    report_untranscribed(corpus, usable, report)
    return CheckedClips(corpus, tuple(usable))


def perturb_clips(job: Job, chosen: Sequence[CheckedClip], banks: Banks) -> list[tuple[np.ndarray, str] | Exception]:
    """The 16-bit samples and the hash of each clip's row; what went wrong with a clip stands in its place."""
    perturbed: list[tuple[np.ndarray, str] | Exception] = []
    for clip in chosen:
        try:
            row, pcm = unencoded_row(job, clip.utterance, clip.load(), banks)
            perturbed.append((pcm, row["sha256"]))
        except Exception as error:  # a file that changed since it was checked is that clip's failure alone
            perturbed.append(error)
    return perturbed


def row_digests(job: Job, chosen: Sequence[CheckedClip], banks: Banks) -> list[str | Exception]:
    """The hash of each perturbed row, without its audio."""
    return [outcome if isinstance(outcome, Exception) else outcome[1] for outcome in perturb_clips(job, chosen, banks)]
