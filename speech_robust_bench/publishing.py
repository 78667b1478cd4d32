"""`srb.push_data`, `srb.push_metrics`, `srb.push_results`: publish on the Hugging Face Hub.

The token is the stored login or HF_TOKEN. With `dry_run` nothing is sent.

`srb.install_metrics` and `srb.export_metric`: the metrics for `evaluate.load`, by name or as a Space.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError, warn
from speech_robust_bench.core.options import Options, option
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.options import Place
from speech_robust_bench.push import dataset_upload, model_results
from speech_robust_bench.push.hub import Hub, Repository
from speech_robust_bench.scoring import modules


def _licences(pairs: Sequence[str]) -> dict[str, str]:
    split = [pair.rpartition("=") for pair in pairs]
    for pair, (bank, _, licence) in zip(pairs, split, strict=True):
        if not (bank and licence):
            raise UserError(f"{pair}: write it as 'NAME OF THE BANK=LICENCE'")
    return {bank: licence for bank, _, licence in split}


@dataclass(frozen=True)
class PushOptions(Options):
    """Where built data goes on the Hub, and how."""

    revision: str = option("main", "branch to push to")
    tag: str | None = option(None, "tag of the pushed state (default: v<benchmark version>; 'none' for no tag)")
    retag: bool = option(False, "move an existing tag")
    skip_refused: bool = option(False, "leave out what may not be published, push the rest")
    bank_licence: Mapping[str, str] = option(
        {},
        "licence of your own noises or rooms, by their name in the manifest",
        metavar="BANK=LICENCE",
        repeat=True,
        parse=_licences,
    )


@dataclass(frozen=True)
class DataPush:
    """A push of built data: what was to be sent, and the commit and tag; a dry run has neither."""

    plan: Any  # dataset_upload.Plan
    new: bool  # the repository is not there yet
    sha: str | None = None
    tagged: str | None = None


def push_data(
    configs: str | Sequence[str] = (),
    *,
    repo: str,
    data: Place = "srb",
    public: bool = False,
    dry_run: bool = False,
    push_options: PushOptions = PushOptions(),
    progress: bool = True,
) -> DataPush:
    """Push built configs to a dataset repository; unchanged ones are not sent again.

    Args:
        configs: names or patterns; without any, all.
        repo: the dataset repository, "ORG/srb"; created if it does not exist.
        data: the built folder.
        public: make it public.
        dry_run: plan only, send nothing.
        push_options: branch, tag, licences of banks.
        progress: show progress.
    """
    _check_name(repo)
    patterns = [configs] if isinstance(configs, str) else list(configs)
    folder, options = Path(data), push_options
    hub = Hub(_say, retries=0) if dry_run else Hub(_say)
    dataset_upload.choose(folder, patterns)  # a mistake here needs no network
    info = _repository(hub, repo, dry_run)
    if info is not None and not info.private and not public and not dry_run:
        raise UserError(f"{repo} is public; add --public to say that everyone may see this")
    at = info and hub.info(repo, dataset_upload.KIND, options.revision)
    there = hub.files(repo, dataset_upload.KIND, at.sha) if at else {}
    banks = dict(options.bank_licence)
    plan = dataset_upload.plan(folder, repo, patterns, there, options.revision, banks)
    for name, reason in plan.refused.items():
        warn(f"refused {name}: {reason}")
    if dry_run:
        return DataPush(plan, info is None)
    if plan.refused and not options.skip_refused:
        raise UserError(
            f"{len(plan.refused)} of {len(plan.manifests)} configs may not be published (named above); "
            "--skip-refused pushes the others"
        )
    if not plan.changes:
        raise UserError("nothing is left to push")
    hub.create(repo, dataset_upload.KIND, private=not public)
    if (info is None or at is None) and options.revision != "main":
        branch, kind = options.revision, dataset_upload.KIND
        hub.ask(repo, lambda: hub.api.create_branch(repo, branch=branch, repo_type=kind, exist_ok=True))
    with tasks(not progress) as show:
        sha = dataset_upload.push(hub, plan, folder, show, banks)
    tag = options.tag or f"v{BENCHMARK_VERSION}"
    tagged = hub.tag(repo, dataset_upload.KIND, tag, sha, move=options.retag) if tag != "none" else None
    return DataPush(plan, info is None, sha, tagged)


def push_metrics(
    metrics: Sequence[str] = (), *, namespace: str, public: bool = False, dry_run: bool = False
) -> dict[str, dict[str, bytes]]:
    """Push each metric as a Space, for `evaluate.load("ORG/nwerd")`; returns the files sent to each repository.

    Args:
        metrics: which ones; without any, all.
        namespace: the user or organisation on the Hub.
        public: make them public.
        dry_run: send nothing.
    """
    chosen = {f"{namespace}/{metric}": modules.space_files(metric) for metric in metrics or modules.METRICS}
    if dry_run:
        return chosen
    hub = Hub(_say)
    hub.need_login()
    sent = {}
    for repo, files in chosen.items():
        message = f"Update {repo.rpartition('/')[2]}"
        changed = hub.fill_space(repo, files, private=not public, message=message)
        sent[repo] = {path: files[path] for path in changed}
    return sent


def push_results(run: Place, *, model_id: str, dataset: str, dry_run: bool = False) -> dict[str, str] | str:
    """Open a pull request with the scores of a run to the model's repository; a dry run returns the files.

    Args:
        run: the run folder.
        model_id: the model's repository on the Hub.
        dataset: the benchmark's dataset repository.
        dry_run: send nothing.
    """
    _check_name(model_id)
    _check_name(dataset)
    hub = Hub(_say)
    if not dry_run:
        hub.need_login()
    files = model_results.files(hub, str(run), model_id, dataset)
    return files if dry_run else model_results.push(hub, model_id, files)


def _repository(hub: Hub, repo: str, dry_run: bool) -> Repository | None:
    """What the Hub knows of the repository; a dry run goes on without an answer."""
    try:
        if not dry_run or hub.token:
            hub.need_login()
        return hub.info(repo, dataset_upload.KIND)
    except UserError as error:
        if not dry_run:
            raise
        _say(f"{error}\nso this is what a push to an empty repository would do:")
        return None


def _say(line: str) -> None:
    print(line, file=sys.stderr)


def _check_name(repo: str) -> None:
    if not re.fullmatch(r"[\w.-]+/[\w.-]+", repo):
        raise UserError(f"'{repo}' is not a repository's name; they look like ORG/NAME")


def install_metrics(metrics: Sequence[str] = ()) -> list[str]:
    """Make `evaluate.load("werd")` work by name, offline, from any directory; without names, for all metrics."""
    chosen = list(metrics) or list(modules.METRICS)
    for metric in chosen:
        modules.install(metric)
    return chosen


def export_metric(metric: str, folder: Place) -> Path:
    """Write a metric as a stand-alone Space."""
    return modules.export_space(metric, Path(folder))
