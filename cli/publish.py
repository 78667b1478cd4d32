"""The commands that publish: `srb push`, `submit`, `verify` and `leaderboard`.

The token is the stored login or HF_TOKEN.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.command import (
    Command,
    adversarial_option,
    benchmark_option,
    configs_argument,
    run_argument,
)
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, argument, option, option_group

DRY_RUN = "print what would be sent where, and its size; send nothing"


@dataclass(frozen=True, kw_only=True)
class DataArguments(Options):
    configs: list[str] = configs_argument()
    dataset: str = option(help="dataset repository of the benchmark", metavar="ORG/srb")
    data: str = option("srb", "built folder", metavar="FOLDER")
    push_options: srb.PushOptions = option_group(srb.PushOptions)
    public: bool = option(False, "make it public (default: private)")
    dry_run: bool = option(False, DRY_RUN)


@dataclass(frozen=True, kw_only=True)
class MetricsArguments(Options):
    metrics: list[str] = argument("metrics to push (default: all)", [], metavar="METRIC")
    namespace: str = option(help="user or organisation on the Hub", metavar="ORG")
    public: bool = option(False, "make them public (default: private)")
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
        dataset=args.dataset,
        data=args.data,
        public=args.public,
        dry_run=args.dry_run,
        push_options=args.push_options,
    )
    plan = pushed.plan
    if args.dry_run:
        _show_plan(plan, pushed.new)
        return 2 if plan.refused and not args.push_options.skip_refused else 0
    uploaded = sum(len(change.add) for change in plan.todo)
    size, commit = _size(plan.size), str(pushed.sha)[:7]
    print(f"{args.dataset}: {len(plan.changes)} configs, {uploaded} files uploaded ({size}), at {commit}")
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


def _show_plan(plan: Any, new: bool) -> None:
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


PUSH = (
    Command(DataArguments, push_data, name="data", help="push built configs to a dataset repository"),
    Command(
        MetricsArguments,
        push_metrics,
        name="metrics",
        help="push each metric as a Space, for evaluate.load('ORG/nwerd')",
    ),
    Command(
        ResultsArguments,
        push_results,
        name="results",
        help="push the scores of a run by pull request to the model's repository",
    ),
)


@dataclass(frozen=True, kw_only=True)
class SubmitArguments(Options):
    run: str = run_argument()
    to: str | None = option(None, "results repository, a dataset on the Hub", metavar="ORG/RESULTS")
    out: str | None = option(
        None, "keep the submission here (default: submissions/<model>, nowhere in a dry run)", metavar="FOLDER"
    )
    data: str = benchmark_option()
    adversarial: str | None = adversarial_option()
    submit_options: srb.SubmitOptions = option_group(srb.SubmitOptions)
    dry_run: bool = option(False, "make and check the submission, send nothing")


def submit(args: SubmitArguments) -> None:
    submission = srb.submit(
        args.run,
        args.to,
        data=args.data,
        adversarial=args.adversarial,
        out=args.out,
        dry_run=args.dry_run,
        submit_options=args.submit_options,
    )
    print(f"{submission.folder or args.run}: accepted")
    if submission.pull_request:
        print(submission.pull_request)


SUBMIT = Command(SubmitArguments, submit)


@dataclass(frozen=True, kw_only=True)
class VerifyArguments(Options):
    submissions: list[str] = argument("submission folders", metavar="SUBMISSION")
    data: str = benchmark_option()
    adversarial: str | None = adversarial_option()
    verify_options: srb.VerifyOptions = option_group(srb.VerifyOptions)


def verify(args: VerifyArguments) -> int:
    if args.verify_options.rerun and len(args.submissions) > 1:
        raise UserError("--rerun MODEL is for one submission")
    verified = srb.verify_all(
        args.submissions, data=args.data, adversarial=args.adversarial, verify_options=args.verify_options
    )
    accepted = [
        _show_verification(folder, verification)
        for folder, verification in zip(args.submissions, verified, strict=True)
    ]
    return 0 if all(accepted) else 1


def _show_verification(folder: str, verification: srb.Verification) -> bool:
    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.publishing import rerun_power

    outcome, again, name = verification.outcome, verification.rerun, for_terminal(Path(folder).name, most=80)
    print(f"{name}: {'accepted' if outcome.accepted else 'refused'}")
    for line in (*outcome.reasons, *(f"flagged: {flag}" for flag in outcome.flags)):
        print(f"  {line}")
    if outcome.written:
        print(f"{name}: {outcome.written}")
    if again is not None:
        print(
            f"rerun {'agrees' if again.agrees else 'does not agree'}: {again.same} of {again.clips} clips give the "
            f"same words, {again.difference:.1f} points of WER apart (seed {again.seed})"
        )
        for gain in again.paid:
            print(f"  {gain}")
        for gain in {gain.kind: gain for gain in again.gains}.values():
            print(
                f"  {gain.clips} {gain.kind} clips: had every tenth been changed, the rerun would have told with a "
                f"probability of {rerun_power(gain.clips, 0.1):.2f}"
            )
        if again.shown is not None:
            shown = f"{again.shown} of these showed them after the same audio"
            print(f"  {shown}; the calls took {again.slower} times as long")
    return verification.accepted


VERIFY = Command(VerifyArguments, verify)


@dataclass(frozen=True, kw_only=True)
class LeaderboardArguments(Options):
    results: str = option("verified", "folder of verified results", metavar="FOLDER")
    port: int | None = option(None, "port to listen on (default: the first free one from 7860)", metavar="N")
    host: str = option("127.0.0.1", "address to listen on")
    export: str | None = option(None, "write the files of a static Space instead", metavar="FOLDER")


def leaderboard(args: LeaderboardArguments) -> None:
    if args.export:
        print(srb.export_leaderboard(args.results, args.export))
        return
    srb.leaderboard(
        args.results,
        host=args.host,
        port=args.port,
        ready=lambda address: print(f"{address}  (Ctrl-C ends it)", flush=True),
    )


LEADERBOARD = Command(LeaderboardArguments, leaderboard)
