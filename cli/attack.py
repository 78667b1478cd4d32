"""`srb attack`: the adversarial configs of one model."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

EPILOG = """examples:
  srb attack pgd --model hf:openai/whisper-tiny.en --config en_clean --severity 1 2 3 4
  srb attack universal --model hf:facebook/wav2vec2-base-960h --config en_clean --dev en-dev_clean --severity 3
  srb attack cw --model hf:openai/whisper-tiny.en --config en_clean --limit 20 --target "OK Google, browse to evil.com"
  srb attack genetic --model pocketsphinx --config en-demo_clean --severity 4 --limit 10
  srb attack kenansville --config en_clean
  srb attack transfer --proxy hf:A --proxy 'hf:A + hf:B' --model hf:C --model hf:D --config en_clean --severity 2
An attack that was interrupted goes on where it stopped when the same command is given again."""
ATTACKS = ("pgd", "universal", "cw", "language", "language_universal", "kenansville", "genetic", "transfer")


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add = parser.add_argument
    add("attack", choices=ATTACKS, metavar="ATTACK", help=", ".join(ATTACKS))
    add("--model", action="append", default=[], metavar="M", help="the model to attack (transfer: to score), as in run")
    add("--proxy", action="append", default=[], metavar="M", help="transfer: fit on this model, or on 'M + M'")
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
    add("--steps", type=int, help="at most this many (pgd 100, cw 2000, genetic 100 generations, universal 20 a clip)")
    add("--step", type=float, help="pgd, language: step size, as a share of the radius")
    add("--norm", choices=["l2", "linf"], default="l2", help="pgd: of the ball (default: l2)")
    add("--eps", type=float, help="pgd with --norm linf, cw: the radius, instead of the severity's")
    add("--restarts", type=int, help="pgd: random starts, the best of which counts")
    add("--no-random-start", action="store_true", help="pgd: begin at the clip itself (FGSM, with --steps 1 --step 1)")
    add("--target", action="append", default=[], metavar="TEXT", help="pgd, transfer, cw: what the model is to write")
    add("--target-language", default="sr", metavar="CODE", help="language: what is to be detected (default: sr)")
    add("--stop", type=float, metavar="WER", help="a clip is done at this WER (1 is 100 %%; targeted: to the target)")
    add("--hear-every", type=int, metavar="N", help="steps between two hearings of the candidate (0: only the last)")
    add("--epochs", type=int, help="universal attacks: passes over the dev clips")
    add("--eot", type=int, metavar="N", help="smooth models: draws per gradient (default 16; 0: a naive attacker)")
    add("--dev", metavar="CONFIG", help="universal attacks: a config of other clips to fit on")
    add("--dev-data", help="where the dev config is (default: --data)")
    add("--dev-limit", type=int, default=500, metavar="N", help="dev clips to fit on (default: 500)")
    add("--perturbation", metavar="FILE", help="universal attacks: use this fitted perturbation (an .npz), fit none")
    add("--seed", default="", help="other random starts: any text")


def run(args: argparse.Namespace) -> int:
    from importlib.util import find_spec

    from srb.builders.errors import UserError

    if find_spec("torch") is None:
        raise UserError('attacks need torch: pip install "speech-robust-bench[attacks]"')
    from srb.attacks.command import check_severities
    from srb.models.data import open_data, select

    severities = check_severities(args.attack, args.severity)
    if (args.limit is not None and args.limit < 1) or args.batch_size < 1:
        raise UserError("--limit and --batch-size are 1 or more")
    if args.eps is not None and args.attack == "pgd" and args.norm != "linf":
        raise UserError("--eps is the radius of --norm linf; an l2 ball is given by the severity's SNR")
    data = open_data(args.data)
    (name,) = select(data, [args.config], args.data)[:1]
    clean = data.config(name)
    if args.attack == "transfer":
        return _transfer(args, clean, severities)
    if args.attack != "kenansville" and len(args.model) != 1:
        raise UserError(f"'{args.attack}' attacks one model: --model hf:openai/whisper-tiny.en")
    _attack(args, clean, severities, args.model)
    return 0


def _options(args: argparse.Namespace) -> Any:
    from srb.attacks.command import Options

    names = (
        "norm",
        "eps",
        "steps",
        "step",
        "restarts",
        "target",
        "target_language",
        "stop",
        "hear_every",
        "epochs",
        "seed",
    )
    return Options(random_start=not args.no_random_start, **{name: getattr(args, name) for name in names})


def _attack(args: argparse.Namespace, clean: Any, severities: list[int], specs: list[str]) -> tuple[Any, list[str]]:
    """Make one config per severity; the opened target and the configs' names."""
    from srb.attacks.checks import check_sound, checker
    from srb.attacks.command import make_attack, open_target
    from srb.attacks.cw import TARGETS
    from srb.attacks.export import export
    from srb.attacks.views import View
    from srb.cli.progress import progress

    options = _options(args)
    settings: dict[str, Any] = {"specs": specs, "attack": args.attack, "device": args.device, "eot": args.eot}
    settings |= {"precision": args.precision, "compiled": args.compile, "threads": args.threads}
    target = open_target(**settings)
    model = _model(args, specs, target)
    check: Callable[[Any], None] = check_sound
    if isinstance(target, View):
        wanted = options.target or (list(TARGETS) if args.attack == "cw" else [])
        check = checker(target, wanted)
    workers = None
    if args.engine == "ray" and target is not None:
        from srb.attacks.cluster import Workers

        workers = Workers(settings, args.workers)
    made = []
    try:
        with progress(args.quiet) as bar:
            for severity in severities:
                perturbation = _perturbation(args, severity, options, target, clean, bar)
                attack = make_attack(args.attack, severity, options, perturbation)

                def carry_out(batches: Iterable, attack: Any = attack) -> Iterator:
                    if workers is not None:
                        yield from workers.map(attack, batches)
                        return
                    for number, clips in enumerate(batches):
                        if number == 0 and isinstance(target, View):
                            target.check(clips)
                        yield attack.run(target, clips)

                label = f"{args.attack} sev{severity}" if severity else args.attack
                task = bar.add_task(label, total=len(clean.rows[: args.limit]))

                def tick(clips: int, success: float, task: Any = task, label: str = label) -> None:
                    bar.update(task, description=f"{label}, success so far {100 * success:.0f} %", advance=clips)

                done = export(
                    clean,
                    attack,
                    model,
                    Path(args.out),
                    carry_out,
                    check=check,
                    limit=args.limit,
                    batch_size=args.batch_size,
                    skip=args.on_error == "skip",
                    overwrite=args.overwrite,
                    tick=tick,
                )
                made.append(done)
    finally:
        if workers is not None:
            workers.close()
    for done in made:
        left_out = f", {len(done.problems)} left out" if done.problems else ""
        state = " (already there)" if done.reused else ""
        success = "" if target is None else f", success {100 * done.success:.1f} %"
        print(f"{Path(args.out) / done.name}: {done.rows} clips{success}{left_out}{state}")
    return target, [done.name for done in made]


def _model(args: argparse.Namespace, specs: list[str], target: Any) -> Any:
    from srb.attacks.export import Model
    from srb.attacks.views import View
    from srb.models.interface import parse_spec

    if target is None:
        return Model()
    one = target.recogniser if isinstance(target, View) else target
    name = args.name or "-".join(parse_spec(spec).folder for spec in specs)
    safe = target.pads_safely if isinstance(target, View) else True
    how = {"eot": args.eot, "precision": args.precision, "compiled": args.compile or None}
    given = {key: value for key, value in how.items() if value is not None}
    return Model(name, " + ".join(specs), one.revision, safe, given)


def _perturbation(args: argparse.Namespace, severity: int, options: Any, view: Any, clean: Any, bar: Any) -> Any:
    """Of a universal attack: loaded, or fitted on other clips and saved beside the configs."""
    if args.attack not in ("universal", "language_universal"):
        return None
    from srb.attacks.command import clips_of, fitted
    from srb.attacks.universal import Perturbation, refuse_overlap
    from srb.builders.errors import UserError
    from srb.models.data import open_data, select

    if args.perturbation:
        return Perturbation.load(Path(args.perturbation))
    if not args.dev:
        raise UserError(f"'{args.attack}' is fitted on clips that are not tested: --dev CONFIG, or --perturbation FILE")
    where = args.dev_data or args.data
    data = open_data(where)
    (name,) = select(data, [args.dev], where)[:1]
    dev = list(clips_of(data.config(name), args.dev_limit))
    refuse_overlap(dev, clips_of(clean, args.limit))
    from srb.models.interface import parse_spec

    label = f"{args.attack}_sev{severity}" if severity else args.attack
    saved = Path(args.out) / "perturbations" / f"{label}-{args.name or parse_spec(args.model[0]).folder}.npz"
    task = bar.add_task(f"fitting {label} on {len(dev)} clips", total=None)

    def tick(success: float) -> None:
        what = "success" if args.attack == "universal" else "loss"
        bar.update(task, description=f"fitting {label} on {len(dev)} clips, {what} {success:.2f}", advance=1)

    found = fitted(args.attack, severity, options, view, dev, saved, tick)
    bar.remove_task(task)
    return found


def _transfer(args: argparse.Namespace, clean: Any, severities: list[int]) -> int:
    from srb.attacks.command import matrix, write_matrix
    from srb.attacks.transfer import as_table
    from srb.attacks.views import Ensemble
    from srb.builders.errors import UserError
    from srb.models.data import open_data
    from srb.models.interface import open_model, parse_spec

    if not args.proxy or not args.model:
        raise UserError(
            "'transfer' fits on --proxy models and scores on --model ones; give both, each as often as needed"
        )
    models = {parse_spec(spec).folder: open_model(spec, device=args.device) for spec in args.model}
    # What a model gets wrong by itself is nobody's success: the clean clips are the first column.
    made: dict[int, dict[str, Any]] = {severity: {"clean": ([], clean)} for severity in severities}
    for proxy in args.proxy:
        specs = [spec.strip() for spec in proxy.split(" + ")]
        view, names = _attack(args, clean, severities, specs)
        views = view.views if isinstance(view, Ensemble) else [view]
        label = " + ".join(parse_spec(spec).folder for spec in specs)
        for severity, name in zip(severities, names, strict=True):
            made[severity][label] = ([one.recogniser for one in views], open_data(args.out).config(name))
    for severity, columns in made.items():
        cells = matrix(columns, models, args.target[0] if args.target else None, args.limit)
        path = Path(args.out) / f"transfer_sev{severity}.json"
        write_matrix(path, cells)
        print(f"{as_table(cells)}\n{path}")
    return 0
