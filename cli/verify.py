"""`srb verify SUBMISSION`: does it reproduce? Exit code 0 if it is accepted, 1 if not, with every reason."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("submission", nargs="+", help="submission folders")
    parser.add_argument(
        "--data", default="srb", metavar="WHERE", help="built folder, benchmark.json or ORG/srb (default: srb)"
    )
    parser.add_argument("--out", metavar="FOLDER", help="write the leaderboard's files of what is accepted here")
    parser.add_argument(
        "--predictions-url", metavar="URL", help="where the predictions are, for the leaderboard's link"
    )


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from srb.push import truth, verified
    from srb.push.strict import shown
    from srb.push.verify import verify

    known = truth.load(args.data)
    refused = 0
    for folder in args.submission:
        verdict = verify(folder, known)
        name = shown(Path(folder).name)
        if verdict.accepted:
            print(f"{name}: accepted")
            if args.out:
                print(f"{name}: {verified.write(verdict, Path(args.out), args.predictions_url)}")
        else:
            refused += 1
            print(f"{name}: refused")
            for reason in verdict.reasons:
                print(f"  {reason}")
    return 1 if refused else 0
