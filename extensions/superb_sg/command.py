"""`srb superb train | test`: SUPERB-SG's tasks other than recognition on a frozen encoder."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields

import speech_robust_bench as srb
from speech_robust_bench.cli.command import Command, Corpora, corpus_option, json_option, limit_option, quiet_option
from speech_robust_bench.core.options import Options, argument, option, option_group
from speech_robust_bench.extensions.superb_sg.head_file import TASKS, TaskScores

EPILOG = """examples:
  srb superb train enhancement --upstream hf:facebook/hubert-base-ls960 --voicebank VoiceBank --out heads/hubert
  srb superb test heads/hubert --voicebank VoiceBank
  srb quality --front superb:heads/hubert 'en_noise_*'
  srb superb train translation --upstream hf:facebook/hubert-base-ls960 --covost CoVoST2 --out heads/hubert-st
  srb superb test heads/hubert-st --covost CoVoST2 --under gaussian_sev2 noise_env_sev2
  srb superb train conversion --upstream hf:facebook/hubert-base-ls960 --vcc VCC2020 --target TEF1 --out heads/hubert-vc
  srb superb test heads/hubert-vc --vcc VCC2020 --asr hf:facebook/wav2vec2-large-960h-lv60-self
If a training is interrupted, repeat it to continue from its last checkpoint."""
NAMES = {
    "pesq": "PESQ",
    "stoi": "STOI",
    "si_sdr_db": "SI-SDR dB",
    "si_sdri_db": "SI-SDRi dB",
    "bleu": "BLEU",
    "l1": "L1 of the spectrogram",
    "mcd_db": "MCD dB",
    "wer": "WER %",
    "accepted": "accepted as the target %",
}


@dataclass(frozen=True, kw_only=True)
class Data(Options):
    voicebank: str | None = option(None, "folder of Voicebank-DEMAND", metavar="FOLDER", one_of="data")
    librimix: str | None = option(None, "folder of Libri2Mix", metavar="FOLDER", one_of="data")
    covost: str | None = option(None, "folder of CoVoST 2 with Common Voice's clips", metavar="FOLDER", one_of="data")
    vcc: str | None = option(None, "folder of VCC 2020", metavar="FOLDER", one_of="data")
    corpus: Corpora = corpus_option("any corpus instead, as in en=LibriSpeech/dev-clean")
    pair: str = option("en_de", "languages of CoVoST 2 (default: en_de)", metavar="FROM_TO", advanced=True)
    target: str = option("TEF1", "target speaker of a conversion (default: TEF1)", metavar="SPEAKER")
    scenarios: list[str] = option(["noise_env"], "what makes clips of --corpus noisy", metavar="SCENARIO")
    noise_dir: str | None = option(None, "recordings of noise", metavar="FOLDER", advanced=True)
    device: str = option("cpu", "cpu, cuda, cuda:1 (default: cpu)", advanced=True)
    quiet: bool = quiet_option(advanced=True)

    @property
    def given(self) -> srb.SuperbData:
        """The data as the API takes it."""
        return srb.SuperbData(**{each.name: getattr(self, each.name) for each in fields(srb.SuperbData)})


@dataclass(frozen=True, kw_only=True)
class TrainArguments(Data):
    task: str = argument(f"task: {', '.join(TASKS)}", metavar="TASK", choices=TASKS)
    upstream: str = option(help="hf:ID or hf:FOLDER, random:ID (random weights), or fbank", metavar="U")
    out: str = option(help="folder of the head", metavar="FOLDER")
    superb_options: srb.SuperbOptions = option_group(srb.SuperbOptions)


@dataclass(frozen=True, kw_only=True)
class ScoreArguments(Data):
    head: str = argument("folder of a trained head", metavar="HEAD")
    under: list[str] = option([], "test under scenarios too, as in gaussian_sev2", metavar="SCENARIO")
    asr: str | None = option(None, "recogniser for the WER of converted speech", metavar="MODEL")
    limit: int | None = limit_option("only the first N clips")
    json: bool = json_option()


def train(args: TrainArguments) -> None:
    record = srb.train_superb_head(
        args.task,
        args.upstream,
        args.out,
        args.given,
        superb_options=args.superb_options,
        device=args.device,
        progress=not args.quiet,
    )
    print(
        f"{args.out}: {record.task} on {record.upstream}, best at step {record.best.step} of {record.schedule['steps']}"
    )
    show(record.best.scores)


def score(args: ScoreArguments) -> None:
    tests = srb.score_superb_head(
        args.head,
        args.given,
        under=args.under,
        asr=args.asr,
        limit=args.limit,
        device=args.device,
        progress=not (args.quiet or args.json),
    )
    if args.json:
        print(json.dumps({name: scores.as_json() for name, scores in tests.items()}, indent=1))
        return
    for name, scores in tests.items():
        print(f"{name}:")
        show(scores)


def show(scores: TaskScores) -> None:
    """Print the scores with their intervals, and what these are over."""
    for key, title in NAMES.items():
        if (value := getattr(scores, key)) is not None:
            bounds = f" ({value.interval[0]:.2f} to {value.interval[1]:.2f})" if value.interval else ""
            print(f"{title} {value.value:.3f}{bounds}")
    if scores.no_verdict:
        print(f"no verdict on the WER: {scores.no_verdict}")
    print(f"{scores.clips} clips; intervals over {scores.resampled or 'none'}")


COMMANDS = (
    Command(TrainArguments, train, EPILOG, "train", "train a head on a frozen encoder"),
    Command(ScoreArguments, score, EPILOG, "test", "test a head on published data or on a corpus"),
)
