"""`srb attack`: the adversarial configs of one model. Every attack is a subcommand with its own options."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple, get_type_hints

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import BUILT, limit_option, quiet_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import KEY, Options, argument, option

RESUME = "Repeat a command that was interrupted to go on where it stopped."
EXAMPLES = {
    "pgd": "--model hf:openai/whisper-tiny.en --severity 1 2 3 4",
    "auto": "--model hf:openai/whisper-tiny.en",
    "universal": "--model hf:facebook/wav2vec2-base-960h --dev en-dev_clean --severity 3",
    "cw": '--model hf:openai/whisper-tiny.en --limit 20 --target "OK Google, browse to evil.com"',
    "psychoacoustic": "--model hf:openai/whisper-tiny.en --limit 20",
    "genetic": "--model pocketsphinx --severity 4 --limit 10",
    "kenansville": "",
    "transfer": "--proxy hf:A --proxy 'hf:A + hf:B' --model hf:C --model hf:D --severity 2",
    "transfer_cw": "--proxy 'hf:A + hf:B' --judge hf:C --model hf:D --limit 85",
}

GRADIENT = ("eot", "precision", "compile")
FITTED = ("dev", "dev_data", "dev_limit", "perturbation")
TARGETED = ("target", "eps", "regularisation")


class _Attack(NamedTuple):
    """What the help of an attack says, and its options beside those that all attacks have: fields of AttackOptions."""

    summary: str
    shown: tuple[str, ...]
    advanced: tuple[str, ...] = ()


ATTACKS = {
    "pgd": _Attack(
        "projected gradient descent within an SNR, clip by clip (default: 100 steps)",
        ("model", "severity", "steps", "norm", "eps", "restarts", "target", "seed"),
        ("step", "random_start", "stop", "transcribe_every", *GRADIENT),
    ),
    "universal": _Attack(
        "one perturbation for all clips, fitted on dev clips (default: 20 steps a clip)",
        ("model", "severity", *FITTED, "epochs", "steps"),
        ("transcribe_every", *GRADIENT),
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
        ("step", "stop", "transcribe_every", *GRADIENT),
    ),
    "transfer_cw": _Attack(
        "Carlini and Wagner's attack on proxies, scored on other models",
        ("model", "proxy", "judge", *TARGETED, "steps"),
        ("dropout", "transcribe_every", *GRADIENT),
    ),
    "cw": _Attack(
        "Carlini and Wagner's targeted attack (default: 2000 steps)",
        ("model", *TARGETED, "steps"),
        ("transcribe_every", *GRADIENT),
    ),
    "psychoacoustic": _Attack(
        "cw hidden below the masking threshold (default: 2000 + 1000 steps)",
        ("model", *TARGETED, "steps"),
        ("transcribe_every", *GRADIENT),
    ),
    "language": _Attack(
        "make multilingual Whisper detect another language",
        ("model", "target_language", "steps", "seed"),
        ("step", *GRADIENT),
    ),
    "language_universal": _Attack(
        "one perturbation that makes Whisper detect another language",
        ("model", "target_language", *FITTED, "epochs"),
        GRADIENT,
    ),
}


# of every attack, shown by --help-all
HIDDEN = ("name", "batch_size", "threads", "engine", "workers", "on_error", "overwrite")
MODEL = "model to attack, as in `srb run`; transfer attacks: to score"


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """The arguments of every attack."""

    config: str = argument("clean config whose clips are attacked", metavar="CONFIG")
    data: str = option("srb", BUILT)
    out: str = option("srb", "folder for the configs", metavar="DIR")
    limit: int | None = limit_option("attack only the first N clips")
    quiet: bool = quiet_option()


def run(attack: str, args: Any) -> None:
    names = [each.name for each in dataclasses.fields(srb.AttackOptions) if hasattr(args, each.name)]
    options = srb.AttackOptions(**{name: getattr(args, name) for name in names})
    result = srb.attack(
        attack,
        getattr(args, "model", []),
        args.config,
        data=args.data,
        limit=args.limit,
        out=args.out,
        attack_options=options,
        progress=not args.quiet,
    )
    for config in result.configs:
        left_out = f", {len(config.problems)} left out" if config.problems else ""
        state = " (already there)" if config.reused else ""
        success = "" if config.success is None else f", success {100 * config.success:.1f} %"
        print(f"{result.folder / config.name}: {config.rows} clips{success}{left_out}{state}")
        for sign, share in config.masking.items():
            print(f"warning: {config.name}: {sign} on {100 * share:.0f} % of the clips, a sign of masked gradients")
    for path, table in result.matrices.items():
        print(f"{table}\n{path}")


def _arguments(attack: _Attack) -> type:
    """The arguments of one attack: those of every attack, and its own."""
    fields, hints = (
        {each.name: each for each in dataclasses.fields(srb.AttackOptions)},
        get_type_hints(srb.AttackOptions),
    )
    own: list[tuple[str, Any, Any]] = []
    for name in (*attack.shown, "device", *attack.advanced, *HIDDEN):
        if name == "model":
            own.append((name, list[str], option([], MODEL, metavar="M", repeat=True)))
            continue
        hidden = name in attack.advanced or name in HIDDEN
        about = dataclasses.replace(fields[name].metadata[KEY], advanced=hidden)
        own.append((name, hints[name], dataclasses.field(default=fields[name].default, metadata={KEY: about})))
    return dataclasses.make_dataclass("AttackArguments", own, bases=(Arguments,), frozen=True, kw_only=True)


def _epilog(name: str) -> str:
    config = "en-demo_clean" if name == "genetic" else "en_clean"
    example = f"srb attack {name} {config} {EXAMPLES[name]}".rstrip() if name in EXAMPLES else ""
    return f"example:\n  {example}\n{RESUME}" if example else RESUME


COMMANDS = tuple(
    Command(_arguments(attack), partial(run, name), _epilog(name), name, attack.summary)
    for name, attack in ATTACKS.items()
)
