"""`srb metrics install`: make `evaluate.load("werd")` and the others work by name, offline, from any directory."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, argument


@dataclass(frozen=True, kw_only=True)
class InstallArguments(Options):
    metrics: list[str] = argument("metrics to install (default: all)", [], metavar="METRIC")


@dataclass(frozen=True, kw_only=True)
class ExportArguments(Options):
    metric: str = argument("metric to export")
    folder: str = argument("where its Space goes")


def install(args: InstallArguments) -> None:
    installed = srb.install_metrics(args.metrics)
    print(f"installed: {', '.join(installed)}")
    print(f'from any directory: evaluate.load("{installed[0]}")')


def export(args: ExportArguments) -> None:
    print(srb.export_metric(args.metric, args.folder))


COMMANDS = (
    Command(InstallArguments, install, name="install", help="put the metrics where evaluate.load finds them by name"),
    Command(ExportArguments, export, name="export", help="write the folder of a metric's Space, which stands alone"),
)
