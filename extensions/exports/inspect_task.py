"""The benchmark as a task of Inspect (inspect.aisi.org.uk), for audio language models and SRB's own recognisers.

    pip install -e ".[inspect]"
    inspect eval speech_robust_bench/srb -T configs=en_clean,en_noise_sev3 -T corpus=LibriSpeech \
        --model openai/gpt-audio
    inspect eval speech_robust_bench/srb --model srb/moonshine           # any recogniser of SRB

The clips are made as `srb.load` makes them and go to a folder as WAV files, which Inspect reads. The score of a clip is
its WER; the metrics are the WER of each config, errors over words, and its loss against clean speech (WERD).

What follows `srb/` of a model is a spec as `srb run --model` takes it. The prompt is not read; the last audio of the
conversation is transcribed, in the language that the task names for it, one clip at a time: a recogniser is not
re-entrant.
"""

from __future__ import annotations

import asyncio
import threading
from base64 import b64decode
from collections import defaultdict
from pathlib import Path
from typing import Any

import soundfile
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import (
    ChatMessage,
    ChatMessageUser,
    ContentAudio,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelOutput,
    ModelUsage,
    modelapi,
)
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate
from inspect_ai.tool import ToolChoice, ToolInfo

from speech_robust_bench.building import load
from speech_robust_bench.core.audio import RATE, read
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.models.interface import open_model
from speech_robust_bench.models.prompts import PROMPT, unwrap
from speech_robust_bench.scoring.scoring import align, error_rate


@task(name="srb")
def speech_robustness(
    configs: str | list[str] = "en-demo_clean,en-demo_noise_sev3",
    corpus: str | None = None,
    limit: int | None = None,
    noise_dir: str | None = None,
    rir_dir: str | None = None,
    tts: str | None = None,
    prompt: str = PROMPT,
    normaliser: str = "srb-numbers-1",
    audio_dir: str = "srb-audio",
) -> Task:
    """Transcribe the clips of some configs.

    Args:
        configs: names, with commas between them; name the clean config as well, or there is no WERD.
        corpus, limit, noise_dir, rir_dir, tts: as in `srb.load`.
        prompt: what the model is asked.
        normaliser: of both texts before they are aligned.
        audio_dir: where the WAV files go.
    """
    names = configs.split(",") if isinstance(configs, str) else list(configs)
    samples = []
    for config in names:
        folder = Path(audio_dir) / config
        rows = load(config, corpus, limit=limit, noise_dir=noise_dir, rir_dir=rir_dir, tts=tts)
        folder.mkdir(parents=True, exist_ok=True)
        samples += [_sample(config, place, row, folder, prompt) for place, row in enumerate(rows)]
    return Task(dataset=MemoryDataset(samples, "speech-robust-bench"), solver=generate(), scorer=wer(normaliser))


def _sample(config: str, place: int, row: dict, folder: Path, prompt: str) -> Sample:
    if row["text"] is None:
        raise UserError(f"{config}: clip {row['id']} has no transcript to score against")
    path = (folder / f"{place:05d}.wav").resolve()
    soundfile.write(path, row["audio"]["array"], row["audio"]["sampling_rate"], subtype="PCM_16")
    question = [ContentText(text=prompt), ContentAudio(audio=str(path), format="wav")]
    return Sample(
        id=f"{config}/{row['id']}",
        input=[ChatMessageUser(content=question, metadata={"language": row["language"]})],
        target=row["text"],
        metadata={"config": config, "clip": row["id"], "language": row["language"]},
    )


@metric
def error_rates() -> Metric:
    """WER of every config in points, and WERD of those whose clean config is there."""

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        totals: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
        for sample in scores:
            facts = sample.score.metadata or {}
            totals[facts["config"]][0] += facts["errors"]
            totals[facts["config"]][1] += facts["words"]
        rates = {config: float(error_rate(*total)) for config, total in totals.items()}
        losses = {}
        for config, rate in rates.items():
            clean = str(parse(config).clean)
            if clean != config and clean in rates:
                losses[f"{config} WERD"] = rate - rates[clean]
        return {f"{config} WER": rate for config, rate in rates.items()} | losses

    return compute


@scorer(metrics=[error_rates()])
def wer(normaliser: str = "srb-numbers-1") -> Scorer:
    """Word errors of an answer, without the words that some models put around a transcript."""

    async def score(state: TaskState, target: Target) -> Score:
        answer = state.output.completion
        text = answer if state.output.model.startswith(f"{PROVIDER}/") else unwrap(answer)
        counts = align([target.text], [text], normaliser=normaliser, language=state.metadata["language"])
        facts = {"config": state.metadata["config"], "errors": int(counts.errors[0]), "words": int(counts.lengths[0])}
        return Score(value=counts.rate, answer=text, explanation=state.output.completion, metadata=facts)

    return score


PROVIDER = "srb"
_NO_TOKENS = ModelUsage(input_tokens=1, output_tokens=1, total_tokens=2)  # else Inspect loads a tokenizer from the web


@modelapi(name=PROVIDER)
class RecogniserModel(ModelAPI):
    """A recogniser behind Inspect's model interface."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig | None = None,
        **model_args: Any,
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config or GenerateConfig())
        if model_args:
            raise UserError(f"options of a recogniser stand in its spec: srb/{model_name}?{next(iter(model_args))}=...")
        self.recogniser = open_model(model_name)
        self._one_at_a_time = threading.Lock()

    async def generate(
        self, input: list[ChatMessage], tools: list[ToolInfo], tool_choice: ToolChoice, config: GenerateConfig
    ) -> ModelOutput:
        """The transcript of the last audio."""
        message, audio = _last_audio(input)
        language = (message.metadata or {}).get("language")
        text = await asyncio.to_thread(self._transcribe, audio, language)
        output = ModelOutput.from_content(f"{PROVIDER}/{self.model_name}", text)
        output.usage = _NO_TOKENS
        return output

    def _transcribe(self, audio: str, language: str | None) -> str:
        source = b64decode(audio.partition(",")[2]) if audio.startswith("data:") else audio  # Inspect inlines files
        clip = read(source)
        with self._one_at_a_time:
            return str(self.recogniser.transcribe([clip], RATE, language)[0])

    def max_connections(self) -> int:
        """A clip is prepared while another one is transcribed."""
        return 2

    async def aclose(self) -> None:
        """Give back the recogniser's processes and memory."""
        self.recogniser.close()


def _last_audio(messages: list[ChatMessage]) -> tuple[ChatMessage, str]:
    for message in reversed(messages):
        if isinstance(message.content, list):
            for part in reversed(message.content):
                if isinstance(part, ContentAudio):
                    return message, part.audio
    raise UserError("a recogniser needs audio: this conversation has none")
