"""`srb push data | metrics | results`: publish on the Hugging Face Hub. The token is the stored login or HF_TOKEN."""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    _data_arguments(what.add_parser("data", help="built configs, to a dataset repository"))
    metrics = what.add_parser("metrics", help="each metric as a Space, for evaluate.load('ORG/nwerd')")
    metrics.add_argument("metric", nargs="*", help="which ones (all if none is named)")
    metrics.add_argument("--namespace", required=True, metavar="ORG", help="the user or organisation on the Hub")
    _common(metrics)
    results = what.add_parser("results", help="scores of a run, by pull request to the model's repository")
    results.add_argument("folder", metavar="RUN", help="a run folder, runs/<model>")
    results.add_argument("--model-id", required=True, metavar="ORG/MODEL", help="the model's repository on the Hub")
    results.add_argument("--dataset", required=True, metavar="ORG/srb", help="the benchmark's dataset repository")
    results.add_argument("--dry-run", action="store_true", help="print the files, send nothing")


def _data_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("config", nargs="*", help="configs or patterns, en_noise_* (all if none is named)")
    parser.add_argument("--repo", required=True, metavar="ORG/srb", help="the dataset repository on the Hub")
    parser.add_argument("--data", default="srb", metavar="FOLDER", help="the built folder (default: srb)")
    parser.add_argument("--revision", default="main", help="the branch to push to (default: main)")
    parser.add_argument("--tag", help="tag of the pushed state (default: v<benchmark version>; 'none' for no tag)")
    parser.add_argument("--retag", action="store_true", help="move a tag that is there already")
    parser.add_argument(
        "--skip-refused", action="store_true", help="leave out what may not be published, push the rest"
    )
    parser.add_argument(
        "--bank-licence",
        action="append",
        default=[],
        metavar="BANK=LICENCE",
        help="the licence of a bank of your own, by the name that the manifest has",
    )
    _common(parser)


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--public", action="store_true", help="for everyone to see (default: private)")
    parser.add_argument("--dry-run", action="store_true", help="print what would go where and how large; send nothing")


def run(args: argparse.Namespace) -> int:
    return {"data": _push_data, "metrics": _push_metrics, "results": _push_results}[args.what](args)


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _check_name(repo: str) -> None:
    import re

    from speech_robust_bench.core.errors import UserError

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise UserError(f"'{repo}' is not a repository's name; they look like ORG/NAME")


def _push_data(args: argparse.Namespace) -> int:
    from pathlib import Path

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import tasks
    from speech_robust_bench.core.seeding import BENCHMARK_VERSION
    from speech_robust_bench.push import dataset_upload
    from speech_robust_bench.push.hub import Hub

    _check_name(args.repo)
    banks = dict(_pair(item) for item in args.bank_licence)
    folder, hub = Path(args.data), Hub(_say, retries=0) if args.dry_run else Hub(_say)
    dataset_upload.choose(folder, args.config)  # a mistake here needs no network
    try:
        if not args.dry_run or hub.token:
            hub.need_login()
        info = hub.info(args.repo, dataset_upload.KIND)
    except UserError as error:
        if not args.dry_run:
            raise
        _say(f"{error}\nso this is what a push to an empty repository would do:")
        info = None
    if info is not None and not info.private and not args.public and not args.dry_run:
        raise UserError(f"{args.repo} is public; add --public to say that everyone may see this")
    at = info and hub.info(args.repo, dataset_upload.KIND, args.revision)
    there = hub.files(args.repo, dataset_upload.KIND, at.sha) if at else {}
    plan = dataset_upload.plan(folder, args.repo, args.config, there, args.revision, banks)
    for name, reason in plan.refused.items():
        _say(f"refused {name}: {reason}")
    if args.dry_run:
        _show(plan, existing=info is not None)
        return 2 if plan.refused and not args.skip_refused else 0
    if plan.refused and not args.skip_refused:
        raise UserError(
            f"{len(plan.refused)} of {len(plan.manifests)} configs may not be published (named above); "
            "--skip-refused pushes the others"
        )
    if not plan.changes:
        raise UserError("nothing is left to push")
    hub.create(args.repo, dataset_upload.KIND, private=not args.public)
    if info is None or (at is None and args.revision != "main"):
        _branch(hub, args.repo, args.revision)
    with tasks() as show:
        sha = dataset_upload.push(hub, plan, folder, show, banks)
    uploaded = sum(len(change.add) for change in plan.todo)
    print(f"{args.repo}: {len(plan.changes)} configs, {uploaded} files uploaded ({_size(plan.size)}), at {sha[:7]}")
    tag = args.tag or f"v{BENCHMARK_VERSION}"
    if tag != "none":
        print(hub.tag(args.repo, dataset_upload.KIND, tag, sha, move=args.retag))
    return 0


def _branch(hub, repo: str, revision: str) -> None:
    from speech_robust_bench.push.dataset_upload import KIND

    if revision != "main":
        hub.ask(repo, lambda: hub.api.create_branch(repo, branch=revision, repo_type=KIND, exist_ok=True))


def _pair(item: str) -> tuple[str, str]:
    from speech_robust_bench.core.errors import UserError

    bank, sep, licence = item.rpartition("=")
    if not (bank and sep and licence):
        raise UserError(f"--bank-licence {item}: write it as 'NAME OF THE BANK=LICENCE'")
    return bank, licence


def _show(plan, existing: bool) -> None:
    print(f"would push to {plan.repo} at {plan.revision}" + ("" if existing else " (a new repository)"))
    for change in plan.changes:
        what = "new" if change.new else "changed" if change else "same"
        licence = ", ".join(plan.terms[change.config].licences)
        print(f"  {change.config}: {what}, {len(change.add)} files, {_size(change.size)}; {licence}")
        for path, local in change.add.items():
            print(f"    {local} -> {path} ({_size(local.stat().st_size)})")
        for path in change.delete:
            print(f"    delete {path}")
    print(f"{len(plan.todo)} of {len(plan.changes)} configs to upload, {_size(plan.size)}; then the card")


def _size(count: int) -> str:
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000  # type: ignore[assignment]
    return f"{count:.1f} GB"


def _push_metrics(args: argparse.Namespace) -> int:
    from speech_robust_bench.push import spaces
    from speech_robust_bench.push.hub import Hub

    hub = Hub(_say)
    if args.dry_run:
        for metric, files in spaces.metric_files(args.metric).items():
            size = _size(sum(map(len, files.values())))
            print(f"would push {args.namespace}/{metric} (Space): {len(files)} files, {size}")
            for path, content in files.items():
                print(f"    {path} ({_size(len(content))})")
        return 0
    hub.need_login()
    for metric, files in spaces.metric_files(args.metric).items():
        repo = f"{args.namespace}/{metric}"
        changed = spaces.push(hub, repo, files, private=not args.public, message=f"Update {metric}")
        print(f'{repo}: {len(changed)} files uploaded; evaluate.load("{repo}")')
    return 0


def _push_results(args: argparse.Namespace) -> int:
    from speech_robust_bench.push import model_results
    from speech_robust_bench.push.hub import Hub

    _check_name(args.model_id)
    _check_name(args.dataset)
    hub = Hub(_say)
    if not args.dry_run:
        hub.need_login()
    files = model_results.files(hub, args.folder, args.model_id, args.dataset)
    if args.dry_run:
        for path, text in files.items():
            print(f"--- {path}\n{text}")
        return 0
    print(model_results.push(hub, args.model_id, files))
    return 0
