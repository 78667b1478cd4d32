"""`srb leaderboard`: verified results as a page in the browser."""

from __future__ import annotations

import argparse


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--results", default="verified", metavar="FOLDER", help="verified results (default: verified)")
    parser.add_argument("--port", type=int, help="default: the first free one from 7860")
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (default: 127.0.0.1)")
    parser.add_argument("--export", metavar="FOLDER", help="write the files of a static Space instead")


def run(args: argparse.Namespace) -> None:
    if args.export:
        from speech_robust_bench.push.leaderboard.site import export

        print(export(args.results, args.export))
        return
    from speech_robust_bench.push.leaderboard.server import make

    with make(args.results, args.host, args.port) as server:
        host, port = server.server_address[:2]
        print(f"http://{host if isinstance(host, str) else host.decode()}:{port}/  (Ctrl-C ends it)", flush=True)
        server.serve_forever()
