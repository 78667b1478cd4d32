"""`srb verify SUBMISSION`: does it reproduce? Exit code 0 if it is accepted, 1 if not, with every reason."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import adversarial_option, benchmark_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Options, argument, option_group


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    submissions: list[str] = argument("submission folders", metavar="SUBMISSION")
    data: str = benchmark_option()
    adversarial: str | None = adversarial_option()
    verify_options: srb.VerifyOptions = option_group(srb.VerifyOptions)


def run(args: Arguments) -> int:
    if args.verify_options.rerun and len(args.submissions) > 1:
        raise UserError("--rerun MODEL is for one submission")
    how: dict[str, Any] = {"data": args.data, "adversarial": args.adversarial, "verify_options": args.verify_options}
    verified = srb.verify_all(args.submissions, **how)
    accepted = [_show(folder, verification) for folder, verification in zip(args.submissions, verified, strict=True)]
    return 0 if all(accepted) else 1


def _show(folder: str, verification: srb.Verification) -> bool:
    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.submissions import rerun_power

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


COMMAND = Command(Arguments, run)
