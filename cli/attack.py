"""`srb attack`: the adversarial configs of one model. Every attack is a subcommand with its own options."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import Any, get_type_hints

import speech_robust_bench as srb
from speech_robust_bench.cli.command import BUILT, Command, limit_option, quiet_option
from speech_robust_bench.core.options import KEY, Options, argument, option

RESUME = "If a command is interrupted, repeat it to continue."

# of every attack, shown by --help-all
HIDDEN = ("name", "batch_size", "threads", "engine", "workers", "on_error", "overwrite")
MODEL = "model to attack, as in `srb run`; transfer attacks: to score"


@dataclass(frozen=True, kw_only=True)
class Arguments(Options):
    """The arguments of every attack."""

    config: str = argument("clean config whose clips are attacked", metavar="CONFIG")
    data: str = option("srb", BUILT)
    out: str = option("srb", "folder for the configs", metavar="FOLDER")
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


def _arguments(row: srb.AttackRow) -> type:
    """The arguments of one attack: those of every attack, and its own."""
    fields, hints = (
        {each.name: each for each in dataclasses.fields(srb.AttackOptions)},
        get_type_hints(srb.AttackOptions),
    )
    own: list[tuple[str, Any, Any]] = []
    for name in (*row.options, "device", *row.advanced, *HIDDEN):
        if name == "model":
            own.append((name, list[str], option([], MODEL, metavar="M", repeat=True)))
            continue
        hidden = name in row.advanced or name in HIDDEN
        about = dataclasses.replace(fields[name].metadata[KEY], advanced=hidden)
        own.append((name, hints[name], dataclasses.field(default=fields[name].default, metadata={KEY: about})))
    return dataclasses.make_dataclass("AttackArguments", own, bases=(Arguments,), frozen=True, kw_only=True)


def _epilog(row: srb.AttackRow) -> str:
    return f"example:\n  srb attack {row.name} {row.example}\n{RESUME}" if row.example else RESUME


ATTACK = tuple(
    Command(_arguments(row), partial(run, row.name), _epilog(row), row.name, row.help)
    for row in srb.attack_rows().values()
)
