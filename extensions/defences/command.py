"""`srb certify`: the radius in which a smoothed recogniser provably keeps its transcript."""

from __future__ import annotations

from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import BUILT, limit_option, model_option, quiet_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, argument, option, option_group
from speech_robust_bench.extensions.defences.api import CertifyOptions


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    config: str = argument("config whose clips are certified", metavar="CONFIG")
    model: str = model_option("smoothed model, such as smooth:hf:openai/whisper-tiny.en?sigma=0.01&n=8")
    data: str = option("srb", BUILT)
    out: str = option("certificates.jsonl", "output file, one line per clip", metavar="FILE")
    limit: int | None = limit_option("only the first N clips")
    certify_options: CertifyOptions = option_group(CertifyOptions)
    quiet: bool = quiet_option()


def run(args: Arguments) -> None:
    facts = srb.certify(
        args.model,
        args.config,
        data=args.data,
        limit=args.limit,
        out=args.out,
        certify_options=args.certify_options,
        progress=not args.quiet,
    )
    print(
        f"{args.out}: {facts['clips']} clips, abstains on {100 * facts['abstains']:.1f} %, WER of the votes "
        f"{100 * facts['wer']:.1f} %, median radius {facts['median_radius']:.4g}"
    )
    shares = ", ".join(f"{snr} dB {100 * share:.1f} %" for snr, share in facts["certified"].items())
    print(f"certified against every perturbation at an SNR of {shares}")


COMMAND = Command(Arguments, run)
