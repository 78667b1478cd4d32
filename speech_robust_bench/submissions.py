"""`srb.submit`, `srb.verify`, `srb.leaderboard`: a run for the leaderboard, the check of it, and the page."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError, for_terminal, warn
from speech_robust_bench.core.options import Options, at_least, option
from speech_robust_bench.options import Place
from speech_robust_bench.push import expected_rows, submission
from speech_robust_bench.push.adversarial import places
from speech_robust_bench.push.hub import Hub
from speech_robust_bench.push.rerun import power as rerun_power
from speech_robust_bench.push.rerun import rerun
from speech_robust_bench.push.verified import add_rerun
from speech_robust_bench.push.verify_process import check
from speech_robust_bench.scoring.runs import open_run

__all__ = [
    "Submission",
    "SubmitOptions",
    "Verification",
    "VerifyOptions",
    "export_leaderboard",
    "leaderboard",
    "rerun_power",
    "submit",
    "verify",
    "verify_all",
]


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
    from speech_robust_bench.push.leaderboard.server import make

    with make(str(results), host, port) as server:
        name, number = server.server_address[:2]
        ready(f"http://{name if isinstance(name, str) else name.decode()}:{number}/")
        server.serve_forever()


def export_leaderboard(results: Place, folder: Place) -> str:
    """Write the files of a static Space with the leaderboard of verified results."""
    from speech_robust_bench.push.leaderboard.site import export

    return str(export(str(results), str(folder)))
