"""`auto` against PGD tuned by hand, at equal gradient calls.

    python benchmarks/attack_auto.py ctc seq2seq transducer --clips 24 --steps 40 --snr 26 20 16 12
    python benchmarks/attack_auto.py whisper --clips 8 --steps 20 --snr 40 30 20 10 --pgd-steps 0.1 0.4 --out done.jsonl

PGD runs with every step size that is named and counts with the best of them (at each SNR another one may win).
Success is min(WER, 1), the mean over clips; intervals are of 2,000 bootstrap resamplings of the clips, that of the
difference paired. Printed as JSON lines. With `--out`, every clip's result is kept there as soon as it is known, and a
run that was interrupted goes on. The small models are those of tests/support/tones.py; whisper needs what
benchmarks/attacks.py needs.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "tests")]

from speech_robust_bench.attacks.clips import AttackClip, Bound, batches  # noqa: E402
from speech_robust_bench.attacks.pgd import Attack, Pgd  # noqa: E402
from speech_robust_bench.attacks.views.base import View  # noqa: E402
from speech_robust_bench.attacks.views.open_view import open_view  # noqa: E402
from speech_robust_bench.extensions.attacks.auto import Auto  # noqa: E402
from speech_robust_bench.models.adapters.python import Function  # noqa: E402
from speech_robust_bench.models.interface import open_model  # noqa: E402


def opened(kind: str, count: int) -> tuple[View, list[AttackClip]]:
    """A model and clips for it."""
    if kind == "whisper":
        from support.whisper_weights import default_folder

        from attacks import prompts

        return open_view(open_model(f"hf:{default_folder()}?device=cpu")), prompts(count)
    from support import tones

    model = {"ctc": tones.ctc, "seq2seq": tones.seq2seq, "transducer": tones.transducer}[kind]()
    return open_view(Function(kind, "1", {}, 16, model.transcribe, model)), [tones.clip_of(i, 2) for i in range(count)]


class Results:
    """(success, gradient calls) of every clip under every attack, kept in a file if there is one."""

    def __init__(self, path: Path | None) -> None:
        lines = path.read_text().splitlines() if path and path.is_file() else []
        self.path, self.known = path, {tuple(key): value for key, value in map(json.loads, lines)}

    def of(self, key: tuple, attack: Attack, view: View, clips: list[AttackClip]) -> np.ndarray:
        """(clip, 2): success and gradient calls. Clips that are not known yet are attacked, one by one if kept."""
        left = [clip for clip in clips if (*key, clip.id) not in self.known]
        for batch in batches(left, 1 if self.path else len(clips), view.pads_safely):
            for attacked in attack.run(view, batch):
                self._keep((*key, attacked.clip.id), [attacked.facts["success"], attacked.facts["steps"]])
        return np.array([self.known[(*key, clip.id)] for clip in clips])

    def _keep(self, key: tuple, value: list[float]) -> None:
        self.known[key] = value
        if self.path:
            with self.path.open("a") as file:
                file.write(json.dumps([key, value]) + "\n")


def interval(values: np.ndarray) -> list[float]:
    draws = np.random.default_rng(0).integers(0, len(values), (2000, len(values)))
    return [round(100 * float(q), 1) for q in np.quantile(values[draws].mean(1), [0.025, 0.975])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", choices=["ctc", "seq2seq", "transducer", "whisper"])
    parser.add_argument("--clips", type=int, default=24)
    parser.add_argument("--steps", type=int, default=40, help="gradient calls per clip")
    parser.add_argument("--snr", type=float, nargs="+", default=[26, 20, 16, 12])
    parser.add_argument("--pgd-steps", type=float, nargs="+", default=[0.05, 0.1, 0.2, 0.4, 1.0])
    parser.add_argument("--queries", type=int, default=0, help="of auto's black-box search (default: none)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, help="keep each clip's result in this file, and use what is there")
    args = parser.parse_args()
    results = Results(args.out)
    torch.set_num_threads(args.threads)
    for kind in args.models:
        view, clips = opened(kind, args.clips)
        for snr_db in args.snr:
            bound = Bound("l2", snr_db)
            often = max(1, args.steps // 10)
            key = (kind, snr_db, args.steps, args.queries)
            auto = Auto(bound, 1, steps=args.steps, queries=args.queries)
            of_auto = results.of((*key, "auto"), auto, view, clips)
            tuned = {}
            for step in args.pgd_steps:
                pgd = Pgd(bound, 1, steps=args.steps, step=step, transcribe_every=often, stop=1.0)
                tuned[step] = results.of((*key, step), pgd, view, clips)[:, 0]
            best = max(tuned, key=lambda step: float(tuned[step].mean()))
            facts = {
                "model": kind,
                "snr_db": snr_db,
                "clips": len(clips),
                "steps": args.steps,
                "auto": round(100 * float(of_auto[:, 0].mean()), 1),
                "auto_interval": interval(of_auto[:, 0]),
                "auto_gradient_calls": round(float(of_auto[:, 1].mean()), 1),
                "pgd": {str(step): round(100 * float(values.mean()), 1) for step, values in tuned.items()},
                "pgd_best_interval": interval(tuned[best]),
                "difference_interval": interval(of_auto[:, 0] - tuned[best]),
            }
            print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
