"""Publish data, metrics and results on the Hugging Face Hub, and keep a leaderboard.

`srb.push_data`, `srb.push_metrics`, `srb.push_results` push; `srb.install_metrics` and `srb.export_metric` give the
metrics to `evaluate.load`, by name or as a Space. `srb.submit`, `srb.verify` and `srb.leaderboard`: a run for the
leaderboard, the check of it, and the page. The token is the stored login or HF_TOKEN. With `dry_run` nothing is sent.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError, for_terminal, warn
from speech_robust_bench.core.options import Options, at_least, option
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.core.seeding import BENCHMARK_VERSION
from speech_robust_bench.options import Place
from speech_robust_bench.push import dataset_upload, expected_rows, model_results, submission
from speech_robust_bench.push.expected_rows import places
from speech_robust_bench.push.hub import Hub, Repository
from speech_robust_bench.push.rerun import power as rerun_power  # noqa: F401, for the command
from speech_robust_bench.push.rerun import rerun
from speech_robust_bench.push.verified import add_rerun
from speech_robust_bench.push.verify_process import check
from speech_robust_bench.scoring import modules
from speech_robust_bench.scoring.runs import open_run


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
    dataset: str,
    data: Place = "srb",
    public: bool = False,
    dry_run: bool = False,
    push_options: PushOptions = PushOptions(),
    progress: bool = True,
) -> DataPush:
    """Push built configs to a dataset repository; unchanged ones are not sent again.

    Args:
        configs: names or patterns; without any, all.
        dataset: the dataset repository, "ORG/srb"; created if it does not exist.
        data: the built folder.
        public: make it public.
        dry_run: plan only, send nothing.
        push_options: branch, tag, licences of banks.
        progress: show progress.
    """
    _check_name(dataset)
    patterns = [configs] if isinstance(configs, str) else list(configs)
    folder, options = Path(data), push_options
    hub = Hub(_say, retries=0) if dry_run else Hub(_say)
    dataset_upload.choose(folder, patterns)  # a mistake here needs no network
    info = _repository(hub, dataset, dry_run)
    if info is not None and not info.private and not public and not dry_run:
        raise UserError(f"{dataset} is public; add --public to say that everyone may see this")
    at = info and hub.info(dataset, dataset_upload.KIND, options.revision)
    there = hub.files(dataset, dataset_upload.KIND, at.sha) if at else {}
    banks = dict(options.bank_licence)
    plan = dataset_upload.plan(folder, dataset, patterns, there, options.revision, banks)
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
    hub.create(dataset, dataset_upload.KIND, private=not public)
    if (info is None or at is None) and options.revision != "main":
        branch, kind = options.revision, dataset_upload.KIND
        hub.ask(dataset, lambda: hub.api.create_branch(dataset, branch=branch, repo_type=kind, exist_ok=True))
    with tasks(not progress) as show:
        sha = dataset_upload.push(hub, plan, folder, show, banks)
    tag = options.tag or f"v{BENCHMARK_VERSION}"
    tagged = hub.tag(dataset, dataset_upload.KIND, tag, sha, move=options.retag) if tag != "none" else None
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


@dataclass(frozen=True)
class SubmitOptions(Options):
    """Facts about the model for the leaderboard."""

    owner: str | None = option(None, "owner of the model, a user or organisation (default: that of --model-id, or you)")
    name: str | None = option(None, "name of the model on the leaderboard (default: the run's)")
    model_id: str | None = option(None, "repository of the model on the Hub", metavar="ORG/MODEL")
    params_m: float | None = option(None, "millions of parameters", metavar="N")
    licence: str | None = option(None, "licence of the model")
    url: str | None = option(None, "page about the model (https)")
    training_data: str | None = option(None, "training data, in a few words", metavar="TEXT")
    parquet: bool = option(False, "send the predictions as parquet, which is much smaller")


@dataclass(frozen=True)
class Submission:
    """A submission that was accepted here: where it is kept, and the address of its pull request if it was sent."""

    folder: Path | None
    pull_request: str | None = None


def submit(
    run: Place,
    to: str | None = None,
    *,
    data: Place = "srb",
    adversarial: Place | None = None,
    out: Place | None = None,
    dry_run: bool = False,
    submit_options: SubmitOptions = SubmitOptions(),
) -> Submission:
    """Make a submission of a run folder, verify it, and open a pull request to the results repository.

    Args:
        run: the run folder.
        to: the results repository, a dataset on the Hub.
        data: the built folder, benchmark.json or "ORG/srb" that the run was made on.
        adversarial: the audio of the model's own adversarial configs, if not in `data`.
        out: where the submission is kept; by default `submissions/<model>`, and nowhere in a dry run.
        dry_run: make and verify it, send nothing.
        submit_options: what the leaderboard says about the model.
    """
    if not to and not dry_run:
        raise UserError("--to ORG/RESULTS names the results repository; --dry-run only makes the submission")
    options, hub = submit_options, Hub(lambda line: print(line, file=sys.stderr))
    model = {
        "owner": options.owner or _owner(options, dry_run, hub),
        "name": options.name,
        "id": options.model_id,
        "params_m": options.params_m,
        "licence": options.licence,
        "url": options.url,
        "training_data": options.training_data,
    }
    place = Path(out) if out else None if dry_run else Path("submissions") / (options.name or open_run(Path(run)).model)
    benchmark = expected_rows.load(str(data))
    configs, others = submission.choose(str(run), benchmark)
    if others:
        warn(f"left out, because {data} does not have them: {for_terminal(', '.join(others))}")
    audio = places(str(data), str(adversarial) if adversarial else None)

    def verified(folder: Path) -> None:
        verdict = check(folder, benchmark, audio=audio)
        for reason in verdict.reasons:
            warn(f"  {reason}")
        if not verdict.accepted:
            raise UserError(f"{run}: its submission would be refused (reasons above); correct the run and submit again")

    with tempfile.TemporaryDirectory(prefix="srb-") as scratch:
        folder = place or Path(scratch) / "submission"
        submission.make(str(run), folder, model, configs, parquet=options.parquet, verified=verified)
        if dry_run:
            return Submission(place)
        hub.need_login()
        return Submission(place, submission.send(hub, folder, str(to)))


def _owner(options: SubmitOptions, dry_run: bool, hub: Hub) -> str | None:
    """Whose model it is, if nobody says: the organisation of its repository, or who is logged in."""
    if options.model_id and "/" in options.model_id:
        return options.model_id.split("/")[0]
    return None if dry_run or not hub.token else hub.ask("the login", lambda: hub.api.whoami()["name"])


@dataclass(frozen=True)
class VerifyOptions(Options):
    """Further checks, and the folder for the leaderboard's files."""

    out: str | None = option(None, "write the leaderboard's files of accepted submissions here", metavar="FOLDER")
    predictions_url: str | None = option(None, "URL of the predictions, linked on the leaderboard", metavar="URL")
    author: str | None = option(None, "author of the pull request, who must own the model", metavar="NAME")
    rerun: str | None = option(None, "transcribe a sample again with this model, and compare", metavar="MODEL")
    sample: int = option(200, "clips of a rerun, half of them clean", metavar="N", check=at_least(1))


@dataclass(frozen=True)
class Verification:
    """Result of the verification of a submission: its verdict, and that of the rerun if there was one."""

    outcome: Any  # push.verify.Outcome
    rerun: Any = None  # push.rerun.Rerun

    @property
    def accepted(self) -> bool:
        """Whether the submission is accepted and, if a sample was rerun, reproduces."""
        return self.outcome.accepted and (self.rerun is None or self.rerun.agrees)


def verify(
    submission: Place,
    *,
    data: Place = "srb",
    adversarial: Place | None = None,
    verify_options: VerifyOptions = VerifyOptions(),
) -> Verification:
    """Recompute the scores of a submission and check everything in it.

    Args:
        submission: its folder.
        data: the built folder, benchmark.json or "ORG/srb" that it was made on.
        adversarial: the audio of the model's own adversarial configs, if not in `data`.
        verify_options: a rerun, the author, and where the leaderboard's files go.
    """
    (verification,) = verify_all([submission], data=data, adversarial=adversarial, verify_options=verify_options)
    return verification


def verify_all(
    submissions: Sequence[Place],
    *,
    data: Place = "srb",
    adversarial: Place | None = None,
    verify_options: VerifyOptions = VerifyOptions(),
) -> Iterator[Verification]:
    """Verify several submissions one after another; the benchmark is read once."""
    options, benchmark = verify_options, expected_rows.load(str(data))
    for each in submissions:
        outcome = check(
            str(each),
            benchmark,
            audio=places(str(data), str(adversarial) if adversarial else None),
            out=options.out,
            predictions_url=options.predictions_url,
            author=options.author,
        )
        again = (
            rerun(str(each), str(data), options.rerun, options.sample) if options.rerun and outcome.accepted else None
        )
        if again and outcome.written:
            add_rerun(Path(outcome.written), again.record)
        yield Verification(outcome, again)


def leaderboard(
    results: Place = "verified",
    *,
    host: str = "127.0.0.1",
    port: int | None = None,
    ready: Callable[[str], None] = lambda address: None,
) -> None:
    """Serve verified results as a page in the browser, until interrupted.

    Args:
        results: the folder of verified results.
        host: the address to listen on.
        port: the first free one from 7860 by default.
        ready: called with the address when the page can be opened.
    """
    from speech_robust_bench.push.leaderboard.site import make

    with make(str(results), host, port) as server:
        name, number = server.server_address[:2]
        ready(f"http://{name if isinstance(name, str) else name.decode()}:{number}/")
        server.serve_forever()


def export_leaderboard(results: Place, folder: Place) -> str:
    """Write the files of a static Space with the leaderboard of verified results."""
    from speech_robust_bench.push.leaderboard.site import export

    return str(export(str(results), str(folder)))
