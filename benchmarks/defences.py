"""Defences of Whisper tiny.en: clean WER, WER under PGD that does not know of the defence and that does, and cost.

    python benchmarks/defences.py --clips 8 --steps 10 --snr 30 --eot 4 --n 8 --out defences.jsonl
    python benchmarks/defences.py --finetune 40 --sigma 0.02 --tuned whisper-noisy     # first: a model that knows noise

The naive attack is one on the undefended model. The adaptive one sees each defence (`--eot` draws per gradient of what
is random, straight-through gradients of what has none), by PGD's defaults but for the steps. Every clip's results are
kept in `--out`, and a run that was interrupted goes on. `--finetune N` trains the model for N steps of Adam under white
noise on prompts that are not attacked. Needs what benchmarks/attacks.py needs. Printed as JSON lines.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from support.whisper_weights import default_folder  # noqa: E402

from attacks import prompts  # noqa: E402
from speech_robust_bench.attacks.clips import AttackBatch, AttackClip, Bound, padded, to_float  # noqa: E402
from speech_robust_bench.attacks.pgd import Pgd  # noqa: E402
from speech_robust_bench.attacks.views.open_view import open_view  # noqa: E402
from speech_robust_bench.models.interface import Recogniser, open_model  # noqa: E402
from speech_robust_bench.scoring.scoring import align  # noqa: E402

DEFENCES = {
    "none": "sigma=0&n=1",
    "mp3": "sigma=0&n=1&enhance=mp3",
    "quantise": "sigma=0&n=1&enhance=quantise",
    "noise, rover": "sigma={sigma}&n={n}",
    "noise, majority": "sigma={sigma}&n={n}&vote=majority",
    "noise, asnr, rover": "sigma={sigma}&n={n}&enhance=asnr",
    "mad, rover": "sigma={sigma}&n={n}&noise=mad",
    "tuned": "sigma=0&n=1",
    "tuned, noise, rover": "sigma={sigma}&n={n}",
}


class Kept:
    """Values by key, in a file."""

    def __init__(self, path: Path) -> None:
        lines = path.read_text().splitlines() if path.is_file() else []
        self.path, self.known = path, {tuple(key): value for key, value in map(json.loads, lines)}

    def get(self, key: tuple, make: Any) -> Any:
        if key not in self.known:
            self.known[key] = make()
            with self.path.open("a") as file:
                file.write(json.dumps([key, self.known[key]]) + "\n")
        return self.known[key]


def finetune(folder: Path, out: Path, steps: int, sigma: float) -> None:
    """Train on other prompts under white noise by the view's own loss, and save the model."""
    view = open_view(open_model(f"hf:{folder}?device=cpu"))
    clips = prompts(400, 1.0, 3.0)[-200:]
    view.model.requires_grad_(True)
    optimiser = torch.optim.AdamW(view.model.parameters(), 1e-5)
    rng = np.random.default_rng(0)
    for step in range(steps):
        batch = [clips[i] for i in rng.choice(len(clips), 2, replace=False)]
        noisy = [
            clip.samples + np.float32(sigma) * rng.standard_normal(len(clip.samples), np.float32) for clip in batch
        ]
        waves, lengths = padded(noisy)
        loss = view.losses(waves, AttackBatch(lengths, [view.spell(clip.text) for clip in batch], "en")).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        print(json.dumps({"part": "finetune", "step": step, "loss": round(float(loss.detach()), 3)}), flush=True)
    view.model.save_pretrained(out)
    view.model.generation_config.save_pretrained(out)
    view.processor.save_pretrained(out)


def attacked(recogniser: Recogniser, clip: AttackClip, snr_db: float, steps: int, eot: int) -> list[int]:
    """The samples of PGD's last candidate."""
    attack = Pgd(Bound(snr_db=snr_db), 2, steps=steps, transcribe_every=0)
    (result,) = attack.run(open_view(recogniser, eot=eot), [clip])
    return result.pcm.tolist()


def transcribed(recogniser: Recogniser, samples: np.ndarray) -> list[Any]:
    """The transcript, and the processor time that it took."""
    start = time.process_time()
    return [*recogniser.transcribe([samples], 16_000, "en"), time.process_time() - start]


def measure(name: str, clips: list[AttackClip], kept: Kept, args: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    folder = args.tuned if name.startswith("tuned") else default_folder()
    options = DEFENCES[name].format(sigma=args.sigma, n=args.n)
    recogniser = open_model(f"smooth:hf:{folder}?device=cpu&batch_size=4?{options}")
    plain = open_model(f"smooth:hf:{default_folder()}?device=cpu?{DEFENCES['none']}")
    naive_settings, settings = (args.snr, args.steps), (args.snr, args.steps, args.sigma, args.n)
    gradients = name.replace("majority", "rover")  # they do not depend on how a defence votes
    hypotheses: dict[str, list[str]] = {"clean": [], "naive": [], "adaptive": []}
    seconds = []
    for clip in clips:
        naive = kept.get((clip.id, *naive_settings, "naive"), partial(attacked, plain, clip, *naive_settings, 1))
        adaptive = naive
        if name != "none":
            make = partial(attacked, recogniser, clip, *naive_settings, args.eot)
            adaptive = kept.get((clip.id, *settings, args.eot, gradients), make)
        after = {"naive": naive, "adaptive": adaptive}
        sounds = {"clean": clip.samples, **{key: to_float(np.array(pcm, np.int16)) for key, pcm in after.items()}}
        for what, samples in sounds.items():
            key = (clip.id, *settings, args.eot, name, what)
            text, cost = kept.get(key, partial(transcribed, recogniser, samples))
            hypotheses[what].append(text)
            seconds.append(cost)
    texts = [clip.text for clip in clips]
    wers = {what: round(align(texts, found).rate, 1) for what, found in hypotheses.items()}
    return {"defence": name, "clips": len(clips), "wer": wers, "cpu_s_per_clip": round(float(np.mean(seconds)), 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--defences", nargs="+", choices=DEFENCES, default=list(DEFENCES)[:-2], metavar="D")
    parser.add_argument("--clips", type=int, default=8)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--snr", type=float, default=30)
    parser.add_argument("--eot", type=int, default=4)
    parser.add_argument("--sigma", type=float, default=0.01)
    parser.add_argument("--n", type=int, default=8)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--finetune", type=int, default=0, metavar="N", help="only train, for N steps, into --tuned")
    parser.add_argument("--tuned", type=Path, default=Path("whisper-noisy"), help="the model of the defences 'tuned'")
    parser.add_argument("--out", type=Path, default=Path("defences.jsonl"))
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.finetune:
        finetune(default_folder(), args.tuned, args.finetune, args.sigma)
        return
    clips, kept = sorted(prompts(40), key=lambda clip: len(clip.samples))[: args.clips], Kept(args.out)
    for name in args.defences:
        print(json.dumps(measure(name, clips, kept, args)), flush=True)


if __name__ == "__main__":
    main()
