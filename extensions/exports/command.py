"""`srb export every-eval-ever | croissant`: results and data in the forms that other collections read."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, run_argument
from speech_robust_bench.core.options import Options, option

RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")


@dataclass(frozen=True, kw_only=True)
class ResultsArguments(Options):
    run: str = run_argument()
    model_id: str = option(help="repository of the model on the Hub", metavar="ORG/MODEL")
    organisation: str = option(help="who ran the evaluation", metavar="NAME")
    relationship: str = option(
        "third_party", "relationship between who ran it and who made the model", choices=RELATIONSHIPS
    )
    dataset: str | None = option(None, "Hub dataset that the clips came from", metavar="ORG/srb")
    out: str = option(".", "the record goes to FOLDER/data/...", metavar="FOLDER")


@dataclass(frozen=True, kw_only=True)
class CroissantArguments(Options):
    data: str = option("srb", "built folder", metavar="FOLDER")
    url: str = option("", "where the data is published")


def results(args: ResultsArguments) -> None:
    path, count = srb.export_results(
        args.run,
        model_id=args.model_id,
        organisation=args.organisation,
        relationship=args.relationship,
        dataset=args.dataset,
        out=args.out,
    )
    print(f"{path}: {count} scores")


def croissant(args: CroissantArguments) -> None:
    path, count = srb.export_croissant(args.data, args.url)
    print(f"{path}: {count} configs")


COMMANDS = (
    Command(
        ResultsArguments,
        results,
        name="every-eval-ever",
        help="write the scores of a run for Every Eval Ever",
    ),
    Command(
        CroissantArguments,
        croissant,
        name="croissant",
        help="write Croissant metadata of built data, croissant.json",
    ),
)
