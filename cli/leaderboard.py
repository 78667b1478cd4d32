"""`srb leaderboard`: verified results as a page in the browser."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", default="verified", metavar="FOLDER", help="verified results (default: verified)")
    parser.add_argument("--port", type=int, help="default: the first free one from 7860")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--export", metavar="FOLDER", help="write the folder of a Space instead, which stands alone")


def run(args: argparse.Namespace) -> None:
    from srb.builders.errors import UserError

    if args.export:
        from srb.push.leaderboard.space import export

        print(export(args.results, args.export))
        return
    try:
        import gradio  # noqa: F401
    except ImportError:
        raise UserError("the leaderboard needs gradio: pip install 'speech-robust-bench[push]'") from None
    from srb.push.leaderboard.app import launch

    launch(args.results, server_name=args.host, server_port=args.port)
