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
import os
import subprocess
import sys
import tempfile
import threading
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


def small_ctc(place: Path) -> Path:
    """A wav2vec 2.0 of two narrow layers with random weights, as a transformers folder."""
    import transformers

    torch.manual_seed(1)
    letters = ["<pad>", "<s>", "</s>", "<unk>", "|", *"ABCDEFGHIJKLMNOPQRSTUVWXYZ'"]
    (place / "vocab.json").write_text(json.dumps({letter: index for index, letter in enumerate(letters)}))
    tokenizer = transformers.Wav2Vec2CTCTokenizer(str(place / "vocab.json"))
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=True, do_normalize=True)
    transformers.Wav2Vec2Processor(extractor, tokenizer).save_pretrained(place)
    config = transformers.Wav2Vec2Config(
        vocab_size=len(letters),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        conv_dim=(16,) * 7,
        num_conv_pos_embeddings=16,
        num_conv_pos_embedding_groups=4,
        pad_token_id=0,
        feat_extract_norm="layer",
        do_stable_layer_norm=True,
        initializer_range=0.5,
    )
    transformers.Wav2Vec2ForCTC(config).save_pretrained(place)
    return place


class Peak:
    """The most memory that this process held at a time, above what it began with."""

    def __enter__(self) -> Peak:
        self.bytes, self._before, self._done = 0, _resident_bytes(), threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._done.wait(0.002):
            self.bytes = max(self.bytes, _resident_bytes() - self._before)

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()


def _resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def speed(count: int, steps: int) -> int:
    """PGD on clips of 0.3 to 0.5 s, in one batch and one by one; in double precision, so that both are the same."""
    rng = np.random.default_rng(0)
    sizes = [int(RATE * (0.3 + 0.2 * i / count)) for i in range(count)]
    sounds = [(0.1 * rng.standard_normal(size)).astype(np.float32) for size in sizes]
    clips = [Clip(f"{number:02d}", sound, "the fox") for number, sound in enumerate(sounds)]
    with tempfile.TemporaryDirectory() as folder:
        view = open_view(open_model(f"hf:{small_ctc(Path(folder))}?device=cpu&dtype=float64&batch_size={count}"))
    attack = Pgd(Bound(snr_db=20), 3, steps=steps, hear_every=0)
    with Peak() as peak:  # of the first run: later ones find their memory already there
        attack.run(view, clips)
    start = time.perf_counter()
    together = [one for batch in batches(clips, count, True) for one in attack.run(view, batch)]
    batched_s = time.perf_counter() - start
    start = time.perf_counter()
    alone = [one for clip in clips for one in attack.run(view, [clip])]
    single_s = time.perf_counter() - start
    by_id = {one.clip.id: one for one in together}
    worst = max(int(np.abs(one.pcm.astype(int) - by_id[one.clip.id].pcm).max()) for one in alone)
    ratio = single_s / batched_s
    say(
        batched_s=round(batched_s, 2),
        one_by_one_s=round(single_s, 2),
        ratio=round(ratio, 2),
        largest_difference_of_a_sample=worst,
        peak_mb_per_second_of_audio=round(peak.bytes / 2**20 / sum(clip.seconds for clip in clips), 1),
    )
    return 0 if ratio >= TARGET_RATIO and worst <= 1 else 1


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
    return speed(16, args.steps)


if __name__ == "__main__":
    sys.exit(main())
