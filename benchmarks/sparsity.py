"""Adversarial sparsity of models that PGD breaks equally, and of Whisper tiny.en.

    python benchmarks/sparsity.py small
    python benchmarks/sparsity.py whisper --whisper FOLDER --corpus LibriSpeech/test-clean --clips 3

`small` compares two small CTC models of the tests: one that was trained with faint noise, one with strong noise. The
success of PGD (20 steps) stands beside the angle. `whisper` needs minutes: it searches few directions coarsely.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests")]

from support.tones import SmallCtc, clip_of, text_of, tones  # noqa: E402

import speech_robust_bench as srb  # noqa: E402
from speech_robust_bench.attacks.clips import AttackClip, Bound, padded  # noqa: E402
from speech_robust_bench.attacks.pgd import Pgd  # noqa: E402
from speech_robust_bench.attacks.views.open_view import open_view  # noqa: E402
from speech_robust_bench.extensions.sparsity.result import ClipAngles, rows_of, summary  # noqa: E402
from speech_robust_bench.extensions.sparsity.search import ConeSearch, SearchSettings  # noqa: E402
from speech_robust_bench.models.adapters.python import as_recogniser  # noqa: E402

SNRS_DB = (20.0, 15.0, 10.0, 5.0)


def trained(noise: float, steps: int = 200) -> SmallCtc:
    """A small CTC model that was trained under noise of some strength."""
    torch.manual_seed(0)
    model = SmallCtc()
    optimiser = torch.optim.Adam(model.parameters(), 0.01)
    for step in range(steps):
        texts = [text_of(10_000 + 16 * step + i) for i in range(16)]
        waves, lengths = padded([tones(text, 7 * step + i, noise) for i, text in enumerate(texts)])
        loss = model.losses(waves, lengths, texts).mean()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model.eval().requires_grad_(False)


def compare_small_models(clips: int) -> None:
    settings = SearchSettings(directions=20, halvings=8, steps=20)
    for noise in (0.02, 0.2):
        view = open_view(as_recogniser(trained(noise))[1])
        known = [clip_of(seed) for seed in range(clips)]
        texts = [view.transcribe([clip.samples], "en")[0] for clip in known]
        known = [clip for clip, text in zip(known, texts, strict=True) if text == clip.text]
        for severity, snr_db in enumerate(SNRS_DB, 1):
            attacked = Pgd(Bound("l2", snr_db), severity, steps=20).run(view, known)
            broken = np.mean([one.facts["prediction_after"] != one.clip.text for one in attacked])
            lines = [angles(view, clip, snr_db, severity, settings) for clip in known]
            found = summary(lines, snr_db, severity)
            told = {"noise": noise, "snr_db": snr_db, "clips": len(known), "broken by PGD": round(float(broken), 3)}
            keep = ("vulnerable", "degrees", "interval", "random")
            print(json.dumps(told | {key: getattr(found, key) for key in keep}), flush=True)


def angles(view, clip: AttackClip, snr_db: float, severity: int, settings: SearchSettings) -> ClipAngles:
    found = ConeSearch(view, clip, clip.text, snr_db, settings).run()
    return ClipAngles(id=clip.id, severity=severity, angles=list(found.radians), random=found.random)


def main() -> int:
    parser = argparse.ArgumentParser(description="Adversarial sparsity.")
    parser.add_argument("part", choices=("small", "whisper"))
    parser.add_argument("--clips", type=int, default=20)
    parser.add_argument("--corpus", type=Path, default=Path("LibriSpeech/test-clean"))
    parser.add_argument("--whisper", default=str(Path("~/.cache/srb/whisper-tiny.en").expanduser()))
    parser.add_argument("--out", type=Path, default=Path("sparsity"))
    args = parser.parse_args()
    torch.set_num_threads(1)
    if args.part == "small":
        compare_small_models(args.clips)
        return 0
    found = srb.sparsity(
        f"hf:{args.whisper}",
        "en_clean",
        corpus={"en": args.corpus},
        limit=args.clips,
        out=args.out,
        sparsity_options=srb.SparsityOptions(directions=3, halvings=5, steps=3),
    )
    for row in rows_of(found, None):
        print(json.dumps(row), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
