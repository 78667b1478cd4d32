"""`srb verify SUBMISSION`: does it reproduce? Exit code 0 if it is accepted, 1 if not, with every reason."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("submission", nargs="+", help="submission folders")
    parser.add_argument(
        "--data", default="srb", metavar="WHERE", help="built folder, benchmark.json or ORG/srb (default: srb)"
    )
    where = "where the audio of its own adversarial configs is: a folder or ORG/DATASET (default: --data)"
    parser.add_argument("--adversarial", metavar="WHERE", help=where)
    parser.add_argument("--out", metavar="FOLDER", help="write the leaderboard's files of what is accepted here")
    parser.add_argument(
        "--predictions-url", metavar="URL", help="where the predictions are, for the leaderboard's link"
    )
    parser.add_argument("--author", metavar="NAME", help="who sent it (the pull request's author): must own the model")
    parser.add_argument("--rerun", metavar="MODEL", help="transcribe a sample again with this model, and compare")
    parser.add_argument(
        "--sample", type=int, default=200, metavar="N", help="clips of a rerun, half of them clean (default: 200)"
    )


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.push import expected_rows
    from speech_robust_bench.push.adversarial import places
    from speech_robust_bench.push.untrusted_json import shown
    from speech_robust_bench.push.verify_process import check

    if args.rerun and len(args.submission) > 1:
        raise UserError("--rerun MODEL is for one submission")
    known = expected_rows.load(args.data)
    refused = 0
    for folder in args.submission:
        outcome = check(
            folder,
            known,
            audio=places(args.data, args.adversarial),
            out=args.out,
            predictions_url=args.predictions_url,
            author=args.author,
        )
        name = shown(Path(folder).name)
        print(f"{name}: {'accepted' if outcome.accepted else 'refused'}")
        for line in (*outcome.reasons, *(f"flagged: {flag}" for flag in outcome.flags)):
            print(f"  {line}")
        if outcome.written:
            print(f"{name}: {outcome.written}")
        agrees = not (args.rerun and outcome.accepted) or _rerun(args, folder, outcome.written)
        refused += not (outcome.accepted and agrees)
    return 1 if refused else 0


def _rerun(args: argparse.Namespace, folder: str, written: str | None) -> bool:
    from pathlib import Path

    from speech_robust_bench.push.rerun import power, rerun
    from speech_robust_bench.push.verified import add_rerun

    again = rerun(folder, args.data, args.rerun, args.sample)
    verdict = "agrees" if again.agrees else "does not agree"
    print(
        f"rerun {verdict}: {again.same} of {again.clips} clips give the same words, {again.difference:.1f} points of "
        f"WER apart (seed {again.seed})"
    )
    for gain in again.paid:
        print(f"  {gain}")
    for gain in {gain.kind: gain for gain in again.gains}.values():
        print(
            f"  {gain.clips} {gain.kind} clips: had every tenth been changed, the rerun would have told with a "
            f"probability of {power(gain.clips, 0.1):.2f}"
        )
    if again.shown is not None:
        print(f"  {again.shown} of these showed them after the same audio; the calls took {again.slower} times as long")
    if written:
        add_rerun(Path(written), {**again.to_json(), "agrees": again.agrees})
    return again.agrees
