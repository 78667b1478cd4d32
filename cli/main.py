"""The `srb` command.

Each subcommand is a module of this package with two functions, `arguments(parser)` and `run(args)`. Only the module
of the subcommand that was asked for is imported, and it imports what is heavy inside `run`, so `srb --help` is instant.
"""

from __future__ import annotations

import argparse
import importlib
import signal
import sys
from collections.abc import Sequence

from srb.cli.help import GroupedParser

# group -> command -> its line in `srb --help`, in the order of the workflow
GROUPS = {
    "start here": {
        "demo": "run, score and report on the built-in clips, offline",
        "ls": "list the scenarios by category, or the suites",
    },
    "data": {
        "build": "materialise scenarios as dataset configs",
        "check": "verify the hashes of built configs",
        "perturb": "apply one scenario, or all of them, to an audio file",
        "quality": "add DNSMOS and PESQ columns, or measure front ends",
        "difficulty": "compute or show how hard each scenario is",
    },
    "run and score": {
        "run": "run a recogniser over configs and store its transcripts",
        "score": "score a run: WER, WERD and NWERD with intervals",
        "table": "print the paper's Table 1 for any number of runs",
        "report": "write an HTML page about any number of runs",
        "metrics": "install the metrics for evaluate.load, or export one",
    },
    "compare and diagnose": {
        "compare": "test whether one recogniser is more robust than another",
        "gate": "fail if a model is less robust than a baseline (for CI)",
        "fairness": "test whether a scenario hurts some speakers more",
        "diagnose": "show which words, clips and speakers a model fails on",
        "stability": "show how many configs and clips a ranking needs",
        "anchors": "choose a few clips that predict the score of all",
        "probe": "train a small head on a frozen encoder; rank encoders",
    },
    "attack": {
        "attack": "make the adversarial configs of one model",
        "certify": "certify the radius of a smoothed recogniser",
    },
    "publish": {
        "push": "publish data, metrics or results on the Hugging Face Hub",
        "export": "export results (Every Eval Ever) or metadata (Croissant)",
        "submit": "send a run to the leaderboard by pull request",
        "verify": "recompute the scores of a submission",
        "leaderboard": "serve the verified results as a page in the browser",
    },
}
COMMANDS = {name: summary for group in GROUPS.values() for name, summary in group.items()}
# The commands that take up what an earlier, interrupted one has finished; the others are done in seconds.
RESUMING = {"demo", "build", "quality", "probe", "run", "gate", "attack", "certify", "push"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one subcommand; a user's mistake is one line on stderr and exit code 2, never a traceback."""
    words = list(sys.argv[1:] if argv is None else argv)
    command = next((word for word in words if not word.startswith("-")), None)
    signals: list[int] = []
    try:
        if argv is None:  # the program itself, not a call from Python
            _stop_at_signals(signals)
        return _run(words, command)
    except (KeyboardInterrupt, Exception) as error:
        if not signals and not isinstance(error, KeyboardInterrupt):
            raise
        from srb.core.engines import stop_forkserver

        stop_forkserver()
        again = "to go on" if command in RESUMING else "to start over"
        print(f"srb {command}: interrupted; run the same command again {again}", file=sys.stderr)
        return 128 + (signals[0] if signals else signal.SIGINT)


def _stop_at_signals(signals: list[int]) -> None:
    """Let Ctrl-C and `kill` end the command alike, with workers stopped and what is done kept; note which it was.

    A package that is interrupted while it is imported may raise something else (numpy: an ImportError).
    """

    def stop(number: int, frame: object) -> None:
        signals.append(number)
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in the background
        signal.signal(signal.SIGINT, stop)


def _run(argv: list[str], command: str | None) -> int:
    """The exit code of a command. A mistake of the user's, or a file that cannot be used, is one line."""
    from srb.core.errors import UserError

    try:
        parser = parser_of(command)
        args = parser.parse_args(argv)
        if not hasattr(args, "run"):
            parser.print_help()
            return 0
        return args.run(args) or 0
    except UserError as mistake:
        from srb.core.escape import for_terminal

        print(f"srb {command}: {for_terminal(str(mistake))}", file=sys.stderr)
        return 2
    except OSError as failed:
        if isinstance(failed, BrokenPipeError):  # `srb ls | head`
            sys.stderr.close()
            return 0
        if failed.filename is None or failed.strerror is None:  # not about a file that the user named
            raise
        print(f"srb {command}: {failed.filename}: {failed.strerror.lower()}", file=sys.stderr)
        return 2


def parser_of(command: str | None) -> argparse.ArgumentParser:
    """The parser of the whole command; of its subcommands, only the one that is asked for knows its arguments."""
    parser = GroupedParser(
        prog="srb",
        description="Speech Robust Bench: build scenarios, run a recogniser over them, score its transcripts.",
        epilog="`srb COMMAND --help` shows the options of a command.",
        groups=GROUPS,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and exit")
    for name, summary in COMMANDS.items():
        sub = parser.commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
        if name == command:
            module = importlib.import_module(f"srb.cli.{name}")
            module.arguments(sub)
            sub.set_defaults(run=module.run)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, *_):
        from srb.core.version import __version__

        print("srb", __version__)
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
