"""`srb attack`: the adversarial configs of one model."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

EPILOG = """examples:
  srb attack pgd --model hf:openai/whisper-tiny.en --config en_clean --severity 1 2 3 4
  srb attack auto --model hf:openai/whisper-tiny.en --config en_clean
  srb attack universal --model hf:facebook/wav2vec2-base-960h --config en_clean --dev en-dev_clean --severity 3
  srb attack cw --model hf:openai/whisper-tiny.en --config en_clean --limit 20 --target "OK Google, browse to evil.com"
  srb attack psychoacoustic --model hf:openai/whisper-tiny.en --config en_clean --limit 20
  srb attack genetic --model pocketsphinx --config en-demo_clean --severity 4 --limit 10
  srb attack kenansville --config en_clean
  srb attack transfer --proxy hf:A --proxy 'hf:A + hf:B' --model hf:C --model hf:D --config en_clean --severity 2
  srb attack transfer_cw --proxy 'hf:A + hf:B' --judge hf:C --model hf:D --config en_clean --limit 85
An attack that was interrupted goes on where it stopped when the same command is given again."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    from srb.builders.scenarios import attacks

    names = [scenario.name for scenario in attacks()]
    add = parser.add_argument
    add("attack", choices=names, metavar="ATTACK", help=", ".join(names))
    add("--model", action="append", default=[], metavar="M", help="the model to attack (transfer: to score), as in run")
    add("--proxy", action="append", default=[], metavar="M", help="transfer: fit on this model, or on 'M + M'")
    add(
        "--judge",
        metavar="M",
        help="transfer_cw: the model that chooses the candidate (default: the first proxy)",
    )
    add("--no-dropout", action="store_true", help="transfer_cw: proxies as they transcribe (default: with dropout)")
    add("--config", required=True, help="the clean config whose clips are attacked")
    add("--data", default="srb", help="where it is: a built folder, the datasets cache, the Hub (default: srb)")
    add("--severity", type=int, nargs="+", metavar="N", help="1 is the mildest (default: all)")
    add("--out", default="srb", metavar="DIR", help="where the configs go (default: srb)")
    add("--name", help="the model's name in config names, where its own will not do")
    add("--limit", type=int, metavar="N", help="only the first N clips")
    add("--batch-size", type=int, default=8, metavar="N", help="clips at a time; it does not change the results")
    add("--device", help="cpu, cuda, cuda:1, ...")
    add("--threads", type=int, help="of torch, on a CPU")
    add("--precision", choices=["bfloat16", "float16"], help="mixed precision, for speed on GPUs")
    add("--compile", action="store_true", help="torch.compile the model")
    add("--engine", choices=["local", "ray"], default="local", help="ray: spread batches over GPUs and machines")
    add("--workers", type=int, help="with --engine ray: how many models (default: GPUs, or 1)")
    add("--on-error", choices=["stop", "skip"], default="stop", help="what to do about clips that cannot be attacked")
    add("--overwrite", action="store_true", help="make anew what was made with other settings")
    add("--quiet", action="store_true", help="no progress bar")
    add(
        "--steps",
        type=int,
        help="at most this many (pgd, auto 100; cw 2000; psychoacoustic 2000 + 1000; genetic 100; universal 20 a clip)",
    )
    add("--step", type=float, help="pgd, language: step size, as a share of the radius")
    add("--norm", choices=["l2", "linf"], default="l2", help="pgd: of the ball (default: l2)")
    add("--eps", type=float, help="pgd with --norm linf, cw, psychoacoustic: the radius, instead of the severity's")
    loud = "cw: c, the weight of the perturbation's energy (default 0.25; Olivier has 1 for models above Whisper base)"
    add("--regularisation", type=float, metavar="C", help=loud)
    add("--restarts", type=int, help="pgd: random starts, the best of which counts")
    add("--no-random-start", action="store_true", help="pgd: begin at the clip itself (FGSM, with --steps 1 --step 1)")
    add(
        "--target",
        action="append",
        default=[],
        metavar="TEXT",
        help="pgd, transfer, cw, psychoacoustic: what the model is to write",
    )
    add("--target-language", default="sr", metavar="CODE", help="language: what is to be detected (default: sr)")
    add("--stop", type=float, metavar="WER", help="a clip is done at this WER (1 is 100 %%; targeted: to the target)")
    every = "steps between two transcriptions of the candidate (0: only the last)"
    add("--transcribe-every", "--hear-every", type=int, metavar="N", help=every)
    add("--epochs", type=int, help="universal attacks: passes over the dev clips")
    add("--eot", type=int, metavar="N", help="smooth models: draws per gradient (default 16; 0: a naive attacker)")
    add("--dev", metavar="CONFIG", help="universal attacks: a config of other clips to fit on")
    add("--dev-data", help="where the dev config is (default: --data)")
    add("--dev-limit", type=int, default=500, metavar="N", help="dev clips to fit on (default: 500)")
    add(
        "--perturbation",
        metavar="FILE",
        help="universal attacks: use this fitted perturbation (an .npz), fit none; auto: begin from it too",
    )
    add("--seed", default="", help="other random starts: any text")


def run(args: argparse.Namespace) -> int:
    from importlib.util import find_spec

    from srb.core.errors import UserError
    from srb.core.install_hint import install_hint

    if find_spec("torch") is None:
        raise UserError(f"attacks need torch: {install_hint('attacks')}")
    from srb.attacks.make_configs import make_configs, transfer_matrices
    from srb.attacks.registry import TRANSFER
    from srb.attacks.transfer import as_table
    from srb.core.progress import progress

    request = _request(args)
    matrices: dict[Path, Any] = {}
    with progress(args.quiet) as bar:
        if args.attack in TRANSFER:
            configs, matrices = transfer_matrices(request, _Bars(bar))
        else:
            configs = make_configs(request, _Bars(bar))
    for config in configs:
        left_out = f", {len(config.problems)} left out" if config.problems else ""
        state = " (already there)" if config.reused else ""
        success = "" if config.success is None else f", success {100 * config.success:.1f} %"
        print(f"{request.out / config.name}: {config.rows} clips{success}{left_out}{state}")
        for sign, share in config.masking.items():
            print(f"warning: {config.name}: {sign} on {100 * share:.0f} % of the clips, a sign of masked gradients")
    for path, cells in matrices.items():
        print(f"{as_table(cells)}\n{path}")
    return 0


def _request(args: argparse.Namespace) -> Any:
    from srb.attacks.export import ExportOptions
    from srb.attacks.make_configs import AttackRequest
    from srb.attacks.registry import AttackOptions

    def taken(kind: Any, **others: Any) -> Any:
        """An options object whose fields are arguments of the same name."""
        names = {field.name for field in dataclasses.fields(kind)} - others.keys()
        return kind(**{name: getattr(args, name) for name in names if hasattr(args, name)}, **others)

    return taken(
        AttackRequest,
        models=args.model,
        proxies=args.proxy,
        severities=args.severity,
        compiled=args.compile,
        out=Path(args.out),
        perturbation=Path(args.perturbation) if args.perturbation else None,
        options=taken(AttackOptions, random_start=not args.no_random_start, dropout=not args.no_dropout),
        export=taken(ExportOptions, skip_bad_clips=args.on_error == "skip"),
    )


class _Bars:
    """One progress bar per stage."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        task = self.bar.add_task(label, total=total)

        def tick(clips: int, note: str) -> None:
            self.bar.update(task, description=f"{label}, {note}", advance=clips)

        return tick
