"""Options that several commands share."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentTypeError
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import argparse

    from speech_robust_bench.builders.configs import ConfigSource
    from speech_robust_bench.builders.live_config import LiveConfigs

Options = Any  # a parser, or a group of its options


def positive(text: str) -> int:
    """The type of an option that counts something."""
    if (value := int(text)) < 1:
        raise ArgumentTypeError("must be 1 or more")
    return value


def add_scenarios_option(parser: Options) -> None:
    parser.add_argument(
        "--scenarios", metavar="FILE", help="a YAML file with scenarios of your own (audiomentations transforms)"
    )


def add_normaliser_option(parser: Options) -> None:
    """Which rules make the words of two transcripts comparable."""
    parser.add_argument(
        "--normaliser",
        default="srb-paper-1",
        metavar="NAME",
        help="srb-paper-1 (default: the paper's and the leaderboard's), srb-numbers-1 (recommended for new results of "
        "your own: numbers however written), srb-paper-2, open-asr-2026-08, open-asr-1, whisper-en, whisper-basic or "
        "none",
    )


def add_corpus_options(parser: Options) -> None:
    """Where clips, noises and rooms come from, and what to do about bad ones."""
    parser.add_argument(
        "--corpus",
        action="append",
        default=[],
        metavar="LANG[-NAME]=PATH",
        help="where a corpus is, as in en=LibriSpeech or en-tedlium=TEDLIUM_release-3; en-demo is built in",
    )
    parser.add_argument(
        "--follow-links", action="store_true", help="read links in a corpus that lead to files outside of it"
    )
    parser.add_argument("--on-error", choices=["stop", "skip"], default="stop", help="what to do about bad clips")
    parser.add_argument(
        "--tts", metavar="ENGINE", help="for *_tts configs: espeak, flite, yourtts, bark, mms, hf:MODEL"
    )
    add_bank_options(parser)
    add_scenarios_option(parser)


def add_bank_options(parser: Options) -> None:
    parser.add_argument(
        "--noise-dir",
        metavar="DIR",
        type=os.path.abspath,
        help="MS-SNSD, ESC-50, MUSAN, WHAM!, a folder that holds them, or any audio",
    )
    parser.add_argument(
        "--rir-dir",
        metavar="DIR",
        type=os.path.abspath,
        help="OpenSLR-28 (RIRS_NOISES) or any folder of room responses",
    )


def shares(option: str, given: list[str] | None) -> dict[str, float] | None:
    """GROUP=SHARE pairs of an option as a dictionary; None where it was not given."""
    from speech_robust_bench.core.errors import UserError

    if given is None:
        return None
    parsed = {}
    for pair in given:
        group, _, share = pair.rpartition("=")
        try:
            parsed[group] = float(share)
        except ValueError:
            group = ""
        if not group or parsed[group] < 0:
            raise UserError(f"{option} '{pair}' is not GROUP=SHARE, as in female=0.5 male=0.5")
    return parsed


def perturbed_configs(args: argparse.Namespace) -> LiveConfigs:
    """The configs that are perturbed from the corpora given."""
    from speech_robust_bench.builders.banks import Banks
    from speech_robust_bench.builders.corpora import parse_flags
    from speech_robust_bench.builders.custom import load_table
    from speech_robust_bench.builders.live_config import LiveConfigs, default_workers
    from speech_robust_bench.core.errors import UserError

    if args.data:
        raise UserError("say either --data, for what was built, or --corpus, to perturb it now")
    return LiveConfigs(
        parse_flags(args.corpus, args.follow_links),
        Banks(args.noise_dir, args.rir_dir),
        load_table(args.scenarios),
        limit=getattr(args, "limit", None),
        tts=args.tts,
        on_error=args.on_error,
        workers=getattr(args, "perturb_workers", None) or default_workers(),
        report=lambda problem: print(problem, file=sys.stderr),
    )


def config_source(args: argparse.Namespace) -> ConfigSource:
    """Where the configs are: what was built, or the corpora themselves."""
    from speech_robust_bench.builders.config_sources import open_data

    return perturbed_configs(args) if args.corpus else open_data(args.data)


def add_allow_changed(parser: Options) -> None:
    """For commands that read run folders: take edited files as they are."""
    parser.add_argument(
        "--allow-changed", action="store_true", help="take predictions or results that were edited after the run"
    )
