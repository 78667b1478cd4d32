"""`srb probe train | ablate | layers | rank`, `srb.train_probe` and `srb.ablate_probes`: what a frozen encoder is worth
for recognition.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from speech_robust_bench.builders.corpora import Corpora, Sources, as_sources
from speech_robust_bench.cli.command import Command, corpus_option, json_option, quiet_option
from speech_robust_bench.core.errors import UserError, for_terminal, install_hint
from speech_robust_bench.core.files import write_atomically
from speech_robust_bench.core.options import Options, argument, option, option_group
from speech_robust_bench.core.progress import tasks
from speech_robust_bench.core.records import Settings
from speech_robust_bench.extensions.probe.probe_file import HeadSettings, ProbeFile, ProbeOptions, read_probe
from speech_robust_bench.extensions.probe.ranking import Ablation, Ranks, ablations, layer_chart, rank_upstreams
from speech_robust_bench.models.interface import need
from speech_robust_bench.options import Place


def train_probe(
    upstream: str,
    corpus: Corpora,
    out: Place,
    *,
    dev: Corpora | None = None,
    hours: float | None = None,
    head: str = "medium",
    probe_options: ProbeOptions = ProbeOptions(),
    progress: bool = True,
) -> Settings:
    """Train a small head on a frozen encoder; the folder is then a recogniser, `srb.evaluate("probe:FOLDER", ...)`.

    Called again with the same arguments, it continues from its last checkpoint.

    Args:
        upstream: `hf:<id or folder>`, `random:<id or folder>` or `fbank`.
        corpus, dev: {"en": "LibriSpeech/train-clean-100"}; without `dev` a tenth of the clips is kept for it.
        out: the probe's folder.
        hours: train on a random part of the corpus.
        head: `linear`, `small`, `medium` or `large`.
        probe_options: schedule, width and perturbation.
        progress: show progress.

    Returns:
        The content of `probe.json`: `best` with the dev WER, `layer_weights`, `evaluations` and every setting.
    """
    probe = Ablation(upstream, head, hours, Path(out))
    return _train(probe, as_sources(corpus), as_sources(dev), probe_options, progress).about


def ablate_probes(
    upstreams: Sequence[str],
    corpus: Corpora,
    out: Place,
    *,
    dev: Corpora | None = None,
    heads: Sequence[str] = ("medium",),
    hours: Sequence[float] = (),
    probe_options: ProbeOptions = ProbeOptions(),
    progress: bool = True,
) -> Settings:
    """Test whether encoders keep their ranks with other heads and less data.

    Trains every encoder with each head on all data, and with the first head on each number of hours; the other
    arguments are those of `train_probe`.

    Returns:
        `settings`: for each head and number of hours the dev WER of every encoder, and Spearman's rho with the first.
    """
    probes = ablations(upstreams, heads, hours, os.fspath(out))
    return _ablate(probes, as_sources(corpus), as_sources(dev), probe_options, progress).as_json()


def _ablate(probes: Sequence[Ablation], corpus: Sources, dev: Sources, options: ProbeOptions, progress: bool) -> Ranks:
    return rank_upstreams([_train(probe, corpus, dev, options, progress) for probe in probes])


def _train(probe: Ablation, corpus: Sources, dev: Sources, options: ProbeOptions, progress: bool) -> ProbeFile:
    if probe.hours is not None and not probe.hours > 0:
        raise UserError(f"hours must be above 0, not {probe.hours:g}")
    head = HeadSettings(probe.head, options.units, options.normalise)
    need("torch", "probe", install_hint("models"))
    from speech_robust_bench.extensions.probe.training import train

    with tasks(not progress) as show:
        return train(probe, head, corpus, dev, options, show)


# --- the command -----------------------------------------------------------------------------------------------------

EPILOG = """examples:
  srb probe train --upstream hf:facebook/hubert-base-ls960 --corpus en=LibriSpeech/train-clean-100 \\
      --dev en=LibriSpeech/dev-clean --out probes/hubert
  srb probe ablate --upstream hf:A fbank --head medium linear --hours 5 \\
      --corpus en=LibriSpeech/train-clean-100 --out probes
  srb run --model probe:probes/hubert 'en_*' --corpus en=LibriSpeech
If a command is interrupted, repeat it to continue from its last checkpoint."""
UPSTREAM = "hf:ID or hf:FOLDER, random:ID (its architecture with random weights), or fbank"
HEAD = "linear, or a BLSTM: small has 1 layer, medium 2, large 4 (default: medium, as in the paper)"


@dataclass(frozen=True, kw_only=True)
class TrainArguments(Options):
    upstream: str = option(help=UPSTREAM, metavar="U")
    corpus: Corpora = corpus_option("training data, as in en=LibriSpeech/train-clean-100 (required)")
    dev: Corpora = corpus_option("data that chooses the best weights (default: a tenth of the clips)")
    out: str = option(help="folder of the probe, or of the probes", metavar="FOLDER")
    hours: float | None = option(None, "train on a random H hours of the corpus", metavar="H")
    head: str = option("medium", HEAD, metavar="SIZE")
    probe_options: ProbeOptions = option_group(ProbeOptions)
    quiet: bool = quiet_option()

    @property
    def sources(self) -> tuple[Sources, Sources]:
        """The corpora to train and to test on."""
        if not self.corpus:
            raise UserError("--corpus is required, as in --corpus en=LibriSpeech/train-clean-100")
        return as_sources(self.corpus), as_sources(self.dev)


def train_command(args: TrainArguments) -> None:
    probe = Ablation(args.upstream, args.head, args.hours, Path(args.out))
    trained = _train(probe, *args.sources, args.probe_options, not args.quiet)
    print(
        f"{args.out}: dev WER {trained.dev_wer:.2f} at step {trained.best['step']}, trained on "
        f"{trained.data['hours']:.2f} h ({trained.data['clips']} clips); use it as probe:{args.out}"
    )


@dataclass(frozen=True, kw_only=True)
class AblateArguments(TrainArguments):
    """Those of `train`, with several encoders, heads and amounts of data."""

    upstream: list[str] = option(help=UPSTREAM, metavar="U")  # type: ignore[assignment]
    hours: list[float] = option(  # type: ignore[assignment]
        [], "train on a random H hours of the corpus too, with the first head", metavar="H"
    )
    head: list[str] = option(["medium"], HEAD, metavar="SIZE")  # type: ignore[assignment]
    json: bool = json_option("print the ranks as JSON")


def ablate_command(args: AblateArguments) -> None:
    probes = ablations(args.upstream, args.head, args.hours, args.out)
    _print_ranks(_ablate(probes, *args.sources, args.probe_options, not args.quiet), args.json)


@dataclass(frozen=True, kw_only=True)
class RankArguments(Options):
    probes: list[str] = argument("folders that `srb probe train` made", metavar="PROBE")
    json: bool = json_option()


def rank_command(args: RankArguments) -> None:
    _print_ranks(rank_upstreams([read_probe(folder) for folder in args.probes]), args.json)


def _print_ranks(ranks: Ranks, as_json: bool) -> None:
    first, *_ = ranks.settings
    if as_json:
        print(json.dumps(ranks.as_json(), indent=1))
        return
    for setting in ranks.settings:
        rho = ranks.correlation(first, setting)
        same = "the reference" if setting == first else "-" if rho is None else f"Spearman {rho:.3f}"
        print(f"{setting}  ({same})")
        for name, wer in sorted(ranks.wer[setting].items(), key=lambda item: item[1]):
            print(f"  {wer:6.2f}  {for_terminal(name)}")


@dataclass(frozen=True, kw_only=True)
class LayerArguments(RankArguments):
    out: str | None = option(None, "draw the weights into an SVG file", metavar="FILE")


def layers_command(args: LayerArguments) -> None:
    probes = [read_probe(folder) for folder in args.probes]
    rows = [(probe.folder.name, [float(weight) for weight in probe.layer_weights]) for probe in probes]
    if args.out:
        write_atomically(Path(args.out), layer_chart(rows))
    if args.json:
        print(json.dumps(dict(rows), indent=1))
        return
    for name, weights in rows:
        print(for_terminal(name))
        most = max(weights, default=0) or 1
        for layer, weight in enumerate(weights):
            print(f"  layer {layer:>2}  {weight:.4f}  {'#' * round(40 * weight / most)}")


COMMANDS = (
    Command(TrainArguments, train_command, EPILOG, "train", "train a head on a frozen encoder"),
    Command(
        AblateArguments,
        ablate_command,
        EPILOG,
        "ablate",
        "train probes with several heads and less data, and rank the encoders",
    ),
    Command(LayerArguments, layers_command, name="layers", help="show how much each layer of the encoder counts"),
    Command(
        RankArguments,
        rank_command,
        name="rank",
        help="test whether encoders keep their ranks with other heads and less data",
    ),
)
