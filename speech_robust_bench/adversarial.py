"""`srb.attack`: the adversarial configs of one model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.extensions import load_object
from speech_robust_bench.core.options import Options, Settings, at_least, option
from speech_robust_bench.core.progress import progress as progress_bar
from speech_robust_bench.options import Place

if TYPE_CHECKING:
    from speech_robust_bench.attacks.export import ExportedConfig


@dataclass(frozen=True)
class AttackOptions(Options):
    """The options of all attacks together; each attack takes some, and None means its own default."""

    proxy: Sequence[str] = option((), "model to fit on, or several: 'M + M'", metavar="M", repeat=True)
    judge: str | None = option(None, "model that chooses the candidate (default: the first proxy)", metavar="M")
    dropout: bool = option(True, "run the proxies without dropout")
    severity: Sequence[int] | None = option(None, "severities; 1 is the mildest (default: all)", metavar="N")
    steps: int | None = option(None, "maximum number of steps", metavar="N")
    step: float | None = option(None, "step size, as a fraction of the radius", metavar="F")
    norm: Literal["l2", "linf"] = option("l2", "norm of the ball", choices=("l2", "linf"))
    eps: float | None = option(None, "radius of the linf ball, instead of the severity's")
    regularisation: float | None = option(
        None,
        "weight of the perturbation's norm (cw; default: 0.25) or energy (transfer_cw; default: 10)",
        metavar="C",
    )
    restarts: int | None = option(None, "number of random starts; the best one counts", metavar="N")
    random_start: bool = option(True, "start at the clip itself (FGSM, with --steps 1 --step 1)")
    target: Sequence[str] = option((), "target text of a targeted attack", metavar="TEXT", repeat=True)
    target_language: str = option("sr", "language to be detected", metavar="CODE")
    stop: float | None = option(
        None, "end a clip at this WER (1 is 100 %; with --target: to the target)", metavar="WER"
    )
    transcribe_every: int | None = option(
        None, "steps between two transcriptions of the candidate (0: only the last)", metavar="N"
    )
    epochs: int | None = option(None, "passes over the dev clips", metavar="N")
    eot: int | None = option(None, "draws per gradient of a smooth: model (default: 16; 0: one)", metavar="N")
    dev: str | None = option(None, "config of other clips to fit on", metavar="CONFIG")
    dev_data: str | None = option(None, "where the dev config is (default: --data)", metavar="DATA")
    dev_limit: int = option(500, "dev clips to fit on", metavar="N")
    perturbation: str | None = option(
        None, "fitted perturbation (.npz) to use, or for auto to start from", metavar="FILE"
    )
    seed: str = option("", "seed, any text; another seed draws other random numbers", metavar="TEXT")
    precision: Literal["bfloat16", "float16"] | None = option(
        None, "mixed precision, for speed on GPUs", choices=("bfloat16", "float16")
    )
    compile: bool = option(False, "compile the model with torch.compile")
    device: str | None = option(None, "device of the model: cpu, cuda, cuda:1, ...")
    name: str | None = option(None, "name of the model in config names (default: its own)")
    batch_size: int = option(8, "clips at a time; does not change the results", metavar="N", check=at_least(1))
    threads: int | None = option(None, "threads of torch on a CPU", metavar="N")
    engine: Literal["local", "ray"] = option(
        "local", "ray spreads batches over GPUs and machines", choices=("local", "ray")
    )
    workers: int | None = option(None, "models, with --engine ray (default: GPUs, or 1)", metavar="N")
    on_error: Literal["stop", "skip"] = option(
        "stop", "what to do about clips that fail the checks", choices=("stop", "skip")
    )
    overwrite: bool = option(False, "replace configs that were made with other settings")


@dataclass(frozen=True)
class AttackResult:
    """The configs that an attack made. Transfer attacks also have the success of each proxy on each model."""

    folder: Path
    configs: list[ExportedConfig]
    matrices: dict[Path, str] = field(default_factory=dict)


def attack(
    attack: str,
    model: str | Sequence[str] = (),
    config: str = "en_clean",
    *,
    data: Place = "srb",
    limit: int | None = None,
    out: Place = "srb",
    attack_options: AttackOptions = AttackOptions(),
    progress: bool = True,
) -> AttackResult:
    """Make the adversarial configs of a model; an attack that was interrupted continues where it stopped.

    Args:
        attack: a name such as "pgd" (`srb attack --help` lists them).
        model: the model to attack, or for transfer attacks the models to score; "kenansville" needs none.
        config: the clean config whose clips are attacked.
        data: a built folder, a name in the datasets cache, or a Hub dataset.
        limit: only the first clips.
        out: the folder for the configs.
        attack_options: severities, steps, targets, proxies and so on.
        progress: show progress.
    """
    if find_spec("torch") is None:
        raise UserError(f"attacks need torch: {install_hint('attacks')}")
    from speech_robust_bench.attacks.export import ExportOptions
    from speech_robust_bench.attacks.make_configs import AttackRequest, make_configs
    from speech_robust_bench.attacks.registry import AttackSettings, attack_row

    options = attack_options
    request = AttackRequest(
        attack=attack,
        config=config,
        models=[model] if isinstance(model, str) else list(model),
        proxies=list(options.proxy),
        data=str(data),
        out=Path(out),
        severities=list(options.severity) if options.severity else None,
        compiled=options.compile,
        perturbation=Path(options.perturbation) if options.perturbation else None,
        options=AttackSettings(**_shared(options, AttackSettings) | {"target": list(options.target)}),
        export=ExportOptions(limit, options.batch_size, options.on_error == "skip", options.overwrite),
        **_shared(options, AttackRequest, "perturbation"),
    )
    with progress_bar(not progress) as bar:
        if tabulate := attack_row(attack).matrices:
            return AttackResult(request.out, *load_object(tabulate)(request, _Bars(bar)))
        return AttackResult(request.out, make_configs(request, _Bars(bar)))


def _shared(options: AttackOptions, kind: Any, *without: str) -> Settings:
    """The options that a class has under the same names."""
    names = {each.name for each in dataclasses.fields(kind)} & {each.name for each in dataclasses.fields(options)}
    return {name: getattr(options, name) for name in names - set(without)}


class _Bars:
    """One progress bar per stage."""

    def __init__(self, bar: Any) -> None:
        self.bar = bar

    def stage(self, label: str, total: int | None) -> Callable[[int, str], None]:
        task = self.bar.add_task(label, total=total)

        def tick(clips: int, note: str) -> None:
            self.bar.update(task, description=f"{label}, {note}", advance=clips)

        return tick
