"""`srb push data | metrics | results`: publish on the Hugging Face Hub. The token is the stored login or HF_TOKEN."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import configs_argument, run_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, argument, option, option_group

DRY_RUN = "print what would go where and how large it is; send nothing"


@dataclass(frozen=True, kw_only=True)
class DataArguments(Options):
    configs: list[str] = configs_argument()
    repo: str = option(help="dataset repository on the Hub", metavar="ORG/srb")
    data: str = option("srb", "built folder", metavar="FOLDER")
    push_options: srb.PushOptions = option_group(srb.PushOptions)
    public: bool = option(False, "let everyone see it (default: private)")
    dry_run: bool = option(False, DRY_RUN)


@dataclass(frozen=True, kw_only=True)
class MetricsArguments(Options):
    metrics: list[str] = argument("metrics to push (default: all)", [], metavar="METRIC")
    namespace: str = option(help="user or organisation on the Hub", metavar="ORG")
    public: bool = option(False, "let everyone see them (default: private)")
    dry_run: bool = option(False, DRY_RUN)


@dataclass(frozen=True, kw_only=True)
class ResultsArguments(Options):
    run: str = run_argument()
    model_id: str = option(help="repository of the model on the Hub", metavar="ORG/MODEL")
    dataset: str = option(help="dataset repository of the benchmark", metavar="ORG/srb")
    dry_run: bool = option(False, "print the files, send nothing")


def push_data(args: DataArguments) -> int:
    pushed = srb.push_data(
        args.configs,
        repo=args.repo,
        data=args.data,
        public=args.public,
        dry_run=args.dry_run,
        push_options=args.push_options,
    )
    plan = pushed.plan
    if args.dry_run:
        _show(plan, pushed.new)
        return 2 if plan.refused and not args.push_options.skip_refused else 0
    uploaded = sum(len(change.add) for change in plan.todo)
    size, commit = _size(plan.size), str(pushed.sha)[:7]
    print(f"{args.repo}: {len(plan.changes)} configs, {uploaded} files uploaded ({size}), at {commit}")
    if pushed.tagged:
        print(pushed.tagged)
    return 0


def push_metrics(args: MetricsArguments) -> None:
    sent = srb.push_metrics(args.metrics, namespace=args.namespace, public=args.public, dry_run=args.dry_run)
    for repo, files in sent.items():
        if not args.dry_run:
            print(f'{repo}: {len(files)} files uploaded; evaluate.load("{repo}")')
            continue
        print(f"would push {repo} (Space): {len(files)} files, {_size(sum(map(len, files.values())))}")
        for path, content in files.items():
            print(f"    {path} ({_size(len(content))})")


def push_results(args: ResultsArguments) -> None:
    sent = srb.push_results(args.run, model_id=args.model_id, dataset=args.dataset, dry_run=args.dry_run)
    if isinstance(sent, str):
        print(sent)
        return
    for path, text in sent.items():
        print(f"--- {path}\n{text}")


def _show(plan: Any, new: bool) -> None:
    print(f"would push to {plan.repo} at {plan.revision}" + (" (a new repository)" if new else ""))
    for change in plan.changes:
        what = "new" if change.new else "changed" if change else "same"
        licence = ", ".join(plan.terms[change.config].licences)
        print(f"  {change.config}: {what}, {len(change.add)} files, {_size(change.size)}; {licence}")
        for path, local in change.add.items():
            print(f"    {local} -> {path} ({_size(local.stat().st_size)})")
        for path in change.delete:
            print(f"    delete {path}")
    print(f"{len(plan.todo)} of {len(plan.changes)} configs to upload, {_size(plan.size)}; then the card")


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


COMMANDS = (
    Command(DataArguments, push_data, name="data", help="built configs, to a dataset repository"),
    Command(
        MetricsArguments, push_metrics, name="metrics", help="each metric as a Space, for evaluate.load('ORG/nwerd')"
    ),
    Command(
        ResultsArguments,
        push_results,
        name="results",
        help="scores of a run, by pull request to the model's repository",
    ),
)
