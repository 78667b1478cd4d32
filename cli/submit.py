"""`srb submit RUN`: make a submission of a run folder, check it, and open a pull request to the results repository."""

from __future__ import annotations

import argparse
import sys


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", metavar="RUN", help="a run folder, runs/<model>")
    parser.add_argument("--to", metavar="ORG/RESULTS", help="the results repository, a dataset on the Hub")
    parser.add_argument("--out", metavar="FOLDER", help="keep the submission here (default: submissions/<model>)")
    parser.add_argument(
        "--data", default="srb", metavar="WHERE", help="built folder, benchmark.json or ORG/srb (default: srb)"
    )
    where = "where the audio of its own adversarial configs is: a folder or ORG/DATASET (default: --data)"
    parser.add_argument("--adversarial", metavar="WHERE", help=where)
    parser.add_argument("--owner", help="the user or organisation whose model it is (default: of --model-id, or you)")
    parser.add_argument("--name", help="the model's name on the leaderboard (default: the run's)")
    parser.add_argument("--model-id", metavar="ORG/MODEL", help="the model's repository on the Hub")
    parser.add_argument("--params-m", type=float, metavar="N", help="millions of parameters")
    parser.add_argument("--licence", help="the model's licence")
    parser.add_argument("--url", help="where to read about the model (https)")
    parser.add_argument("--training-data", metavar="TEXT", help="what it was trained on, in a few words")
    parser.add_argument("--parquet", action="store_true", help="send the predictions packed, a fraction of the size")
    parser.add_argument("--dry-run", action="store_true", help="make and check the submission, send nothing")


def run(args: argparse.Namespace) -> int:
    from pathlib import Path

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.escape import for_terminal
    from speech_robust_bench.push import expected_rows, submission
    from speech_robust_bench.push.adversarial import places
    from speech_robust_bench.push.hub import Hub
    from speech_robust_bench.push.verify_process import check
    from speech_robust_bench.scoring.runs import open_run

    if not args.to and not args.dry_run:
        raise UserError("--to ORG/RESULTS names the results repository; --dry-run only makes the submission")
    hub = Hub(lambda line: print(line, file=sys.stderr))
    model = {
        "owner": args.owner or _owner(args, hub),
        "name": args.name,
        "id": args.model_id,
        "params_m": args.params_m,
        "licence": args.licence,
        "url": args.url,
        "training_data": args.training_data,
    }
    out = Path(args.out) if args.out else Path("submissions") / (args.name or open_run(args.folder).model)
    benchmark = expected_rows.load(args.data)
    configs, others = submission.choose(args.folder, benchmark)
    if others:
        left_out = for_terminal(", ".join(others))
        print(f"left out, because {args.data} does not have them: {left_out}", file=sys.stderr)
    folder = submission.make(args.folder, out, model, configs, parquet=args.parquet)
    verdict = check(folder, benchmark, audio=places(args.data, args.adversarial))
    if not verdict.accepted:
        for reason in verdict.reasons:
            print(f"  {reason}", file=sys.stderr)
        raise UserError(
            f"{folder}: would be refused (reasons above); correct the run, remove the folder and submit again"
        )
    print(f"{folder}: accepted")
    if not args.dry_run:
        hub.need_login()
        print(submission.send(hub, folder, args.to))
    return 0


def _owner(args: argparse.Namespace, hub) -> str | None:
    """Whose model it is, if nobody says: the organisation of its repository, or who is logged in."""
    if args.model_id and "/" in args.model_id:
        return args.model_id.split("/")[0]
    return None if args.dry_run or not hub.token else hub.ask("the login", lambda: hub.api.whoami()["name"])
