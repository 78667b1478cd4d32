"""`srb fairness RUN [RUN2 ...]`: AequeVox's tests on run folders: who loses more, and which words."""

from __future__ import annotations

import json
from dataclasses import dataclass

from speech_robust_bench.cli.command import Command, json_option, runs_argument
from speech_robust_bench.core.options import Options, option, option_group
from speech_robust_bench.extensions.fairness.assessment import FairnessOptions, fairness
from speech_robust_bench.extensions.fairness.result import (
    Assessment,
    ComparisonRow,
    GroupSize,
    LostWord,
    Validation,
)


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    runs: list[str] = runs_argument("run folders; two or more are also compared in pairs")
    configs: list[str] = option([], "only these configs or patterns", metavar="CONFIG")
    fairness_options: FairnessOptions = option_group(FairnessOptions)
    validate: str | None = option(None, "test the lost words: speak them in noise to this recogniser", metavar="MODEL")
    tts: str = option("flite", "voice of --validate: flite or espeak", metavar="ENGINE", advanced=True)
    snr: list[float] = option([10.0, 6.0, 2.0], "SNRs of the noise of --validate, in dB", metavar="DB", advanced=True)
    json: bool = json_option("print everything as JSON")


def run(args: Arguments) -> None:
    result = fairness(
        args.runs,
        args.configs,
        fairness_options=args.fairness_options,
        validate=args.validate,
        tts=args.tts,
        snrs_db=args.snr,
        progress=not args.json,
    )
    if args.json:
        print(json.dumps(result.as_json(), indent=1, ensure_ascii=False))
    else:
        _show(result)


def _show(result: Assessment) -> None:
    from speech_robust_bench.core.progress import Console

    console = Console(highlight=False)
    _show_sets(result, console)
    _show_levels(result, console)
    _show_counts(result, console)
    _show_words(result, console)
    _show_rates(result, console)
    if result.validation:
        _show_validation(result.validation, console)


def _show_validation(validation: Validation, console) -> None:
    title = f"\nsentences spoken by {validation.tts} of which {validation.model} missed the word"
    table = _table(title, "SNR, dB", "of", "robust", "non-robust", "p")
    for row in validation.levels:
        cells = (row.sentences, row.robust_missing, row.non_robust_missing)
        table.add_row(f"{row.snr_db:g}", *map(str, cells), f"{row.p_value:.3f}")
    _print(table, console)
    if validation.grammar is not None:
        console.print(f"  grammatical by link-grammar: {100 * validation.grammar:.0f} % of the sentences")
    for kind in ("robust", "non_robust"):
        console.print(
            f"  {kind.replace('_', '-')}: {', '.join(getattr(validation, kind))}", soft_wrap=True, markup=False
        )


def _table(title: str, *columns: str):
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):  # the names of levels are never cut: they would look alike
        table.add_column(column, justify="right" if place else "left", no_wrap=not place, overflow="fold")
    return table


def _print(table, console) -> None:
    table.columns[0].min_width = max((len(str(cell)) for cell in table.columns[0].cells), default=0)
    console.print(table)


def _show_sets(result: Assessment, console) -> None:
    for clip_set in result.sets:
        sizes = ", ".join(f"{group}: {_size(counts)}" for group, counts in clip_set.groups.items())
        console.print(f"{clip_set.clean}  {sizes}", soft_wrap=True)
        for count, what in (
            (clip_set.unlabelled, "clips belong to no group"),
            (clip_set.left_out, "clips are not in every config and were left out"),
            (len(clip_set.below_comprehensibility), "levels left out, not comprehensible enough"),
            (len(clip_set.not_rated), "levels were never rated by people and are kept"),
        ):
            if count:
                console.print(f"  {count} {what}")
        repeated = any((size.speakers or size.clips) < size.clips for size in clip_set.groups.values())
        if repeated and result.options["resample"] == "clips":
            console.print("  over clips: the intervals say what other clips of the same people would give")
    for skipped in result.skipped:
        console.print(f"{skipped.clean}  left out: {skipped.why}", soft_wrap=True, markup=False)
    for model, why in result.no_verdict.items():
        console.print(f"{model}: no verdict: {why}", soft_wrap=True, markup=False)
    if result.proxy:
        console.print("  groups are a PROXY: how high a voice is, not what anyone said about themselves")


def _size(counts: GroupSize) -> str:
    speakers = counts.speakers
    who = "" if speakers is None else " of 1 speaker" if speakers == 1 else f" of {speakers} speakers"
    return f"{counts.clips} clips{who}"


def _show_levels(result: Assessment, console) -> None:
    groups = result.groups
    names = list(dict.fromkeys((d.recogniser, d.form) for d in result.degradations))
    for recogniser, form in names:
        what = "distance between the transcripts" if form == "pair" else "WER"
        heads = (*groups, "worst group", "by", "95 % interval", "over", "violates")
        table = _table(f"\n{recogniser}: degradation ({what})", "", *heads)
        mine = [d for d in result.degradations if (d.recogniser, d.form) == (recogniser, form)]
        for config in dict.fromkeys(d.config for d in mine):
            cells = {d.group: d.degradation for d in mine if d.config == config}
            worst = max(
                (c for c in result.comparisons if (c.recogniser, c.form, c.config) == (recogniser, form, config)),
                key=lambda c: c.difference or 0.0,
            )
            span = worst.interval
            table.add_row(
                _short(config, result),
                *(f"{cells[g]:+.3f}" if g in cells else "" for g in groups),
                worst.base,
                f"{worst.difference:+.3f}",
                f"{span[0]:+.3f} {span[1]:+.3f}" if span else "",
                worst.resampled,
                _verdict(worst),
            )
        _print(table, console)


def _short(config: str, result: Assessment) -> str:
    """Without the language and corpus, where all levels come from one clean config."""
    if len(result.sets) > 1:
        return config
    return config.removeprefix(result.sets[0].clean.removesuffix("clean"))


def _verdict(comparison: ComparisonRow) -> str:
    if not comparison.violates:
        return ""
    if comparison.within_noise is None:
        return "too few to tell"
    return "within noise" if comparison.within_noise else f"tau {max(comparison.violates):g}"


def _show_counts(result: Assessment, console) -> None:
    for form, counts in result.table4.items():
        what = "without transcripts, by pair" if form == "pair" else "with transcripts"
        groups = list(counts.violations["total"])
        table = _table(f"\nviolations {what} (in brackets: beyond noise)", "", *groups)

        def cells(*path: str, counts=counts, groups=groups) -> list[str]:
            rows = [counts.violations, counts.beyond_noise]
            for key in path:
                rows = [row[key] for row in rows]
            return [f"{rows[0][g]} ({rows[1][g]})" for g in groups]

        table.add_row("total", *cells("total"))
        excess = [counts.excess_percent[group] for group in groups]
        table.add_row("other groups, % more", *("" if value is None else f"{value:+.0f}" for value in excess))
        for title in (key for key in counts.violations if key != "total"):
            table.add_row(f"[bold]{title}[/]")
            for row in counts.violations[title]:
                table.add_row(f"  {row}", *cells(title, row))
        _print(table, console)


def _show_words(result: Assessment, console) -> None:
    table = _table("\naverage words lost, without transcripts", "", *result.groups)
    for title, rows in result.table9["alone"].items():
        table.add_row(f"[bold]{title}[/]")
        for row, cells in rows.items():
            table.add_row(f"  {row}", *(f"{cells[g]:.2f}" if g in cells else "" for g in result.groups))
    _print(table, console)
    lost = [f for f in result.faults if f.form == "transcripts" and f.non_robust]
    if lost:
        console.print(f"\n[bold]words lost more than {result.options['omega']} times[/] (said, recognised, became)")
    for fault in lost:
        words = "; ".join(_word(entry) for entry in fault.non_robust[:8])
        more = f"; {len(fault.non_robust) - 8} more" if len(fault.non_robust) > 8 else ""
        console.print(
            f"  {fault.recogniser} {fault.transformation} {fault.group}: {words}{more}",
            soft_wrap=True,
            markup=False,
        )


def _word(entry: LostWord) -> str:
    became = ", ".join("-" if word is None else word for word, _ in entry.became[:3])
    return f"{entry.word} {entry.initial}>{entry.least}" + (f" ({became})" if became else "")


def _show_rates(result: Assessment, console) -> None:
    groups = result.groups
    weighted = result.options["population"] is not None
    for recogniser in dict.fromkeys(row.recogniser for row in result.disparity):
        heads = [*groups, "gap", "log2 ratio", *(["weighted"] if weighted else [])]
        table = _table(f"\n{recogniser}: WER (of n clips)", "", *heads)
        for row in (r for r in result.disparity if r.recogniser == recogniser):
            rates = (f"{row.groups[g].wer:.1f} ({row.groups[g].utterances})" if g in row.groups else "" for g in groups)
            ratio = "" if row.log2_ratio is None else f"{row.log2_ratio:.2f}"
            extra = [f"{row.weighted_wer:.1f}"] if weighted else []
            table.add_row(_short(row.config, result), *rates, f"{row.gap:.1f}", ratio, *extra)
        _print(table, console)


COMMAND = Command(Arguments, run)
