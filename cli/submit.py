"""`srb submit RUN`: make a submission of a run folder, check it, and open a pull request to the results repository."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import adversarial_option, benchmark_option, run_argument
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, option, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    run: str = run_argument()
    to: str | None = option(None, "results repository, a dataset on the Hub", metavar="ORG/RESULTS")
    out: str | None = option(None, "keep the submission here (default: submissions/<model>)", metavar="FOLDER")
    data: str = benchmark_option()
    adversarial: str | None = adversarial_option()
    submit_options: srb.SubmitOptions = option_group(srb.SubmitOptions)
    dry_run: bool = option(False, "make and check the submission, send nothing")


def run(args: Arguments) -> None:
    submission = srb.submit(
        args.run,
        args.to,
        data=args.data,
        adversarial=args.adversarial,
        out=args.out,
        dry_run=args.dry_run,
        submit_options=args.submit_options,
    )
    print(f"{submission.folder}: accepted")
    if submission.pull_request:
        print(submission.pull_request)


COMMAND = Command(Arguments, run)
