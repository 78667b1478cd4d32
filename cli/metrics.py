"""`srb metrics install`: make `evaluate.load("werd")` and the others work by name, offline, from any directory."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
    install = actions.add_parser("install", help="put the metrics where evaluate.load finds them by name")
    install.add_argument("metric", nargs="*", help="which ones (all if none is named)")
    export = actions.add_parser("export", help="write the folder of a metric's Space, which stands alone")
    export.add_argument("metric", help="which one")
    export.add_argument("folder", help="where to")


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.scoring import modules

    if args.action == "export":
        print(modules.export_space(args.metric, args.folder))
        return
    chosen = args.metric or modules.METRICS
    for metric in chosen:
        modules.install(metric)
    print(f"installed: {', '.join(chosen)}")
    print(f'from any directory: evaluate.load("{chosen[0]}")')
