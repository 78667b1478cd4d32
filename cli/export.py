"""`srb export every-eval-ever | croissant`: results and data in the forms that other collections read."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    results = what.add_parser("every-eval-ever", help="the scores of a run, for the collection Every Eval Ever")
    results.add_argument("folder", metavar="RUN", help="a run folder, runs/<model>")
    results.add_argument("--model-id", required=True, metavar="ORG/MODEL", help="the model's repository on the Hub")
    results.add_argument("--organisation", required=True, metavar="NAME", help="who ran the evaluation")
    results.add_argument(
        "--relationship",
        choices=("first_party", "third_party", "collaborative", "other"),
        default="third_party",
        help="of who ran it to who made the model (default: third_party)",
    )
    results.add_argument("--dataset", metavar="ORG/srb", help="the Hub dataset that the clips came from")
    results.add_argument("--out", default=".", metavar="FOLDER", help="the record goes to FOLDER/data/... (default: .)")
    data = what.add_parser("croissant", help="the metadata of built data, as croissant.json beside the configs")
    data.add_argument("--data", default="srb", metavar="FOLDER", help="the built folder (default: srb)")
    data.add_argument("--url", default="", help="where the data is published")


def run(args: argparse.Namespace) -> None:
    {"every-eval-ever": _results, "croissant": _data}[args.what](args)


def _results(args: argparse.Namespace) -> None:
    import json
    import re
    import time

    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.files import write_atomically
    from speech_robust_bench.extensions.exports.every_eval_ever import Source, file_name, record
    from speech_robust_bench.scoring import results

    if not re.fullmatch(r"[\w.-]+/[\w.-]+", args.model_id) or ".." in args.model_id:
        raise UserError(f"'{args.model_id}' is not a model's name; they look like ORG/MODEL")
    source = Source(args.model_id, args.organisation, args.relationship, args.dataset)
    converted = record(results.load(args.folder), source, int(time.time()))
    path = Path(args.out) / file_name(converted)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, json.dumps(converted, indent=2, ensure_ascii=False) + "\n")
    print(f"{path}: {len(converted['evaluation_results'])} scores")


def _data(args: argparse.Namespace) -> None:
    from speech_robust_bench.core.files import write_atomically
    from speech_robust_bench.extensions.exports.croissant import as_json, croissant

    metadata = croissant(args.data, args.url)
    path = Path(args.data) / "croissant.json"
    write_atomically(path, as_json(metadata))
    print(f"{path}: {len(metadata['recordSet'])} configs")
