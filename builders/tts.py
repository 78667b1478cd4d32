"""Synthetic speech (`en_tts`, `es_tts`): the transcripts of the clean clips, spoken by a text-to-speech engine.

The paper speaks English with YourTTS in voices of VCTK and Spanish with Bark's own voices, a voice drawn for each clip.
Engines are named by a short text, so that a clip can be spoken in any process:

    espeak, flite               programs that work offline (flite speaks English alone)
    hf:<model id or folder>     any VITS (MMS-TTS), Bark or SpeechT5 model of `transformers`
    bark, mms                   the published models of those names
    ...?revision=<commit>       of a model on the Hub; what is built names the commit that it was spoken by
    yourtts                     YourTTS, where the `TTS` package is installed
    ...@<folder>                voices from a folder: recordings of each speaker (yourtts), .npy x-vectors (SpeechT5)
"""

from __future__ import annotations

import hashlib
import io
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np

from speech_robust_bench.builders.banks.recording import Material
from speech_robust_bench.builders.corpora.base import AUDIO_SUFFIXES, Utterance
from speech_robust_bench.core.audio import RATE, Samples, read, resample
from speech_robust_bench.core.errors import UserError, install_hint
from speech_robust_bench.core.files import read_array, write_atomically
from speech_robust_bench.core.secrets import closed_stdin
from speech_robust_bench.core.seeding import clip_rng

MAX_CHARACTERS = 250
# The engine of the paper for each language; any other language takes Meta's single-language models.
DEFAULT_ENGINES = {"en": "yourtts", "es": "bark"}
_MMS_CODES = {
    "de": "deu",
    "en": "eng",
    "es": "spa",
    "fr": "fra",
    "it": "ita",
    "nl": "nld",
    "pl": "pol",
    "pt": "por",
}
VOCODER = "microsoft/speecht5_hifigan"
# The commits of the models that are not the user's choice.
_REVISIONS = {
    "suno/bark": "70a8a7d34168586dc5d028fa9666aceade177992",
    VOCODER: "bb6f429406e86a9992357a972c0698b22043307d",
}
_BARK_LANGUAGES = ("de", "en", "es", "fr", "hi", "it", "ja", "ko", "pl", "pt", "ru", "tr", "zh")


class VoiceEngine(Protocol):
    """Speaks a text in one of its voices; the same text, voice and seed give the same samples."""

    licence: str

    def voices(self, language: str) -> tuple[str, ...]:
        """The voices it has for a language."""

    def gender(self, voice: str) -> str | None:
        """Whether a voice is `female` or `male`, where that is known."""

    def speak(self, text: str, voice: str, language: str, seed: int) -> Samples:
        """The text spoken by this voice: mono float32 samples at 16 kHz."""


@dataclass(frozen=True, slots=True)
class SpokenAudio:
    """A clip that is spoken when it is loaded."""

    clip: str
    text: str
    language: str
    engine: str
    voice: str
    seed: int
    folder: Path | None = field(default=None, repr=False, compare=False)  # where it is kept once it has been spoken

    @property
    def name(self) -> str:
        return f"{self.clip} ({self.engine}, voice {Path(self.voice).name})"

    @property
    def parameters(self) -> dict[str, str | int]:
        """The draw, for the row."""
        return {"engine": self.engine, "voice": Path(self.voice).name, "seed": self.seed}

    def load(self) -> Samples:
        if self.folder is None:
            return self._speak()
        stored = self.folder / f"{hashlib.sha256(repr(self).encode()).hexdigest()[:32]}.npy"
        if (spoken := read_array(stored)) is not None and spoken.ndim == 1:
            return spoken
        samples = self._speak()
        self.folder.mkdir(exist_ok=True)
        buffer = io.BytesIO()
        np.save(buffer, samples)
        write_atomically(stored, buffer.getvalue())
        return samples

    def _speak(self) -> Samples:
        # LibriSpeech writes in capitals, which some engines would spell out.
        text = self.text.lower() if self.text.isupper() else self.text
        samples = open_voice_engine(self.engine).speak(text, self.voice, self.language, self.seed)
        if not np.isfinite(samples).all():
            raise UserError(f"{self.name}: the engine gave NaN or infinite samples")
        return np.clip(samples, -1, 1)


def speak_all(
    utterances: Iterable[Utterance], engine: str, folder: Path | None = None, seed: str = ""
) -> Iterator[Utterance]:
    """The clean utterances as synthetic ones: same ids, text cut to what is spoken, a voice drawn for each."""
    speaker = open_voice_engine(engine)
    for item in utterances:
        if item.text is None:
            raise UserError(
                f"{item.audio.name}: has no transcript, so there is nothing to speak; leave *_tts configs out"
            )
        voices = speaker.voices(item.language)
        if not voices:
            raise UserError(f"the engine {engine} has no voice for '{item.language}'; choose another with --tts")
        pinned = speaker.pinned(engine, item.language) if isinstance(speaker, TransformersVoice) else engine
        rng = clip_rng(item.corpus, item.id, "tts", 0, seed)
        voice = voices[int(rng.integers(len(voices)))]
        text = cut(item.text)
        yield replace(
            item,
            audio=SpokenAudio(item.id, text, item.language, pinned, voice, int(rng.integers(2**31)), folder),
            text=text,
            speaker=Path(voice).stem,
            gender=speaker.gender(voice),
            age=None,
            accent=None,
            columns=tuple(pair for pair in item.columns if pair[0] == "domain"),  # the others tell of the speaker
            licence=" AND ".join(dict.fromkeys(part for part in (item.licence, speaker.licence) if part)),
        )


def material_of(utterances: Sequence[Utterance]) -> Material | None:
    """Which engine spoke some utterances, and whether it is the paper's; none for recordings. Folders are left out."""
    first = utterances[0] if utterances else None
    if first is None or not isinstance(first.audio, SpokenAudio):
        return None
    engine = re.split("[?@]", first.audio.engine)[0]
    is_the_papers = engine == DEFAULT_ENGINES.get(first.language)
    whose = "the paper's " if is_the_papers else ""
    return Material(f"{engine} ({whose}text-to-speech)", stand_in=not is_the_papers)


def cut(text: str, limit: int = MAX_CHARACTERS) -> str:
    """At most `limit` characters, cut at a word; the reference is cut with what is spoken."""
    if len(text) <= limit:
        return text
    head, space, _ = text[: limit + 1].rpartition(" ")
    return head.rstrip() if space else text[:limit]


def default_engine(language: str) -> str:
    """The paper's engine for a language."""
    return DEFAULT_ENGINES.get(language, "mms")


@lru_cache(maxsize=2)
def open_voice_engine(name: str) -> VoiceEngine:
    """The engine that a name means, loaded once in a process."""
    model, _, voices = name.partition("@")
    model, _, option = model.partition("?")
    revision = option.removeprefix("revision=")
    if option and (revision == option or not re.fullmatch(r"[\w.-]+", revision)):
        raise UserError(f"--tts {name}: the only option of an engine is ?revision=<commit>")
    folder = Path(voices).expanduser() if voices else None
    if folder is not None and not folder.is_dir():
        raise UserError(f"{folder}: no such folder of voices (--tts {name})")
    if model == "espeak":
        return Espeak()
    if model == "flite":
        return Flite()
    if model == "yourtts":
        return YourTTS(folder)
    if model in ("bark", "mms"):
        return TransformersVoice({"bark": "suno/bark", "mms": "facebook/mms-tts-{mms}"}[model], folder, revision)
    if model.startswith("hf:"):
        return TransformersVoice(model.removeprefix("hf:"), folder, revision)
    raise UserError(f"'{name}' is not an engine; the engines are espeak, flite, yourtts, bark, mms and hf:<model>")


class Espeak:
    """espeak-ng: formant synthesis in a hundred languages, with variants of each voice."""

    licence = ""  # the program is GPL; what it says is not
    _dialects: ClassVar = {"en": ("en-us", "en-gb", "en-gb-scotland"), "es": ("es", "es-419")}
    _variants = ("f2", "f3", "m2", "m3")

    def __init__(self) -> None:
        self._program = _program("espeak-ng")

    def voices(self, language: str) -> tuple[str, ...]:
        dialects = self._dialects.get(language, (language,))
        return tuple(f"{dialect}+{variant}" for dialect in dialects for variant in self._variants)

    def gender(self, voice: str) -> str | None:
        return "female" if "+f" in voice else "male"

    def speak(self, text: str, voice: str, language: str, seed: int) -> Samples:
        # Through a file: the header that --stdout writes gives no length.
        return _run_to_file([self._program, "-v", voice, "--stdin", "-w"], text)


class Flite:
    """CMU flite: English voices that come with Debian's package."""

    licence = "MIT-Festival"
    _genders: ClassVar = {"awb": "male", "kal16": "male", "rms": "male", "slt": "female"}

    def __init__(self) -> None:
        self._program = _program("flite")

    def voices(self, language: str) -> tuple[str, ...]:
        return tuple(self._genders) if language == "en" else ()

    def gender(self, voice: str) -> str | None:
        return self._genders[voice]

    def speak(self, text: str, voice: str, language: str, seed: int) -> Samples:
        return _run_to_file([self._program, "-voice", voice, "-f", "/dev/stdin", "-o"], text)


class YourTTS:
    """YourTTS (Casanova et al., 2022) by the `TTS` package, in its own voices or those of a folder of recordings."""

    licence = "CC-BY-NC-ND-4.0"
    _languages: ClassVar = {"en": "en", "fr": "fr-fr", "pt": "pt-br"}

    def __init__(self, folder: Path | None = None) -> None:
        try:
            from TTS.api import TTS
        except ImportError:
            raise UserError(
                "YourTTS needs the package TTS (pip install coqui-tts); --tts espeak works without it"
            ) from None
        self._model = TTS("tts_models/multilingual/multi-dataset/your_tts")
        self._folder = folder

    def voices(self, language: str) -> tuple[str, ...]:
        if language not in self._languages:
            return ()
        if self._folder is None:
            return tuple(sorted(self._model.speakers))
        # VCTK has a folder of recordings for each speaker; the first one is the speaker's voice.
        speakers: dict[Path, Path] = {}
        for path in sorted(self._folder.rglob("*")):
            if path.suffix in AUDIO_SUFFIXES:
                speakers.setdefault(path.parent if path.parent != self._folder else path, path)
        return tuple(map(str, speakers.values()))

    def gender(self, voice: str) -> str | None:
        return next((word for word in ("female", "male") if Path(voice).name.startswith(word)), None)

    def speak(self, text: str, voice: str, language: str, seed: int) -> Samples:
        key = "speaker" if self._folder is None else "speaker_wav"
        with _seeded(seed):
            samples = self._model.tts(text=text, language=self._languages[language], **{key: voice})
        rate = self._model.synthesizer.output_sample_rate
        return resample(np.asarray(samples, dtype=np.float32), rate, RATE)


class TransformersVoice:
    """A text-to-speech model of `transformers`: VITS (MMS-TTS), Bark or SpeechT5, from the Hub or a folder."""

    _licences: ClassVar = {"bark": "MIT", "speecht5": "MIT", "vits": ""}

    def __init__(self, model: str, folder: Path | None = None, revision: str = "") -> None:
        self._name = model
        self._folder = folder
        self._revision = revision or _REVISIONS.get(model, "")
        self._loaded: dict[str, tuple[Any, Any]] = {}
        self.licence = "CC-BY-NC-4.0" if model.startswith("facebook/mms-tts") else self._licences.get(self._kind(), "")

    def pinned(self, engine: str, language: str) -> str:
        """The engine's name with the commit that speaks, so that every process and every later build takes the same."""
        if "?" in engine or Path(self._name).is_dir():
            return engine
        model, at, voices = engine.partition("@")
        commit = self._revision or getattr(self._load(language)[0].config, "_commit_hash", None)
        return f"{model}?revision={commit}{at}{voices}" if commit else engine

    def voices(self, language: str) -> tuple[str, ...]:
        kind = self._kind()
        if self._folder is not None:
            return tuple(str(path) for path in sorted(self._folder.glob("*.npy")))
        if kind == "bark":
            return tuple(f"v2/{language}_speaker_{n}" for n in range(10)) if language in _BARK_LANGUAGES else ()
        if kind == "speecht5":
            raise UserError("SpeechT5 speaks in the voice of an x-vector: give a folder of .npy files, hf:MODEL@FOLDER")
        if "{mms}" in self._name and language not in _MMS_CODES:
            return ()
        model, _ = self._load(language)
        return tuple(str(number) for number in range(max(model.config.num_speakers, 1)))

    def gender(self, voice: str) -> str | None:
        return None

    def speak(self, text: str, voice: str, language: str, seed: int) -> Samples:
        import torch

        model, processor = self._load(language)
        with _seeded(seed), torch.inference_mode():
            samples, rate = getattr(self, f"_{self._kind()}")(model, processor, text, voice)
        return resample(samples.squeeze().float().numpy().astype(np.float32), rate, RATE)

    def _vits(self, model: Any, processor: Any, text: str, voice: str) -> tuple[Any, int]:
        inputs = processor(text=text, return_tensors="pt")
        if not inputs["input_ids"].shape[-1]:
            raise UserError(f"{self._name} can say nothing of '{text}'")
        speaker = {"speaker_id": int(voice)} if model.config.num_speakers > 1 else {}
        return model(**inputs, **speaker).waveform, model.config.sampling_rate

    def _bark(self, model: Any, processor: Any, text: str, voice: str) -> tuple[Any, int]:
        return model.generate(**processor(text, voice_preset=voice)), model.generation_config.sample_rate

    def _speecht5(self, model: Any, processor: Any, text: str, voice: str) -> tuple[Any, int]:
        import torch

        vector = torch.from_numpy(np.load(voice).astype(np.float32)).reshape(1, -1)
        inputs = processor(text=text, return_tensors="pt")
        return model.generate_speech(inputs["input_ids"], vector, vocoder=self._vocoder()), RATE

    def _kind(self) -> str:
        """The model's family, from its config alone."""
        if "{mms}" in self._name:
            return "vits"
        kind = _from_hub("AutoConfig", self._name, self._revision).model_type
        if kind not in self._licences:
            raise UserError(f"{self._name} is a {kind} model; text-to-speech works with {', '.join(self._licences)}")
        return kind

    def _load(self, language: str) -> tuple[Any, Any]:
        name = self._name.replace("{mms}", _MMS_CODES.get(language, language))
        if name not in self._loaded:
            kind = self._kind()
            classes = {"bark": "BarkModel", "speecht5": "SpeechT5ForTextToSpeech", "vits": "VitsModel"}
            processor = _from_hub("AutoTokenizer" if kind == "vits" else "AutoProcessor", name, self._revision)
            self._loaded[name] = _from_hub(classes[kind], name, self._revision).eval(), processor
        return self._loaded[name]

    @staticmethod
    @lru_cache(maxsize=1)
    def _vocoder() -> Any:
        return _from_hub("SpeechT5HifiGan", VOCODER, _REVISIONS[VOCODER]).eval()


def _from_hub(kind: str, name: str, revision: str = "") -> Any:
    try:
        import transformers
    except ImportError:
        raise UserError(f"{name} needs transformers and torch: {install_hint('models')}") from None
    try:
        where = {"revision": revision} if revision else {}
        with closed_stdin():
            return getattr(transformers, kind).from_pretrained(name, trust_remote_code=False, **where)
    except Exception as error:  # transformers raises what it likes: no network, a wrong name, a damaged model
        reason = " ".join(str(error).split())[:200]
        raise UserError(f"the model {name} cannot be loaded: {reason}") from None


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """torch's global random stream, set for a moment and put back."""
    import torch

    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def _program(name: str) -> str:
    path = shutil.which(name)
    if path is None:
        raise UserError(f"the program {name} is not installed (on Debian: apt install {name})")
    return path


def _run_to_file(command: list[str], text: str) -> Samples:
    """Run a program that reads a text from its standard input and writes a WAV file, the last argument."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "speech.wav")
        done = subprocess.run([*command, str(path)], input=text.encode(), capture_output=True, check=False)
        if done.returncode or not path.is_file():
            reason = " ".join(done.stderr.decode(errors="replace").split()) or f"exit code {done.returncode}"
            raise UserError(f"{Path(command[0]).name} cannot speak '{text[:40]}': {reason}")
        return read(path)
