"""`srb fairness RUN [RUN2 ...]`: AequeVox's tests on run folders: who loses more, and which words."""

from __future__ import annotations

import argparse
from typing import Any

Json = dict[str, Any]


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("runs", nargs="+", metavar="RUN", help="run folders; two or more are also compared in pairs")
    parser.add_argument(
        "--groups", default="gender", help="gender, accent, age, speaker, pitch, or a crossing: gender+accent"
    )
    parser.add_argument("--base", help="the base group (default: every group in turn)")
    parser.add_argument("--tau", nargs="+", type=float, default=[0.01, 0.05, 0.1, 0.15], help="violation thresholds")
    parser.add_argument(
        "--comprehensible", type=float, default=7.0, metavar="N", help="only levels that people rated N of 10 or more"
    )
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
    import sys

    from srb.cli.progress import progress
    from srb.diagnosis.fairness import Options, assess, choose
    from srb.metrics.runs import open_run

    options = Options(
        groups=args.groups,
        base=args.base,
        taus=tuple(args.tau),
        comprehensible=args.comprehensible,
        minimum=args.minimum,
        omega=args.omega,
        by_speaker=args.by_speaker,
        replicates=args.replicates,
        seed=args.seed,
        weights=_weights(args.weights),
        data=args.data,
    )
    runs = [choose(open_run(folder), args.configs) for folder in args.runs]
    with progress(quiet=args.json or not sys.stderr.isatty()) as bar:
        task = bar.add_task("reading what was heard", total=sum(len(one.configs) for one in runs))
        found = assess(runs, options, lambda: bar.advance(task))
    if args.validate:
        found["validation"] = _validate(args, runs[0])
    if args.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    else:
        _show(found)


def _validate(args: argparse.Namespace, run: Any) -> Json:
    """AequeVox's RQ3 on the first run's words, those that its noise levels lose and those that they never lose."""
    from srb.builders.audio import RATE
    from srb.builders.names import parse
    from srb.diagnosis.gather import clip_sets
    from srb.diagnosis.validate import p_value, validate, voices, words_to_test
    from srb.models.interface import open_model

    heard = next(clip_sets([run]))
    language = parse(heard.clips.clean).language
    strong, weak = words_to_test(heard, run.model, "aeq_noise", args.omega)
    speak, recogniser = voices(args.tts, language), open_model(args.validate)

    def transcribe(clip):
        return recogniser.transcribe([clip], RATE, language)[0]

    made: Json = {"model": args.validate, "tts": args.tts, "robust": strong, "non_robust": weak, "levels": []}
    try:
        for snr_db in args.snr:
            kept, lost = (validate(words, speak, transcribe, snr_db=snr_db, seed=args.seed) for words in (strong, weak))
            level = {"snr_db": snr_db, "sentences": kept.sentences, "p_value": p_value(kept, lost)}
            made["levels"].append({**level, "robust_missing": kept.errors, "non_robust_missing": lost.errors})
    finally:
        recogniser.close()
    return made


def _weights(given: list[str] | None) -> dict[str, float] | None:
    from srb.builders.errors import UserError

    if given is None:
        return None
    made = {}
    for pair in given:
        group, _, share = pair.rpartition("=")
        try:
            made[group] = float(share)
        except ValueError:
            group = ""
        if not group:
            raise UserError(f"--weights '{pair}' is not GROUP=SHARE, as in female=0.5 male=0.5")
    return made


def _show(found: Json) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    _show_sets(found, console)
    _show_levels(found, console)
    _show_counts(found, console)
    _show_words(found, console)
    _show_rates(found, console)
    if "validation" in found:
        _show_validation(found["validation"], console)


def _show_validation(made: Json, console) -> None:
    title = f"\nsentences spoken by {made['tts']} of which {made['model']} missed the word"
    table = _table(title, "SNR, dB", "of", "robust", "non-robust", "p")
    for row in made["levels"]:
        cells = (row["sentences"], row["robust_missing"], row["non_robust_missing"])
        table.add_row(f"{row['snr_db']:g}", *map(str, cells), f"{row['p_value']:.3f}")
    console.print(table)
    for kind in ("robust", "non_robust"):
        console.print(f"  {kind.replace('_', '-')}: {', '.join(made[kind])}", soft_wrap=True, markup=False)


def _table(title: str, *columns: str):
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _show_sets(found: Json, console) -> None:
    for one in found["sets"]:
        sizes = ", ".join(f"{g}: {n['clips']} clips of {n['speakers']} speakers" for g, n in one["groups"].items())
        console.print(f"{one['clean']}  {sizes}", soft_wrap=True)
        for count, what in (
            (one["unlabelled"], "clips belong to no group"),
            (one["left_out"], "clips are not in every config and were left out"),
            (len(one["below_comprehensibility"]), "levels left out, rated less comprehensible than asked for"),
            (len(one["not_rated"]), "levels were never rated by people and are kept"),
        ):
            if count:
                console.print(f"  {count} {what}")
        if min(n["speakers"] for n in one["groups"].values()) < 5 and not found["options"]["by_speaker"]:
            console.print("  few speakers: the intervals say what other clips of the same people would give")
    for one in found["skipped"]:
        console.print(f"{one['clean']}  left out: {one['why']}", soft_wrap=True, markup=False)
    if found["proxy"]:
        console.print("  groups are a PROXY: how high a voice is, not what anyone said about themselves")


def _show_levels(found: Json, console) -> None:
    groups = _groups(found)
    names = list(dict.fromkeys((d["recogniser"], d["form"]) for d in found["degradations"]))
    for recogniser, form in names:
        what = "distance of the two" if form == "pair" else "WER"
        table = _table(f"\n{recogniser}: degradation ({what})", "", *groups, "worst", "by", "interval", "")
        mine = [d for d in found["degradations"] if (d["recogniser"], d["form"]) == (recogniser, form)]
        for config in dict.fromkeys(d["config"] for d in mine):
            cells = {d["group"]: d["degradation"] for d in mine if d["config"] == config}
            worst = max(
                (
                    c
                    for c in found["comparisons"]
                    if (c["recogniser"], c["form"], c["config"]) == (recogniser, form, config)
                ),
                key=lambda c: c["difference"],
            )
            span = worst["interval"]
            table.add_row(
                _short(config, found),
                *(f"{cells[g]:+.3f}" if g in cells else "" for g in groups),
                worst["base"],
                f"{worst['difference']:+.3f}",
                f"{span[0]:+.3f} {span[1]:+.3f}" if span else "",
                _verdict(worst),
            )
        console.print(table)


def _short(config: str, found: Json) -> str:
    """Without the language and corpus, where all levels come from one clean config."""
    if len(found["sets"]) > 1:
        return config
    return config.removeprefix(found["sets"][0]["clean"].removesuffix("clean"))


def _verdict(comparison: Json) -> str:
    if not comparison["violates"]:
        return ""
    return "within noise" if comparison["within_noise"] else f"tau {max(comparison['violates']):g}"


def _show_counts(found: Json, console) -> None:
    for form, counts in found["table4"].items():
        what = "without transcripts, by pair" if form == "pair" else "with transcripts"
        groups = list(counts["violations"]["total"])
        table = _table(f"\nviolations {what} (in brackets: beyond noise)", "", *groups)

        def cells(*path: str, counts=counts, groups=groups) -> list[str]:
            rows = [counts["violations"], counts["beyond_noise"]]
            for key in path:
                rows = [row[key] for row in rows]
            return [f"{rows[0][g]} ({rows[1][g]})" for g in groups]

        table.add_row("total", *cells("total"))
        for title in (key for key in counts["violations"] if key != "total"):
            table.add_row(f"[bold]{title}[/]")
            for row in counts["violations"][title]:
                table.add_row(f"  {row}", *cells(title, row))
        console.print(table)


def _show_words(found: Json, console) -> None:
    table = _table("\naverage words lost, without transcripts", "", *_groups(found))
    for title, rows in found["table9"]["alone"].items():
        table.add_row(f"[bold]{title}[/]")
        for row, cells in rows.items():
            table.add_row(f"  {row}", *(f"{cells[g]:.2f}" if g in cells else "" for g in _groups(found)))
    console.print(table)
    lost = [f for f in found["faults"] if f["form"] == "transcripts" and f["non_robust"]]
    if lost:
        console.print(f"\n[bold]words lost more than {found['options']['omega']} times[/] (said, heard, became)")
    for one in lost:
        words = "; ".join(_word(entry) for entry in one["non_robust"][:8])
        more = f"; {len(one['non_robust']) - 8} more" if len(one["non_robust"]) > 8 else ""
        console.print(
            f"  {one['recogniser']} {one['transformation']} {one['group']}: {words}{more}", soft_wrap=True, markup=False
        )


def _word(entry: Json) -> str:
    became = ", ".join("-" if heard is None else heard for heard, _ in entry["became"][:3])
    return f"{entry['word']} {entry['initial']}>{entry['least']}" + (f" ({became})" if became else "")


def _show_rates(found: Json, console) -> None:
    groups = _groups(found)
    weighted = found["options"]["weights"] is not None
    for recogniser in found["models"]:
        heads = [*groups, "gap", "log2 ratio", *(["weighted"] if weighted else [])]
        table = _table(f"\n{recogniser}: WER", "", *heads)
        for row in (r for r in found["disparity"] if r["recogniser"] == recogniser):
            rates = (f"{row['groups'][g]['wer']:.1f}" if g in row["groups"] else "" for g in groups)
            ratio = "" if row["log2_ratio"] is None else f"{row['log2_ratio']:.2f}"
            extra = [f"{row['weighted_wer']:.1f}"] if weighted else []
            table.add_row(_short(row["config"], found), *rates, f"{row['gap']:.1f}", ratio, *extra)
        console.print(table)


def _groups(found: Json) -> list[str]:
    return list(dict.fromkeys(group for one in found["sets"] for group in one["groups"]))
