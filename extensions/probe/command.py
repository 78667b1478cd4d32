"""`srb probe train | ablate | layers | rank`: what is a frozen encoder worth for recognition?"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from speech_robust_bench.cli.flags import HelpParser
from speech_robust_bench.cli.flags import arguments as options
from speech_robust_bench.options import ScenarioOptions

if TYPE_CHECKING:
    from speech_robust_bench.extensions.probe.probe_file import ProbeFile

EPILOG = """examples:
  srb probe train --upstream hf:facebook/hubert-base-ls960 --corpus en=LibriSpeech/train-clean-100 \\
      --dev en=LibriSpeech/dev-clean --out probes/hubert
  srb run --model probe:probes/hubert 'en_*' --corpus en=LibriSpeech
If a command is interrupted, repeat it to continue from its last checkpoint."""


def arguments(parser: HelpParser) -> None:
    what = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    _train_arguments(what.add_parser("train", help="train a head on a frozen encoder"))
    ablate = what.add_parser("ablate", help="train probes with several heads and less data, and rank the encoders")
    _train_arguments(ablate, several=True)
    ablate.add_argument("--json", action="store_true", help="print the ranks as JSON")
    layers = what.add_parser("layers", help="show how much each layer of the encoder counts")
    rank = what.add_parser("rank", help="say whether encoders keep their ranks with other heads and less data")
    for command in (layers, rank):
        command.add_argument("probes", nargs="+", metavar="PROBE", help="folders that `srb probe train` made")
        command.add_argument("--json", action="store_true", help="print the result as JSON")
    layers.add_argument("--out", metavar="FILE", help="draw the weights into an SVG file")


def _train_arguments(parser: HelpParser, several: bool = False) -> None:
    """Those of `train`; `ablate` takes several encoders, heads and amounts of data."""
    one_or_more: dict[str, Any] = {"nargs": "+"} if several else {}
    any_number: dict[str, Any] = {"nargs": "*", "default": []} if several else {}
    parser.epilog, parser.formatter_class = EPILOG, argparse.RawDescriptionHelpFormatter
    add, advanced = parser.add_argument, parser.advanced_options().add_argument
    upstream = "hf:ID or hf:FOLDER, random:ID (its architecture with random weights), or fbank"
    add("--upstream", required=True, metavar="U", help=upstream, **one_or_more)
    corpus: dict[str, Any] = {"action": "append", "default": [], "metavar": "LANG[-NAME]=PATH"}
    add("--corpus", required=True, help="training data, as in en=LibriSpeech/train-clean-100", **corpus)
    add("--dev", help="data that chooses the best weights (default: a tenth of the clips)", **corpus)
    add("--out", required=True, metavar="FOLDER", help="folder of the probe, or of the probes")
    hours = "train on a random H hours of the corpus" + (", with the first head" if several else "")
    add("--hours", type=float, metavar="H", help=hours, **any_number)
    add(
        "--head",
        default=["medium"] if several else "medium",
        metavar="SIZE",
        help="linear, or a BLSTM: small has 1 layer, medium 2, large 4 (default: medium, as in the paper)",
        **one_or_more,
    )
    add("--steps", type=int, default=500_000, metavar="N", help="training steps at most (default: 500000, as in s3prl)")
    add("--batch-size", type=int, default=16, metavar="N", help="clips a step (default: 16)")
    add("--seed", type=int, default=0, help="seed of weights, order and masks (default: 0)")
    augment = "perturb training clips by these scenarios or categories (without any: by all)"
    add("--train-augment", nargs="*", metavar="SCENARIO", help=augment)
    add("--device", default="cpu", help="cpu, cuda, cuda:1 (default: cpu)")
    advanced("--revision", default="", help="commit of the upstream on the Hub")
    advanced("--units", type=int, default=1024, metavar="N", help="units a direction of the head (default: 1024)")
    advanced("--normalise", action="store_true", help="normalise each layer first, for large encoders")
    advanced("--lr", type=float, default=1e-4, help="learning rate of Adam (default: 0.0001)")
    advanced("--warmup", type=int, default=0, metavar="N", help="steps of linear warm-up (default: 0)")
    advanced("--no-spec-augment", action="store_true", help="do not mask frames in training")
    advanced("--eval-every", type=int, default=2_000, metavar="N", help="steps between tests (default: 2000)")
    stop = "stop after N tests without a better dev WER (default: 10)"
    advanced("--patience", type=int, default=10, metavar="N", help=stop)
    advanced("--save-every", type=int, default=200, metavar="N", help="steps between checkpoints (default: 200)")
    held_out = "scenarios that --train-augment leaves out: they are for the test"
    advanced("--held-out", nargs="*", default=[], metavar="SCENARIO", help=held_out)
    advanced("--augment-p", type=float, default=0.5, metavar="P", help="share of perturbed clips (default: 0.5)")
    for bank in (option for option in options(ScenarioOptions) if option.name in ("noise_dir", "rir_dir")):
        bank.add_to(parser.advanced_options())
    advanced("--cache-features", metavar="DIR", help="keep the encoder's hidden states on the disk (large)")
    advanced("--quiet", action="store_true", help="show no progress")


def run(args: argparse.Namespace) -> int:
    return {"train": _train, "ablate": _ablate, "layers": _layers, "rank": _rank}[args.what](args)


def _train(args: argparse.Namespace) -> int:
    _train_one(args, args.upstream, args.out, args.head, args.hours)
    return 0


def _ablate(args: argparse.Namespace) -> int:
    from speech_robust_bench.extensions.probe.ranking import ablations

    args.probes = []
    for ablation in ablations(args.upstream, args.head, args.hours, args.out):
        _train_one(args, ablation.upstream, str(ablation.folder), ablation.head, ablation.hours)
        args.probes.append(str(ablation.folder))
    return _rank(args)


def _train_one(args: argparse.Namespace, upstream: str, out: str, head: str, hours: float | None) -> None:
    from speech_robust_bench.builders.banks import Banks
    from speech_robust_bench.builders.corpora import parse_flags
    from speech_robust_bench.core.errors import install_hint
    from speech_robust_bench.core.progress import tasks
    from speech_robust_bench.models.interface import need

    need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.train_probe import ProbeOptions, train_probe
    from speech_robust_bench.extensions.probe.training import HeadSettings, Schedule

    schedule = Schedule(
        steps=args.steps,
        batch_size=args.batch_size,
        lr=args.lr,
        warmup=args.warmup,
        spec_augment=not args.no_spec_augment,
        eval_every=args.eval_every,
        patience=args.patience,
        seed=args.seed,
    )
    options = ProbeOptions(
        upstream,
        parse_flags(args.corpus),
        dev=parse_flags(args.dev) or None,
        hours=hours,
        head=HeadSettings(head, args.units, args.normalise),
        schedule=schedule,
        augment=args.train_augment,
        held_out=args.held_out,
        augment_p=args.augment_p,
        banks=Banks(args.noise_dir, args.rir_dir),
        cache=args.cache_features,
        device=args.device,
        revision=args.revision,
        save_every=args.save_every,
    )
    with tasks(args.quiet) as show:
        probe = train_probe(options, out, show)
    best, data = probe.best, probe.data
    if getattr(args, "json", False):
        return
    print(
        f"{out}: dev WER {best['dev_wer']:.2f} at step {best['step']}, learned from {data['hours']:.2f} h "
        f"({data['clips']} clips); use it as probe:{out}"
    )


def _probes(args: argparse.Namespace) -> list[ProbeFile]:
    from speech_robust_bench.extensions.probe.probe_file import read_probe

    return [read_probe(folder) for folder in args.probes]


def _layers(args: argparse.Namespace) -> int:
    import json
    from pathlib import Path

    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.core.files import write_atomically
    from speech_robust_bench.extensions.probe.ranking import layer_chart

    rows = [(probe.folder.name, [float(weight) for weight in probe.layer_weights]) for probe in _probes(args)]
    if args.out:
        write_atomically(Path(args.out), layer_chart(rows))
    if args.json:
        print(json.dumps(dict(rows), indent=1))
        return 0
    for name, weights in rows:
        print(for_terminal(name))
        most = max(weights, default=0) or 1
        for layer, weight in enumerate(weights):
            print(f"  layer {layer:>2}  {weight:.4f}  {'#' * round(40 * weight / most)}")
    return 0


def _rank(args: argparse.Namespace) -> int:
    import json

    from speech_robust_bench.core.errors import for_terminal
    from speech_robust_bench.extensions.probe.ranking import rank_upstreams

    ranks = rank_upstreams(_probes(args))
    first, *_ = ranks.settings
    if args.json:
        print(json.dumps(ranks.as_json(), indent=1))
        return 0
    for setting in ranks.settings:
        rho = ranks.correlation(first, setting)
        same = "the reference" if setting == first else "-" if rho is None else f"Spearman {rho:.3f}"
        print(f"{setting}  ({same})")
        for name, wer in sorted(ranks.wer[setting].items(), key=lambda item: item[1]):
            print(f"  {wer:6.2f}  {for_terminal(name)}")
    return 0
