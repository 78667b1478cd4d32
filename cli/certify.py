"""`srb certify`: the radius in which a smoothed recogniser provably keeps its transcript."""

from __future__ import annotations

import argparse
from pathlib import Path


def arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--model", required=True, metavar="M", help="a smoothed model: smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    add("--config", required=True, help="the config whose clips are certified")
    add("--data", default="srb", help="where it is: a built folder, the datasets cache, the Hub (default: srb)")
    add("--out", default="certificates.jsonl", metavar="FILE", help="a line per clip (default: certificates.jsonl)")
    add("--limit", type=int, metavar="N", help="only the first N clips")
    add("--draws", type=int, default=1000, metavar="N", help="draws of noise per clip (default 1000)")
    add("--alpha", type=float, default=0.001, help="risk that a clip's certificate is wrong (default 0.001)")
    add("--wer", type=float, default=0.0, metavar="K", help="transcripts within this WER count as kept (default 0)")
    add("--device", help="cpu, cuda, cuda:1, ...")
    add("--quiet", action="store_true", help="no progress bar")


def run(args: argparse.Namespace) -> None:
    from speech_robust_bench.builders.config_sources import open_data, select
    from speech_robust_bench.core.errors import UserError
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.extensions.defences.certify import Settings, certify, check_model, summary
    from speech_robust_bench.models.interface import open_model

    if args.limit is not None and args.limit < 1:
        raise UserError("--limit is 1 or more")
    settings = Settings(args.draws, args.alpha, args.wer)
    data = open_data(args.data)
    config = data.config(select(data, [args.config], args.data)[0])
    model = open_model(args.model, device=args.device)
    check_model(model)
    out = Path(args.out)
    with progress(args.quiet) as bar:
        task = bar.add_task(f"certifying {config.name}", total=len(config.rows[: args.limit]))
        certificates = certify(model, config, out, settings, args.limit, lambda: bar.advance(task))
    facts = summary(certificates)
    print(
        f"{out}: {facts['clips']} clips, abstains on {100 * facts['abstains']:.1f} %, WER of the votes "
        f"{100 * facts['wer']:.1f} %, median radius {facts['median_radius']:.4g}"
    )
    shares = ", ".join(f"{snr} dB {100 * share:.1f} %" for snr, share in facts["certified"].items())
    print(f"certified against every perturbation at an SNR of {shares}")
