"""When a recogniser gets no verdict: the one rule of every command and page that compares recognisers.

A recogniser that writes nothing, or that fails, on clean speech has nothing to lose in noise, so by any difference it
is "robust". And clips that failed say that an endpoint was down, not how robust a recogniser is. Where too much of
either happened, numbers are shown with the reason, and nobody is called better, worse, fair or first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.scoring.aggregate import ConfigCounts
from speech_robust_bench.scoring.runs import Run
from speech_robust_bench.scoring.scoring import Counts

CLEAN_CEILING = 50.0  # points of WER on clean speech; the worst recogniser of the paper's Table 1 has 25.7
EMPTY_CEILING = 0.05  # of the clean clips: failed, or without a word
FAILED_CEILING = 0.05  # of all clips


def refusal(clean_wer: float | None, clean_empty: float = 0.0, failed: float = 0.0, config: str = "") -> str:
    """Why there is no verdict on a recogniser, empty if there may be one.

    `clean_empty` is the share of clean clips without a word, `failed` that of all clips that failed. `config` names the
    clean config where there are several.

    >>> refusal(100.0, 1.0)
    'WER on clean speech is 100.0, above 50'
    >>> refusal(8.0, 0.25), refusal(8.0)
    ('25% of the clean clips have no word, more than 5%', '')
    """
    if clean_wer is not None and clean_wer > CLEAN_CEILING:
        return f"WER on clean speech{config and f' ({config})'} is {clean_wer:.1f}, above {CLEAN_CEILING:g}"
    if failed > FAILED_CEILING:
        return f"{failed:.0%} of the clips failed, more than {FAILED_CEILING:.0%}"
    if clean_empty > EMPTY_CEILING:
        return f"{clean_empty:.0%} of the clean clips have no word, more than {EMPTY_CEILING:.0%}"
    return ""


class Tally(NamedTuple):
    """What the guard looks at in one config; only clean speech has `wer` and `empty`."""

    config: str
    clips: int
    failed: int
    wer: float | None = None
    empty: int = 0  # clips without a word


def refusal_of_tallies(tallies: Iterable[Tally]) -> str:
    """Why there is no verdict on a recogniser; the worst language decides, and in it the worst clean config.

    Means over languages or corpora would hide a clean config of which the recogniser understands nothing.
    """
    by_language: dict[str, list[Tally]] = {}
    for tally in tallies:
        by_language.setdefault(parse(tally.config).language, []).append(tally)
    for language, own in sorted(by_language.items()):
        clips = sum(tally.clips for tally in own)
        wer, config = worst({tally.config: tally.wer for tally in own if tally.wer is not None})
        empty = max((tally.empty / tally.clips for tally in own if tally.clips), default=0.0)
        why = refusal(wer, empty, sum(tally.failed for tally in own) / clips if clips else 0.0, config)
        if why:
            return f"{language}: {why}" if len(by_language) > 1 else why
    return ""


def worst(clean_wers: Mapping[str, float]) -> tuple[float | None, str]:
    """The highest WER of some clean configs, and the config if there are several."""
    config = max(clean_wers, key=clean_wers.__getitem__, default="")
    return clean_wers.get(config), config if len(clean_wers) > 1 else ""


def tally_of(counts: ConfigCounts) -> Tally:
    """What the guard looks at in the counts of a config."""
    config, clips, failed = counts.config, len(counts.ids), counts.failed
    if parse(config).scenario != "clean" or not len(counts.counts):
        return Tally(config, clips, failed)
    return Tally(config, clips, failed, counts.counts.rate, empty_clips(counts.counts))


def refusal_of_counts(configs: Iterable[ConfigCounts]) -> str:
    """Why there is no verdict on a recogniser, from what it did on the configs that are compared, clean speech too."""
    return refusal_of_tallies(map(tally_of, configs))


def tallies_of_run(run: Run, normaliser: str = "srb-paper-1") -> list[Tally]:
    """All configs of a run, as the guard sees them; also those that nobody has transcribed."""
    tallies = []
    for config in run.configs:
        read = run.read(config)
        tally = Tally(config, len(read.lines), read.failed)
        if read.clean and read.transcribed.lines:
            tally = tally_of(read.count(normaliser))._replace(clips=tally.clips, failed=tally.failed)
        tallies.append(tally)
    return tallies


def refusal_of_run(run: Run, normaliser: str = "srb-paper-1") -> str:
    """Why there is no verdict on a run, from its clean speech and from all of its clips that failed."""
    return refusal_of_tallies(tallies_of_run(run, normaliser))


def refusals_of_configs(tallies: Sequence[Tally]) -> dict[str, str]:
    """The configs without a verdict, each with the reason: its language has none, or too many of its clips failed."""
    reasons = {}
    for tally in tallies:
        language = parse(tally.config).language
        own = [other for other in tallies if parse(other.config).language == language]
        if why := refusal_of_tallies(own) or refusal_of_tallies([tally]):
            reasons[tally.config] = why
    return reasons


def refuse_ranking(name: object, configs: Iterable[ConfigCounts]) -> None:
    """Refuse a recogniser among others that are ranked together, where there is no verdict on it."""
    if why := refusal_of_counts(configs):
        raise UserError(f"{name} cannot be ranked: {why}; leave it out")


def empty_clips(counts: Counts) -> int:
    """Clips of which no word was recognised, failed ones too, though words were said: all deletions, nothing else."""
    return int(((counts.lengths > 0) & (counts.deletions == counts.lengths) & (counts.insertions == 0)).sum())
