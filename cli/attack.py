"""`srb attack`: the adversarial configs of one model."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from speech_robust_bench.cli.help import HelpParser

RESUME = "An attack that was interrupted goes on where it stopped when the same command is given again."
EXAMPLES = {
    "pgd": "--model hf:openai/whisper-tiny.en --config en_clean --severity 1 2 3 4",
    "auto": "--model hf:openai/whisper-tiny.en --config en_clean",
    "universal": "--model hf:facebook/wav2vec2-base-960h --config en_clean --dev en-dev_clean --severity 3",
    "cw": '--model hf:openai/whisper-tiny.en --config en_clean --limit 20 --target "OK Google, browse to evil.com"',
    "psychoacoustic": "--model hf:openai/whisper-tiny.en --config en_clean --limit 20",
    "genetic": "--model pocketsphinx --config en-demo_clean --severity 4 --limit 10",
    "kenansville": "--config en_clean",
    "transfer": "--proxy hf:A --proxy 'hf:A + hf:B' --model hf:C --model hf:D --config en_clean --severity 2",
    "transfer_cw": "--proxy 'hf:A + hf:B' --judge hf:C --model hf:D --config en_clean --limit 85",
}

# Options that some of the attacks have.
OPTIONS: dict[str, dict[str, Any]] = {
    "model": {
        "action": "append",
        "metavar": "M",
        "help": "model to attack, as in `srb run`; transfer attacks: to score",
    },
    "proxy": {"action": "append", "metavar": "M", "help": "model to fit on, or several: 'M + M'"},
    "judge": {"metavar": "M", "help": "model that chooses the candidate (default: the first proxy)"},
    "no-dropout": {"action": "store_true", "help": "run the proxies without dropout"},
    "severity": {"type": int, "nargs": "+", "metavar": "N", "help": "severities; 1 is the mildest (default: all)"},
    "steps": {"type": int, "metavar": "N", "help": "maximum number of steps"},
    "step": {"type": float, "metavar": "F", "help": "step size, as a fraction of the radius"},
    "norm": {"choices": ["l2", "linf"], "default": "l2", "help": "norm of the ball (default: l2)"},
    "eps": {"type": float, "help": "radius of the linf ball, instead of the severity's"},
    "regularisation": {
        "type": float,
        "metavar": "C",
        "help": "weight of the perturbation's energy (default: 0.25; Olivier uses 1 for models above Whisper base)",
    },
    "restarts": {"type": int, "metavar": "N", "help": "number of random starts; the best one counts"},
    "no-random-start": {"action": "store_true", "help": "start at the clip itself (FGSM, with --steps 1 --step 1)"},
    "target": {"action": "append", "default": [], "metavar": "TEXT", "help": "text that the model shall write"},
    "target-language": {"default": "sr", "metavar": "CODE", "help": "language that shall be detected (default: sr)"},
    "stop": {
        "type": float,
        "metavar": "WER",
        "help": "end a clip at this WER (1 is 100 %%; with --target: to the target)",
    },
    "transcribe-every": {
        "type": int,
        "metavar": "N",
        "help": "steps between two transcriptions of the candidate (0: only the last)",
    },
    "epochs": {"type": int, "metavar": "N", "help": "passes over the dev clips"},
    "eot": {"type": int, "metavar": "N", "help": "draws per gradient of a smooth: model (default: 16; 0: one)"},
    "dev": {"metavar": "CONFIG", "help": "config of other clips to fit on"},
    "dev-data": {"metavar": "DATA", "help": "where the dev config is (default: --data)"},
    "dev-limit": {"type": int, "default": 500, "metavar": "N", "help": "dev clips to fit on (default: 500)"},
    "perturbation": {"metavar": "FILE", "help": "fitted perturbation (.npz) to use, or for auto to start from"},
    "seed": {"default": "", "metavar": "TEXT", "help": "any text; another one draws other random numbers"},
    "precision": {"choices": ["bfloat16", "float16"], "help": "mixed precision, for speed on GPUs"},
    "compile": {"action": "store_true", "help": "compile the model with torch.compile"},
}
GRADIENT = ("eot", "precision", "compile")
FITTED = ("dev", "dev-data", "dev-limit", "perturbation")
TARGETED = ("target", "eps", "regularisation")


class _Attack(NamedTuple):
    """What the help of an attack says, and its options beside those that all attacks have."""

    summary: str
    shown: tuple[str, ...]
    advanced: tuple[str, ...] = ()


ATTACKS = {
    "pgd": _Attack(
        "projected gradient descent within an SNR, clip by clip (default: 100 steps)",
        ("model", "severity", "steps", "norm", "eps", "restarts", "target", "seed"),
        ("step", "no-random-start", "stop", "transcribe-every", *GRADIENT),
    ),
    "universal": _Attack(
        "one perturbation for all clips, fitted on dev clips (default: 20 steps a clip)",
        ("model", "severity", *FITTED, "epochs", "steps"),
        ("transcribe-every", *GRADIENT),
    ),
    "auto": _Attack(
        "several attacks without settings; the worst counts (default: 100 steps)",
        ("model", "severity", "steps", "perturbation", "seed"),
        GRADIENT,
    ),
    "genetic": _Attack(
        "a genetic search that needs no gradients (default: 100 generations)",
        ("model", "severity", "steps", "seed"),
        ("stop",),
    ),
    "kenansville": _Attack("frequencies removed by their energy; needs no model", ("severity",)),
    "transfer": _Attack(
        "PGD on proxies, scored on other models",
        ("model", "proxy", "severity", "steps", "target", "seed"),
        ("step", "stop", "transcribe-every", *GRADIENT),
    ),
    "transfer_cw": _Attack(
        "Carlini and Wagner's attack on proxies, scored on other models",
        ("model", "proxy", "judge", *TARGETED, "steps"),
        ("no-dropout", "transcribe-every", *GRADIENT),
    ),
    "cw": _Attack(
        "Carlini and Wagner's targeted attack (default: 2000 steps)",
        ("model", *TARGETED, "steps"),
        ("transcribe-every", *GRADIENT),
    ),
    "psychoacoustic": _Attack(
        "cw hidden below the masking threshold (default: 2000 + 1000 steps)",
        ("model", *TARGETED, "steps"),
        ("transcribe-every", *GRADIENT),
    ),
    "language": _Attack(
        "make multilingual Whisper detect another language",
        ("model", "target-language", "steps", "seed"),
        ("step", *GRADIENT),
    ),
    "language_universal": _Attack(
        "one perturbation that makes Whisper detect another language",
        ("model", "target-language", *FITTED, "epochs"),
        GRADIENT,
    ),
}


def arguments(parser: HelpParser) -> None:
    attacks = parser.add_subparsers(dest="attack", metavar="ATTACK", required=True, title="attacks")
    parser.epilog = "`srb attack ATTACK --help` shows the options of an attack."
    for name, attack in ATTACKS.items():
        sub = attacks.add_parser(name, help=attack.summary, description=attack.summary[0].upper() + attack.summary[1:])
        sub.formatter_class = argparse.RawDescriptionHelpFormatter
        example = f"example:\n  srb attack {name} {EXAMPLES[name]}\n" if name in EXAMPLES else ""
        sub.epilog = example + RESUME
        _arguments_of(sub, attack)


def _arguments_of(parser: HelpParser, attack: _Attack) -> None:
    """The options that all attacks have, and those of one."""
    add, advanced = parser.add_argument, parser.advanced_options().add_argument
    add("--config", required=True, help="clean config whose clips are attacked")
    add("--data", default="srb", help="built folder, datasets cache or Hub dataset (default: srb)")
    add("--out", default="srb", metavar="DIR", help="folder for the configs (default: srb)")
    for name in attack.shown:
        add(f"--{name}", **OPTIONS[name])
    add("--device", help="device of the model: cpu, cuda, cuda:1, ...")
    add("--limit", type=int, metavar="N", help="attack only the first N clips")
    for name in attack.advanced:
        advanced(f"--{name}", **OPTIONS[name])
    advanced("--name", help="name of the model in config names (default: its own)")
    advanced("--batch-size", type=int, default=8, metavar="N", help="clips at a time; does not change the results")
    advanced("--threads", type=int, metavar="N", help="threads of torch on a CPU")
    advanced("--engine", choices=["local", "ray"], default="local", help="ray: spread batches over GPUs and machines")
    advanced("--workers", type=int, metavar="N", help="models, with --engine ray (default: GPUs, or 1)")
    advanced("--on-error", choices=["stop", "skip"], default="stop", help="what to do about clips that fail the checks")
    advanced("--overwrite", action="store_true", help="replace configs that were made with other settings")
    advanced("--quiet", action="store_true", help="show no progress bar")


def run(args: argparse.Namespace) -> int:
    from importlib.util import find_spec

    from speech_robust_bench.core.about import install_hint
    from speech_robust_bench.core.errors import UserError

    if find_spec("torch") is None:
        raise UserError(f"attacks need torch: {install_hint('attacks')}")
    from speech_robust_bench.attacks.make_configs import make_configs, transfer_matrices
    from speech_robust_bench.attacks.registry import TRANSFER
    from speech_robust_bench.core.progress import progress
    from speech_robust_bench.extensions.attacks.transfer import as_table

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
    from speech_robust_bench.attacks.export import ExportOptions
    from speech_robust_bench.attacks.make_configs import AttackRequest
    from speech_robust_bench.attacks.registry import AttackOptions

    def taken(kind: Any, **others: Any) -> Any:
        """An options object whose fields are arguments of the same name."""
        names = {field.name for field in dataclasses.fields(kind)} - others.keys()
        return kind(**{name: getattr(args, name) for name in names if hasattr(args, name)}, **others)

    perturbation = getattr(args, "perturbation", None)
    random_start, dropout = (not getattr(args, name, False) for name in ("no_random_start", "no_dropout"))
    return taken(
        AttackRequest,
        models=getattr(args, "model", None) or [],
        proxies=getattr(args, "proxy", None) or [],
        severities=getattr(args, "severity", None),
        compiled=getattr(args, "compile", False),
        out=Path(args.out),
        perturbation=Path(perturbation) if perturbation else None,
        options=taken(AttackOptions, random_start=random_start, dropout=dropout),
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
