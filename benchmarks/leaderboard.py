"""How fast is the leaderboard for many visitors? 200 clients ask at once for the first page of a board of 200 models.

    python benchmarks/leaderboard.py [--clients 200] [--models 200] [--requests 5]

Server and clients share this machine, over the loopback address. Each client opens a connection for every request, as
new visitors do, and asks for the first page, compressed. Printed: requests per second, the median and the 99th
percentile of the seconds from opening the connection to the last byte, and what an upload is answered.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

ASK = b"GET / HTTP/1.1\r\nHost: x\r\nAccept-Encoding: gzip\r\nConnection: close\r\n\r\n"
UPLOAD = b"POST /gradio_api/upload HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc"


async def ask(port: int, request: bytes) -> tuple[float, bytes]:
    """Seconds until the whole answer is there, and the answer."""
    begin = time.perf_counter()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await reader.read()
    writer.close()
    return time.perf_counter() - begin, answer


async def client(port: int, requests: int) -> list[float]:
    seconds = []
    for _ in range(requests):
        took, answer = await ask(port, ASK)
        assert answer.startswith(b"HTTP/1.1 200"), answer[:100]
        seconds.append(took)
    return seconds


async def measure(port: int, clients: int, requests: int) -> tuple[list[float], float, bytes]:
    begin = time.perf_counter()
    seconds = await asyncio.gather(*(client(port, requests) for _ in range(clients)))
    total = time.perf_counter() - begin
    return [each for part in seconds for each in part], total, (await ask(port, UPLOAD))[1].split(b"\r\n")[0]


def main() -> None:
    from support.many_models import write_models

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=200)
    parser.add_argument("--models", type=int, default=200)
    parser.add_argument("--requests", type=int, default=5, help="of each client, one after the other")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = write_models(Path(scratch) / "verified", models=args.models, configs=114)
        command = [sys.executable, "-m", "speech_robust_bench", "leaderboard", "--results", str(folder)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                port = int(server.stdout.readline().split("/  ")[0].rsplit(":", 1)[1])
                seconds, total, upload = asyncio.run(measure(port, args.clients, args.requests))
            finally:
                server.terminate()
    ordered = sorted(seconds)
    p99 = ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]
    print(f"{args.clients} clients, {args.models} models: {len(seconds) / total:.0f} requests/s")
    print(f"p50 {statistics.median(seconds):.3f} s, p99 {p99:.3f} s, slowest {ordered[-1]:.3f} s")
    print(f"an upload is answered: {upload.decode()}")


if __name__ == "__main__":
    main()
