"""`srb fairness RUN [RUN2 ...]`: AequeVox's tests on run folders: who loses more, and which words."""

from __future__ import annotations

import argparse
from typing import Any

from speech_robust_bench.cli.options import add_normaliser_option

Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders; two or more are also compared in pairs")
    parser.add_argument(
        "--groups",
        default="gender",
        help="a column of the predictions (gender, accent, age, ...), pitch, or a crossing: gender+accent",
    )
    parser.add_argument("--base", help="the base group (default: every group in turn)")
    parser.add_argument("--tau", nargs="+", type=float, default=[0.01, 0.05, 0.1, 0.15], help="violation thresholds")
    parser.add_argument(
        "--comprehensible",
        type=float,
        metavar="N",
        help="only levels that people rated N of 10 or more (default: the levels of the paper's Table 4)",
    )
    parser.add_argument(
        "--ratings", metavar="CSV", help="ratings by your own listeners: scenario,sev1,sev2,... (default: AequeVox')"
    )
    add_normaliser_option(parser)
    parser.add_argument("--unit", choices=["word", "char-nospace"], help="of the errors (default: the language's own)")
    parser.add_argument("--configs", nargs="+", default=[], metavar="GLOB", help="only these configs")
    parser.add_argument("--minimum", type=int, default=1, metavar="N", help="leave out groups of fewer clips")
    parser.add_argument("--omega", type=int, default=3, metavar="N", help="a word lost more than N times is not robust")
    parser.add_argument(
        "--weights", nargs="+", metavar="GROUP=SHARE", help="shares of the population, for weighted WER"
    )
    parser.add_argument("--data", help="built configs, for --groups pitch")
    parser.add_argument("--by-speaker", action="store_true", help="draw whole speakers instead of clips")
    parser.add_argument("--replicates", type=int, default=1000, metavar="N", help="of the bootstrap (default: 1000)")
    parser.add_argument("--seed", type=int, default=0, help="of the bootstrap")
    parser.add_argument("--validate", metavar="MODEL", help="speak lost and kept words to this recogniser, in noise")
    parser.add_argument("--tts", default="flite", help="the voice of --validate: flite or espeak (default: flite)")
    parser.add_argument(
        "--snr", nargs="+", type=float, default=[10, 6, 2], metavar="DB", help="of the noise of --validate (10 6 2)"
    )
    parser.add_argument("--json", action="store_true", help="everything, for programs")


def run(args: argparse.Namespace) -> None:
    import json

    from speech_robust_bench.cli.options import shares
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.extensions.fairness.report import FairnessOptions, assess, choose
    from speech_robust_bench.extensions.fairness.word_validation import ValidationOptions, validate_run
    from speech_robust_bench.scoring.runs import open_run

    options = FairnessOptions(
        groups=args.groups,
        base=args.base,
        taus=tuple(args.tau),
        comprehensible=args.comprehensible,
        minimum=args.minimum,
        omega=args.omega,
        by_speaker=args.by_speaker,
        replicates=args.replicates,
        seed=args.seed,
        weights=shares("--weights", args.weights),
        data=args.data,
        ratings=args.ratings,
        normaliser=args.normaliser,
        unit=args.unit,
    )
    runs = [choose(open_run(folder), args.configs) for folder in args.runs]
    with progress(quiet=args.json) as bar:
        task = bar.add_task("reading transcripts", total=sum(len(run.configs) for run in runs))
        result = assess(runs, options, lambda: bar.advance(task))
    if args.validate:
        how = ValidationOptions(args.tts, tuple(args.snr), args.omega, args.seed)
        result["validation"] = validate_run(runs[0], args.validate, how)
    if args.json:
        print(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        _show(result)


def _show(result: Json) -> None:
    from speech_robust_bench.core.console import Console

    console = Console(highlight=False)
    _show_sets(result, console)
    _show_levels(result, console)
    _show_counts(result, console)
    _show_words(result, console)
    _show_rates(result, console)
    if "validation" in result:
        _show_validation(result["validation"], console)


def _show_validation(validation: Json, console) -> None:
    title = f"\nsentences spoken by {validation['tts']} of which {validation['model']} missed the word"
    table = _table(title, "SNR, dB", "of", "robust", "non-robust", "p")
    for row in validation["levels"]:
        cells = (row["sentences"], row["robust_missing"], row["non_robust_missing"])
        table.add_row(f"{row['snr_db']:g}", *map(str, cells), f"{row['p_value']:.3f}")
    _print(table, console)
    if validation["grammar"] is not None:
        console.print(f"  grammatical by link-grammar: {100 * validation['grammar']:.0f} % of the sentences")
    for kind in ("robust", "non_robust"):
        console.print(f"  {kind.replace('_', '-')}: {', '.join(validation[kind])}", soft_wrap=True, markup=False)


def _table(title: str, *columns: str):
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):  # the names of levels are never cut: they would look alike
        table.add_column(column, justify="right" if place else "left", no_wrap=not place, overflow="fold")
    return table


def _print(table, console) -> None:
    table.columns[0].min_width = max((len(str(cell)) for cell in table.columns[0].cells), default=0)
    console.print(table)


def _show_sets(result: Json, console) -> None:
    for clip_set in result["sets"]:
        sizes = ", ".join(f"{group}: {_size(counts)}" for group, counts in clip_set["groups"].items())
        console.print(f"{clip_set['clean']}  {sizes}", soft_wrap=True)
        for count, what in (
            (clip_set["unlabelled"], "clips belong to no group"),
            (clip_set["left_out"], "clips are not in every config and were left out"),
            (len(clip_set["below_comprehensibility"]), "levels left out, not comprehensible enough"),
            (len(clip_set["not_rated"]), "levels were never rated by people and are kept"),
        ):
            if count:
                console.print(f"  {count} {what}")
        speakers = [counts["speakers"] for counts in clip_set["groups"].values() if counts["speakers"] is not None]
        if min(speakers, default=5) < 5 and not result["options"]["by_speaker"]:
            console.print("  few speakers: the intervals say what other clips of the same people would give")
    for clip_set in result["skipped"]:
        console.print(f"{clip_set['clean']}  left out: {clip_set['why']}", soft_wrap=True, markup=False)
    if result["proxy"]:
        console.print("  groups are a PROXY: how high a voice is, not what anyone said about themselves")


def _size(counts: Json) -> str:
    speakers = counts["speakers"]
    who = "" if speakers is None else " of 1 speaker" if speakers == 1 else f" of {speakers} speakers"
    return f"{counts['clips']} clips{who}"


def _show_levels(result: Json, console) -> None:
    groups = _groups(result)
    names = list(dict.fromkeys((d["recogniser"], d["form"]) for d in result["degradations"]))
    for recogniser, form in names:
        what = "distance of the two" if form == "pair" else "WER"
        table = _table(f"\n{recogniser}: degradation ({what})", "", *groups, "worst", "by", "interval", "")
        mine = [d for d in result["degradations"] if (d["recogniser"], d["form"]) == (recogniser, form)]
        for config in dict.fromkeys(d["config"] for d in mine):
            cells = {d["group"]: d["degradation"] for d in mine if d["config"] == config}
            worst = max(
                (
                    c
                    for c in result["comparisons"]
                    if (c["recogniser"], c["form"], c["config"]) == (recogniser, form, config)
                ),
                key=lambda c: c["difference"],
            )
            span = worst["interval"]
            table.add_row(
                _short(config, result),
                *(f"{cells[g]:+.3f}" if g in cells else "" for g in groups),
                worst["base"],
                f"{worst['difference']:+.3f}",
                f"{span[0]:+.3f} {span[1]:+.3f}" if span else "",
                _verdict(worst),
            )
        _print(table, console)


def _short(config: str, result: Json) -> str:
    """Without the language and corpus, where all levels come from one clean config."""
    if len(result["sets"]) > 1:
        return config
    return config.removeprefix(result["sets"][0]["clean"].removesuffix("clean"))


def _verdict(comparison: Json) -> str:
    if not comparison["violates"]:
        return ""
    return "within noise" if comparison["within_noise"] else f"tau {max(comparison['violates']):g}"


def _show_counts(result: Json, console) -> None:
    for form, counts in result["table4"].items():
        what = "without transcripts, by pair" if form == "pair" else "with transcripts"
        groups = list(counts["violations"]["total"])
        table = _table(f"\nviolations {what} (in brackets: beyond noise)", "", *groups)

        def cells(*path: str, counts=counts, groups=groups) -> list[str]:
            rows = [counts["violations"], counts["beyond_noise"]]
            for key in path:
                rows = [row[key] for row in rows]
            return [f"{rows[0][g]} ({rows[1][g]})" for g in groups]

        table.add_row("total", *cells("total"))
        excess = [counts["excess_percent"][group] for group in groups]
        table.add_row("the others have more, %", *("" if value is None else f"{value:+.0f}" for value in excess))
        for title in (key for key in counts["violations"] if key != "total"):
            table.add_row(f"[bold]{title}[/]")
            for row in counts["violations"][title]:
                table.add_row(f"  {row}", *cells(title, row))
        _print(table, console)


def _show_words(result: Json, console) -> None:
    table = _table("\naverage words lost, without transcripts", "", *_groups(result))
    for title, rows in result["table9"]["alone"].items():
        table.add_row(f"[bold]{title}[/]")
        for row, cells in rows.items():
            table.add_row(f"  {row}", *(f"{cells[g]:.2f}" if g in cells else "" for g in _groups(result)))
    _print(table, console)
    lost = [f for f in result["faults"] if f["form"] == "transcripts" and f["non_robust"]]
    if lost:
        console.print(f"\n[bold]words lost more than {result['options']['omega']} times[/] (said, recognised, became)")
    for fault in lost:
        words = "; ".join(_word(entry) for entry in fault["non_robust"][:8])
        more = f"; {len(fault['non_robust']) - 8} more" if len(fault["non_robust"]) > 8 else ""
        console.print(
            f"  {fault['recogniser']} {fault['transformation']} {fault['group']}: {words}{more}",
            soft_wrap=True,
            markup=False,
        )


def _word(entry: Json) -> str:
    became = ", ".join("-" if word is None else word for word, _ in entry["became"][:3])
    return f"{entry['word']} {entry['initial']}>{entry['least']}" + (f" ({became})" if became else "")


def _show_rates(result: Json, console) -> None:
    groups = _groups(result)
    weighted = result["options"]["weights"] is not None
    for recogniser in dict.fromkeys(row["recogniser"] for row in result["disparity"]):
        heads = [*groups, "gap", "log2 ratio", *(["weighted"] if weighted else [])]
        table = _table(f"\n{recogniser}: WER", "", *heads)
        for row in (r for r in result["disparity"] if r["recogniser"] == recogniser):
            rates = (f"{row['groups'][g]['wer']:.1f}" if g in row["groups"] else "" for g in groups)
            ratio = "" if row["log2_ratio"] is None else f"{row['log2_ratio']:.2f}"
            extra = [f"{row['weighted_wer']:.1f}"] if weighted else []
            table.add_row(_short(row["config"], result), *rates, f"{row['gap']:.1f}", ratio, *extra)
        _print(table, console)


def _groups(result: Json) -> list[str]:
    return list(dict.fromkeys(group for clip_set in result["sets"] for group in clip_set["groups"]))
