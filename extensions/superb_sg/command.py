"""`srb superb train | test`: SUPERB-SG's enhancement and separation on a frozen encoder."""

from __future__ import annotations

import json
from dataclasses import dataclass

import speech_robust_bench as srb
from speech_robust_bench.cli.arguments import corpus_option, json_option, limit_option, quiet_option
from speech_robust_bench.cli.command import Command
from speech_robust_bench.core.options import Options, Settings, argument, option, option_group
from speech_robust_bench.extensions.superb_sg.head_file import TaskScores
from speech_robust_bench.extensions.superb_sg.mixtures import TASKS

EPILOG = """examples:
  srb superb train enhancement --upstream hf:facebook/hubert-base-ls960 --voicebank VoiceBank --out heads/hubert
  srb superb test heads/hubert --voicebank VoiceBank
  srb quality --front superb:heads/hubert 'en_noise_*'
If a training is interrupted, repeat it to continue from its last checkpoint."""


@dataclass(frozen=True, kw_only=True)
class Data(Options):
    voicebank: str | None = option(None, "folder of Voicebank-DEMAND", metavar="FOLDER", one_of="data")
    librimix: str | None = option(None, "folder of Libri2Mix", metavar="FOLDER", one_of="data")
    corpus: list[str] = corpus_option("corpus of which mixtures are made, as in en=LibriSpeech/dev-clean")
    scenarios: list[str] = option(["noise_env"], "what makes clips of --corpus noisy", metavar="SCENARIO")
    noise_dir: str | None = option(None, "recordings of noise for them", metavar="FOLDER", advanced=True)
    device: str = option("cpu", "cpu, cuda, cuda:1 (default: cpu)", advanced=True)
    quiet: bool = quiet_option()

    def given(self) -> Settings:
        """The data as the API takes it."""
        names = ("voicebank", "librimix", "corpus", "scenarios", "noise_dir", "device")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class TrainArguments(Data):
    task: str = argument("task: enhancement or separation", metavar="TASK", choices=TASKS)
    upstream: str = option(help="hf:ID or hf:FOLDER, random:ID (random weights), or fbank", metavar="U")
    out: str = option(help="folder of the head", metavar="FOLDER")
    mask_options: srb.MaskOptions = option_group(srb.MaskOptions)


@dataclass(frozen=True, kw_only=True)
class ScoreArguments(Data):
    head: str = argument("folder of a trained head", metavar="HEAD")
    limit: int | None = limit_option("only the first N mixtures")
    json: bool = json_option()


def train(args: TrainArguments) -> None:
    record = srb.train_mask_head(
        args.task, args.upstream, args.out, mask_options=args.mask_options, progress=not args.quiet, **args.given()
    )
    print(
        f"{args.out}: {record.task} on {record.upstream}, best at step {record.best.step} of {record.schedule['steps']}"
    )
    show(record.best.scores)


def score(args: ScoreArguments) -> None:
    scores = srb.score_mask_head(args.head, limit=args.limit, progress=not (args.quiet or args.json), **args.given())
    print(json.dumps(scores.as_json(), indent=1)) if args.json else show(scores)


def show(scores: TaskScores) -> None:
    """Print the scores with their intervals, and what these are over."""
    names = {"pesq": "PESQ", "stoi": "STOI", "si_sdr_db": "SI-SDR dB", "si_sdri_db": "SI-SDRi dB"}
    for key, title in names.items():
        if (value := getattr(scores, key)) is not None:
            bounds = f" ({value.interval[0]:.2f} to {value.interval[1]:.2f})" if value.interval else ""
            print(f"{title} {value.value:.3f}{bounds}")
    print(f"{scores.clips} mixtures; intervals over {scores.resampled or 'none'}")


COMMANDS = (
    Command(TrainArguments, train, EPILOG, "train", "train a head on a frozen encoder"),
    Command(ScoreArguments, score, EPILOG, "test", "test a head on published data or on mixtures of a corpus"),
)
