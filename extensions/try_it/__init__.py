"""Try it: a page on which a visitor hears and sees a clip of their own under any scenario, beside the leaderboard."""

from speech_robust_bench.cli.command import CommandRow

COMMANDS = [
    CommandRow(
        "try-it",
        "publish",
        "serve the leaderboard and a page to try scenarios",
        f"{__name__}.space",
    ),
]
