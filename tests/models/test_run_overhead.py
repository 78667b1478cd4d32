"""What `srb run` adds to decoding the audio is small, whatever the machine: processor times within one run compared."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from small_configs import write_config
from test_running import srb_run

from srb.core.audio import encode_flac, read, to_pcm16


def best_of_three(work: Callable[[int], object]) -> float:
    times = []
    for turn in range(3):
        start = time.process_time()
        work(turn)
        times.append(time.process_time() - start)
    return min(times)


def test_running_costs_little_more_than_decoding(tmp_path: Path) -> None:
    rng = np.random.Generator(np.random.PCG64(0))
    clips = [rng.normal(0, 0.02, 160_000).astype(np.float32) for _ in range(5)] * 12
    write_config(tmp_path / "srb", "en-demo_clean", clips, rows_per_group=30)
    flacs = [encode_flac(to_pcm16(clip)) for clip in clips[:5]] * 12
    decoding = best_of_three(lambda _: [read(flac) for flac in flacs])
    running = best_of_three(lambda turn: srb_run("python:standin:at_once", tmp_path / "srb", tmp_path / str(turn)))
    assert running < 1.5 * decoding + 0.1  # 0.1 s for what is done once
