"""What attacks cost and what they do to a real recogniser.

    python benchmarks/attacks.py speed              PGD on 16 clips in batches against one by one, and peak memory
    python benchmarks/attacks.py whisper [PART ...] Whisper tiny.en on human recordings: pgd, noise, kenansville, cw

`speed` uses a small CTC model and asks for 2.5 times. `whisper` needs `python -m srb.models.whisper_weights`, ffmpeg
and Debian's asterisk-core-sounds-en-g722; it prints one JSON line per measurement.
"""

from __future__ import annotations

import argparse
import gzip
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from srb.attacks.clips import Bound, Clip, batches, snr_db
from srb.attacks.cw import CarliniWagner
from srb.attacks.loop import Attacked
from srb.attacks.pgd import Pgd
from srb.attacks.views import View, open_view
from srb.builders.audio import RATE
from srb.builders.perturb.kenansville import kenansville
from srb.builders.perturb.noise import gaussian
from srb.metrics.scoring import align
from srb.models.interface import open_model
from srb.models.whisper_weights import default_folder

TARGET_RATIO = 2.5
SOUNDS, LISTING = Path("/usr/share/asterisk/sounds/en"), Path("/usr/share/doc/asterisk-core-sounds-en")
SNRS_DB = (40, 30, 20, 10)


def prompts(count: int, shortest_s: float = 2.0, longest_s: float = 4.0) -> list[Clip]:
    """Telephone prompts spoken by Allison Smith, with their transcripts."""
    listing = gzip.decompress(next(LISTING.glob("core-sounds-en.txt.gz")).read_bytes()).decode("utf-8", "replace")
    found: list[Clip] = []
    for line in listing.splitlines():
        name, _, text = line.partition(": ")
        path = SOUNDS / f"{name}.g722"
        plain = text.translate(str.maketrans("", "", " .,'?!"))
        if not (5 <= len(text.split()) <= 12 and plain.isalpha() and path.is_file()):
            continue
        if shortest_s <= path.stat().st_size / 8000 <= longest_s:
            command = ["ffmpeg", "-v", "error", "-f", "g722", "-i", str(path), "-f", "s16le", "-ac", "1"]
            pcm = subprocess.run([*command, "-ar", str(RATE), "-"], check=True, capture_output=True).stdout
            found.append(Clip(name, np.frombuffer(pcm, np.int16).astype(np.float32) / 32768, text, "en", "asterisk"))
        if len(found) == count:
            break
    return found


def say(**facts: Any) -> None:
    print(json.dumps(facts), flush=True)


def wer(clips: list[Clip], heard: list[str]) -> float:
    return round(align([clip.text for clip in clips], heard).rate, 1)


def whisper(parts: list[str], count: int, steps: int) -> None:
    """Each part on the same clips, with its processor time."""
    clips = prompts(count)
    view = open_view(open_model(f"hf:{default_folder()}?batch_size=5&device=cpu"))
    say(clips=len(clips), seconds=round(sum(clip.seconds for clip in clips), 1), difference=view.difference(clips[:4]))
    for part in parts:
        PARTS[part](view, clips, steps)


def _clean(view: View, clips: list[Clip], steps: int) -> None:
    say(part="clean", wer=wer(clips, view.transcribe([clip.samples for clip in clips], "en")))


def _pgd(view: View, clips: list[Clip], steps: int) -> None:
    for snr in SNRS_DB:
        attack = Pgd(Bound(snr_db=snr), SNRS_DB.index(snr) + 1, steps=steps, hear_every=4, stop=1.0)
        start = time.process_time()
        found = [one for batch in batches(clips, 5, True) for one in attack.run(view, batch)]
        _tell("pgd", snr, found, time.process_time() - start)


def _tell(part: str, snr: float | None, found: list[Attacked], seconds: float) -> None:
    reached = [snr_db(one.clip.samples, one.pcm) or float("inf") for one in found]
    say(
        part=part,
        snr_db=snr,
        wer=wer([one.clip for one in found], [one.facts["prediction_after"] for one in found]),
        success=round(float(np.mean([one.facts["success"] for one in found])), 3),
        least_snr_db=round(min(reached), 4),
        mean_snr_db=round(float(np.mean(reached)), 2),
        loss_before=round(float(np.mean([one.facts["loss_before"] for one in found])), 3),
        loss_after=round(float(np.mean([one.facts["loss_after"] for one in found])), 3),
        steps=[one.facts["steps"] for one in found],
        cpu_seconds=round(seconds, 1),
    )


def _noise(view: View, clips: list[Clip], steps: int) -> None:
    for snr in SNRS_DB:
        noisy = [gaussian(clip.samples, RATE, snr, clip.rng("gaussian", 0)).clip(-1, 1) for clip in clips]
        say(part="white noise", snr_db=snr, wer=wer(clips, view.transcribe(noisy, "en")))


def _kenansville(view: View, clips: list[Clip], steps: int) -> None:
    for snr in SNRS_DB:
        made = [kenansville(clip.samples, RATE, snr, clip.rng("kenansville", 0)) for clip in clips]
        say(part="kenansville", snr_db=snr, wer=wer(clips, view.transcribe(made, "en")))


def _cw(view: View, clips: list[Clip], steps: int) -> None:
    targets = ("Open the door", "Thank you very much")
    attack = CarliniWagner(targets, eps=0.05, learning_rate=0.004, steps=80, shrinks=0)
    for clip in sorted(clips, key=lambda one: len(one.samples))[:5]:
        start = time.process_time()
        (one,) = attack.run(view, [clip])
        seconds = round(time.process_time() - start, 1)
        reached = round(snr_db(clip.samples, one.pcm) or 0, 1)
        keys = ("target", "prediction_before", "prediction_after", "success", "steps")
        say(part="cw", snr_db=reached, cpu_seconds=seconds, **{key: one.facts[key] for key in keys})


PARTS: dict[str, Callable[[View, list[Clip], int], None]] = {
    "clean": _clean,
    "pgd": _pgd,
    "noise": _noise,
    "kenansville": _kenansville,
    "cw": _cw,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["speed", "whisper"])
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.what == "whisper":
        whisper(args.parts or list(PARTS), args.clips, args.steps)
        return 0
    return 0


if __name__ == "__main__":
    sys.exit(main())
