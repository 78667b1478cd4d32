"""Any speech recogniser of transformers, from the Hub or a folder: `hf:openai/whisper-tiny.en`.

Straight on the model and its processor, so that nothing happens that is not written here. The class is the one that
transformers itself maps the config to: CTC, RNN-T, TDT, encoder-decoder, or a language model that takes audio; each is
a file of `models.hf`. Whisper and CTC have a way of their own with long clips; the others take clips of up to
`chunk_s`, and longer ones are cut at pauses.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.options import Settings
from speech_robust_bench.models.hf.base import (
    DEFAULT_TOKENS_PER_S,
    INSTALL,
    TransformersRecogniser,
    loading,
    quiet_transformers,
    revision_of,
)
from speech_robust_bench.models.hf.ctc import Ctc, Whisper
from speech_robust_bench.models.hf.generate import (
    AudioLanguageModel,
    Seq2Seq,
    Transducer,
    prompt_for,
    prompt_with_terms,
    request_for,
    takes_prompt,
)
from speech_robust_bench.models.hf.live import LiveTransducer, live_kind
from speech_robust_bench.models.interface import Recogniser, need
from speech_robust_bench.models.terms import fingerprint, read_terms

# transformers' auto classes in the order in which they are tried, and what runs their models
KINDS: tuple[tuple[str, type[TransformersRecogniser]], ...] = (
    ("AutoModelForCTC", Ctc),
    ("AutoModelForRNNT", Transducer),
    ("AutoModelForTDT", Transducer),
    ("AutoModelForSpeechSeq2Seq", Seq2Seq),
    ("AutoModelForMultimodalLM", AudioLanguageModel),
    ("AutoModelForSeq2SeqLM", AudioLanguageModel),  # Audio Flamingo 3 is listed there
    ("AutoModelForCausalLM", AudioLanguageModel),  # only for models that bring their own code
)
TOKENS_PER_S = {"moonshine": 6.5, "moonshine_streaming": 6.5}  # as Moonshine's authors have it
# How long a clip a model takes whole, where that is more or less than 30 s
LONGEST_S = {
    "kyutai_speech_to_text": 3600.0,  # a stream
    "voxtral_realtime": 3600.0,
    "voxtral": 1800.0,
    "vibevoice_asr": 3600.0,
    "moss_transcribe_diarize": 3600.0,
    "glmasr": 600.0,
    "qwen3_asr": 1200.0,
}
DEFAULT_LONGEST_S = 30.0
# The settings that count for a kind of model; all of them for the others
USED: dict[type, tuple[str, ...]] = {
    Whisper: ("beams",),
    Ctc: ("chunk_s",),
    Transducer: ("chunk_s",),
    LiveTransducer: ("chunk_s",),
    Seq2Seq: ("chunk_s", "tokens_per_s", "beams"),
}
# The kinds that can follow an option
ABLE: dict[str, tuple[type, ...]] = {
    "word_times": (Whisper,),
    "nbest": (Whisper, Seq2Seq, AudioLanguageModel),
    "terms": (Whisper, AudioLanguageModel),
}
_COMMIT = re.compile(r"[0-9a-f]{40}")


def load(
    target: str,
    *,
    device: str = "",
    dtype: str = "float32",
    batch_size: int = 8,
    language: str = "",
    revision: str = "",
    chunk_s: float = 0.0,
    beams: int = 1,
    tokens_per_s: float = 0.0,
    threads: int = 0,
    prompt: str = "",
    confidence: bool = False,
    word_times: bool = False,
    nbest: int = 0,
    terms: str = "",
    trust_remote_code: bool = False,
) -> Recogniser:
    """`hf:<id or folder>`. `language` overrides the data's, `auto` leaves it open; no `device` is a GPU, if any.

    `prompt` is the instruction for models that take one, `confidence` adds how sure a CTC model is of each word,
    `word_times` when Whisper heard it. `nbest` stores that many transcripts of each clip, of as many `beams`. `terms`
    is a file of terms for the prompt. `trust_remote_code` runs code that the model brings along; of the Hub it needs
    the `revision` as a commit, so that it is the code that was looked at.
    """
    torch = need("torch", "hf", INSTALL)
    transformers = quiet_transformers("hf")
    if not target:
        raise UserError("'hf' needs a model: hf:openai/whisper-tiny.en, or hf:<folder>")
    if not isinstance(getattr(torch, dtype, None), torch.dtype):
        raise UserError(f"hf: no dtype '{dtype}'; use float32, float16 or bfloat16")
    if trust_remote_code and not Path(target).is_dir() and not _COMMIT.fullmatch(revision):
        raise UserError(f"hf:{target}: trust_remote_code needs the commit whose code you trust: &revision=<40 digits>")
    if target.startswith(("/", ".", "~")) and not Path(target).is_dir():
        raise UserError(f"hf:{target}: no such folder")
    if threads:
        torch.set_num_threads(threads)
    where: Settings = {"revision": revision} if revision else {}
    where["trust_remote_code"] = trust_remote_code  # left out, transformers asks on stdin
    with loading(f"hf:{target}"):
        config = transformers.AutoConfig.from_pretrained(target, **where)
        kind, auto = kind_of(transformers, config, target)
        processor = transformers.AutoProcessor.from_pretrained(target, **where)
        model = auto.from_pretrained(target, torch_dtype=getattr(torch, dtype), **where)
    model = getattr(model, "thinker", model)  # of the Omni models: the part that reads and writes; the other one speaks
    place = device or ("cuda" if torch.cuda.is_available() else "cpu")
    model_type = config.model_type
    if kind is Seq2Seq and not config.is_encoder_decoder:
        kind = AudioLanguageModel  # transformers lists some of them in both places
    request = request_for(processor, model_type, converses=kind is AudioLanguageModel)
    kind = live_kind(kind, model, processor)
    settings: Settings = {
        "chunk_s": chunk_s or LONGEST_S.get(model_type, DEFAULT_LONGEST_S),
        "tokens_per_s": tokens_per_s or TOKENS_PER_S.get(model_type, DEFAULT_TOKENS_PER_S),
        "beams": beams,
        "prompt": prompt_for(request, model_type, prompt),
    }
    expected = read_terms(terms) if terms else []
    _check(target, kind, {"word_times": word_times, "nbest": nbest, "terms": bool(expected)})
    if nbest > beams:
        raise UserError(f"hf:{target}: nbest={nbest} needs at least as many beams: beams={nbest}")
    if expected and kind is AudioLanguageModel:
        if not takes_prompt(request, processor):
            raise UserError(f"hf:{target}: takes no instruction, so no terms; leave terms out")
        settings["prompt"] = prompt_with_terms(settings["prompt"], expected)
    options = {"device": place, "dtype": dtype, "batch_size": batch_size, "language": language or None}
    options |= {name: settings[name] for name in USED.get(kind, settings)}
    given = {"word_times": word_times, "nbest": nbest, "terms": fingerprint(expected) if expected else ""}
    options |= {name: value for name, value in given.items() if value}
    if trust_remote_code:
        options["trust_remote_code"] = True
    if confidence:
        if kind is not Ctc:
            raise UserError(f"hf:{target}: only CTC models tell their confidences; leave confidence out")
        options["confidence"] = True
    recogniser = kind(
        name=target if not Path(target).is_dir() else Path(target).resolve().name,
        revision=revision_of(target, config),
        options=options,
        batch_size=batch_size,
        model=model.to(place).eval(),
        processor=processor,
        rate=_rate(processor),
        forced_language=language or None,
        request=request,
        confidence=confidence,
        word_times=word_times,
        nbest=nbest,
        terms=tuple(expected),
        **settings,
    )
    if isinstance(recogniser, Whisper):
        recogniser.check_options()
    if isinstance(recogniser, Ctc) and confidence:
        recogniser.check_confidence()
    return recogniser


def _check(target: str, kind: type[TransformersRecogniser], asked: dict[str, Any]) -> None:
    """Refuse an option that a kind of model has no way to follow."""
    for name, value in asked.items():
        if value and kind not in ABLE[name]:
            able = " and ".join(sorted(each.__name__ for each in ABLE[name]))
            raise UserError(f"hf:{target}: {name} is for {able} models, not {kind.__name__}; leave it out")


def kind_of(transformers: Any, config: Any, target: str) -> tuple[type[TransformersRecogniser], Any]:
    """What runs a model, and the auto class of transformers that loads it, from the model's config."""
    if config.model_type == "whisper":
        return Whisper, transformers.AutoModelForSpeechSeq2Seq
    own_code = getattr(config, "auto_map", None) or {}
    named = config.architectures or []
    for name, kind in KINDS:
        auto = getattr(transformers, name, None)
        if auto is None:  # an older transformers
            continue
        mapped = name in own_code or (type(config) in auto._model_mapping and name != "AutoModelForCausalLM")
        # a CTC head and a bare encoder share one config class: the checkpoint says which one it is
        if mapped and (kind is not Ctc or not named or any(name.endswith("ForCTC") for name in named)):
            if kind is AudioLanguageModel and not own_code and not takes_audio(config):
                continue
            return kind, auto
    raise UserError(f"hf:{target}: {', '.join(named) or config.model_type} is not a speech recogniser")


def takes_audio(config: Any) -> bool:
    """Whether a multimodal model has a part for audio; most have one for images alone."""
    parts = [config, getattr(config, "thinker_config", None)]
    return any(getattr(part, "audio_config", None) is not None for part in parts if part is not None)


def _rate(processor: Any) -> int:
    for name in ("feature_extractor", "audio_processor"):
        if rate := getattr(getattr(processor, name, None), "sampling_rate", None):
            return rate
    return getattr(processor, "sampling_rate", None) or 16_000
