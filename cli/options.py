"""Options that several commands share."""

from __future__ import annotations

import argparse
import os


def add_scenarios_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--scenarios", metavar="FILE", help="a YAML file with scenarios of your own (audiomentations transforms)"
    )


def add_bank_options(parser: argparse.ArgumentParser) -> None:
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
