"""The benchmark as a task of Inspect (inspect.aisi.org.uk), for audio language models and SRB's own recognisers.

    pip install -e ".[inspect]"
    inspect eval speech_robust_bench/srb -T configs=en_clean,en_noise_sev3 -T corpus=LibriSpeech \\
        --model openai/gpt-audio
    inspect eval speech_robust_bench/srb --model srb/moonshine           # any recogniser of SRB (`inspect_model`)

The clips are made as `srb.load` makes them and go to a folder as WAV files, which Inspect reads. The score of a clip is
its WER; the metrics are the WER of each config, errors over words, and its loss against clean speech (WERD).
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import soundfile
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import ChatMessageUser, ContentAudio, ContentText
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate

from speech_robust_bench.building import load
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.names import parse
from speech_robust_bench.extensions.exports.inspect_model import PROVIDER
from speech_robust_bench.extensions.vendors.endpoints import PROMPT
from speech_robust_bench.models.llm_answer import unwrap
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
