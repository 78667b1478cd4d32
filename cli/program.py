"""The `srb` program: the command, and Ctrl-C in the first moment, while Python is still importing it."""

import sys

try:
    from speech_robust_bench.cli.main import main
except KeyboardInterrupt:
    print("srb: interrupted; run the same command again", file=sys.stderr)
    sys.exit(130)

__all__ = ["main"]
