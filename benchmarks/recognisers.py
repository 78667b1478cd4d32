"""How fast `hf:` is beside transformers' own pipeline, and what the pipe to another environment costs.

    python benchmarks/recognisers.py [--clips 32] [--batch-size 8]

The same model, clips and batch size, in turns within one run, on one thread, in processor time; the ratio of the
best turns counts, because the others measure what else the machine is doing. Whisper tiny.en with its real weights
(python -m tests.support.whisper_weights) and a small CTC model with random ones, which takes as long as a trained one.
The target is 1.0 or more.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from speech_robust_bench.core.audio import RATE, read
from speech_robust_bench.models.interface import open_model

TURNS = 3


def clips_of(count: int) -> list[np.ndarray]:
    """Cuts of 3 to 10 s of the reading that comes with moonshine-voice."""
    from speech_robust_bench.models.adapters.moonshine import assets

    voice = read(assets() / "two_cities.wav")
    lengths = np.linspace(3, 10, count) * RATE
    starts = np.linspace(0, len(voice) - 10 * RATE, count).astype(int)
    return [voice[start : start + int(length)] for start, length in zip(starts, lengths, strict=True)]


def small_ctc(folder: Path) -> Path:
    """wav2vec 2.0 of 4 layers and 256 units, as a folder."""
    import transformers
    from support.small_models import ctc_folder

    ctc_folder(folder, "Wav2Vec2", feat_extract_norm="layer", do_stable_layer_norm=True)
    config = transformers.Wav2Vec2Config(
        vocab_size=32,
        hidden_size=256,
        num_hidden_layers=4,
        num_attention_heads=4,
        intermediate_size=1024,
        conv_dim=(256,) * 7,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        pad_token_id=0,
    )
    transformers.Wav2Vec2ForCTC(config).save_pretrained(folder)
    return folder


def best_seconds(works: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The best time of each, in turns, after a first turn that does not count."""
    best = dict.fromkeys(works, float("inf"))
    for turn in range(TURNS + 1):
        for name, work in works.items():
            start = time.process_time()
            work()
            if turn:
                best[name] = min(best[name], time.process_time() - start)
    return best


def compare(label: str, folder: Path, clips: list[np.ndarray], batch_size: int) -> None:
    import transformers

    recogniser = open_model(f"hf:{folder}?batch_size={batch_size}&device=cpu")
    pipeline = transformers.pipeline(
        "automatic-speech-recognition", model=str(folder), batch_size=batch_size, device="cpu"
    )
    pipeline.tokenizer.pad_token = pipeline.tokenizer.pad_token or pipeline.tokenizer.eos_token  # it batches only so
    # its own default for Whisper are five beams: the same work is asked of both
    greedy = {"generate_kwargs": {"num_beams": 1}} if pipeline.type == "seq2seq_whisper" else {}
    ordered = sorted(clips, key=len, reverse=True)  # as `srb run` sends them: like lengths together
    batches = [ordered[start : start + batch_size] for start in range(0, len(ordered), batch_size)]
    best = best_seconds(
        {
            "hf": lambda: [recogniser.transcribe(batch, RATE, "en") for batch in batches],
            "pipeline": lambda: pipeline([{"raw": clip, "sampling_rate": RATE} for clip in ordered], **greedy),
        }
    )
    ratio = best["pipeline"] / best["hf"]
    print(
        f"{label}: hf {best['hf']:.2f} s, pipeline {best['pipeline']:.2f} s for {len(clips)} clips: {ratio:.2f} times",
        flush=True,
    )


def processor_seconds(process: int | str) -> float:
    """What a process has used so far, from /proc (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def pipe(clips: int = 320) -> None:
    """The pipe alone: 10 s clips to a recogniser that returns at once, in a process of this environment."""
    from collections import deque
    from subprocess import PIPE, Popen

    from speech_robust_bench.models.environments import PipedRecogniser, ask

    process = Popen([sys.executable, "-m", "speech_robust_bench.models.environments"], stdin=PIPE, stdout=PIPE)
    about = ask(process, {"spec": "python:support.standin:at_once", "defaults": {}}, [], deque())
    recogniser = PipedRecogniser(about["name"], None, {}, 16, process, {}, deque())
    audio = [np.zeros(10 * RATE, np.float32)] * 16

    def send() -> None:
        for _ in range(clips // 16):
            recogniser.transcribe(audio, RATE, "en")

    send()
    before = processor_seconds("self") + processor_seconds(process.pid)
    send()
    seconds = processor_seconds("self") + processor_seconds(process.pid) - before
    recogniser.close()
    print(f"pipe: {seconds / clips * 1e3:.2f} ms of processor time a clip of 10 s, both sides together (2 ms at most)")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--clips", type=int, default=32)
    parser.add_argument("--batch-size", type=int, default=8)
    args = parser.parse_args()
    import torch
    from support.whisper_weights import default_folder

    torch.set_num_threads(1)
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[1] / "tests")
    clips = clips_of(args.clips)
    pipe()
    with tempfile.TemporaryDirectory() as place:
        compare("small CTC", small_ctc(Path(place)), clips, args.batch_size)
    if (default_folder() / "config.json").is_file():
        compare("Whisper tiny.en", default_folder(), clips, args.batch_size)
    else:
        print("Whisper tiny.en: python -m tests.support.whisper_weights fetches its weights")
    return 0


if __name__ == "__main__":
    sys.exit(main())
