"""What recognisers tell besides the text: n-best lists, word times, and what terms they are given."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
import soundfile
from support.whisper_weights import default_folder

from speech_robust_bench.builders.corpora.folder import DEMO_FOLDER
from speech_robust_bench.core.errors import UserError
from speech_robust_bench.core.records import Told, convert
from speech_robust_bench.models.interface import open_model, with_alternatives, with_confidences
from speech_robust_bench.models.prompts import fingerprint, read_terms

RATE = 16_000
# OpenAI's, of tiny.en: github.com/openai/whisper, whisper/__init__.py
ALIGNMENT_HEADS = [[1, 0], [2, 0], [2, 5], [3, 0], [3, 1], [3, 2], [3, 3], [3, 4]]


@pytest.fixture(scope="module")
def clip() -> np.ndarray:
    return soundfile.read(DEMO_FOLDER / "en-reader-07.flac", dtype="float32")[0]


@pytest.fixture(scope="module")
def whisper() -> Path:
    pytest.importorskip("transformers")
    if not (default_folder() / "config.json").is_file():
        pytest.skip("python -m tests.support.whisper_weights")
    return default_folder()


@pytest.fixture
def terms_file(tmp_path) -> Path:
    file = tmp_path / "terms.txt"
    file.write_text("# dishes\nKaliko\n\nHester  Prynne\nKaliko\n")
    return file


def test_terms_are_the_lines_of_a_file(terms_file, tmp_path):
    assert read_terms(terms_file) == ["Kaliko", "Hester Prynne"]
    assert fingerprint(["Kaliko"]) != fingerprint(["Kaliko", "Hester Prynne"])
    (tmp_path / "empty.txt").write_text("\n")
    for file in (tmp_path / "empty.txt", tmp_path / "none.txt"):
        with pytest.raises(UserError, match="one on each line"):
            read_terms(file)


def test_a_list_keeps_what_the_best_transcript_tells():
    best = with_confidences("so it is", [("so", None, 0.0, 0.2)])
    texts = with_alternatives([best, "so is it", "so it is", "so is it"])
    told = convert(texts.details, Told)
    assert (texts, told.alternatives) == ("so it is", ["so is it"])
    assert told.word_confidences is not None
    assert told.word_confidences[0].confidence is None


def test_pocketsphinx_lists_the_best_paths(clip):
    pytest.importorskip("pocketsphinx")
    plain, listed = (open_model(f"pocketsphinx?workers=1{more}") for more in ("", "&nbest=4"))
    (text,), (best,) = (each.transcribe([clip], RATE, "en") for each in (plain, listed))
    others = best.details["alternatives"]
    assert best == text
    assert best.details["word_confidences"] == text.details["word_confidences"]
    assert len({best, *others}) == 4
    assert listed.transcribe([clip[:0]], RATE, "en") == [""]


class KaldiRecognizer:
    """Vosk's, as far as the adapter uses it: two parts, of two alternatives each."""

    made: ClassVar[list[tuple]] = []

    def __init__(self, model, rate, *grammar):
        self.made.append(grammar)
        self.most = 0
        self.parts = 0

    def SetWords(self, wanted):
        pass

    def SetMaxAlternatives(self, most):
        self.most = most

    def AcceptWaveform(self, data):
        self.parts += 1
        return self.parts == 1

    def _answer(self, first, second, worse):
        if not self.most:
            return json.dumps({"text": f"{first} [unk]"})
        words = [{"word": first, "start": 0.0, "end": 0.5}]
        best, other = ({"text": t, "confidence": c, "result": words} for t, c in ((first, 9.0), (second, 9.0 - worse)))
        return json.dumps({"alternatives": [best, other][: self.most]})

    def Result(self):
        return self._answer("one", "won", 0.5)

    def FinalResult(self):
        return self._answer("two", "too", 1.0)


@pytest.fixture
def vosk(monkeypatch, tmp_path) -> str:
    fake = types.SimpleNamespace(SetLogLevel=abs, Model=str, KaldiRecognizer=KaldiRecognizer)
    monkeypatch.setitem(sys.modules, "vosk", fake)
    return f"vosk:{tmp_path}?threads=1"


def test_vosk_joins_the_alternatives_of_its_parts(vosk):
    (best,) = open_model(f"{vosk}&nbest=3").transcribe([np.zeros(RATE // 2, np.float32)], RATE, "en")
    assert (best, best.details["alternatives"]) == ("one two", ["won two", "one too"])
    assert best.details["word_confidences"] == [["one", None, 0.0, 0.5], ["two", None, 0.0, 0.5]]


def test_vosk_takes_terms_as_a_grammar(vosk, terms_file):
    recogniser = open_model(f"{vosk}&terms={terms_file}")
    assert recogniser.transcribe([np.zeros(RATE // 2, np.float32)], RATE, "en") == ["one two"]
    assert json.loads(KaldiRecognizer.made[-1][0]) == ["kaliko", "hester prynne", "[unk]"]
    assert recogniser.options["terms"] == fingerprint(["Kaliko", "Hester Prynne"])


def test_vosk_takes_terms_live_too(vosk, terms_file):
    session = open_model(f"{vosk}&terms={terms_file}").stream(RATE, "en")
    assert json.loads(KaldiRecognizer.made[-1][0]) == ["kaliko", "hester prynne", "[unk]"]
    assert [event.text for event in session.finish()] == ["two"]


def test_whisper_gives_the_list_of_its_beams(whisper, clip):
    listed = open_model(f"hf:{whisper}?beams=3&nbest=3&device=cpu&threads=1")
    (best,) = listed.transcribe([clip], RATE, "en")
    assert [best] == open_model(f"hf:{whisper}?beams=3&device=cpu&threads=1").transcribe([clip], RATE, "en")
    assert 1 <= len(set(best.details["alternatives"]) - {best}) <= 2


def test_whisper_tells_when_it_heard_a_word(whisper, clip, tmp_path):
    for file in whisper.iterdir():
        (tmp_path / file.name).symlink_to(file.resolve())
    with pytest.raises(UserError, match="alignment_heads"):
        open_model(f"hf:{tmp_path}?word_times=true&device=cpu")
    config = json.loads((whisper / "generation_config.json").read_text())
    (tmp_path / "generation_config.json").unlink()
    (tmp_path / "generation_config.json").write_text(json.dumps(config | {"alignment_heads": ALIGNMENT_HEADS}))
    timed = open_model(f"hf:{tmp_path}?word_times=true&device=cpu&threads=1")
    (text,) = timed.transcribe([clip], RATE, "en")
    words = text.details["word_confidences"]
    assert " ".join(word for word, *_ in words).split() == text.split()
    starts = [start for _, _, start, _ in words]
    assert starts == sorted(starts)
    assert words[-1][3] <= len(clip) / RATE + 0.1


def test_whisper_is_prompted_with_terms(whisper, clip, terms_file, tmp_path, monkeypatch):
    recogniser = open_model(f"hf:{whisper}?terms={terms_file}&device=cpu&threads=1")
    generate, told = recogniser.model.generate, []

    def watched(*inputs, **settings):
        told.append(recogniser.processor.tokenizer.decode(settings["prompt_ids"]))
        return generate(*inputs, **settings)

    monkeypatch.setattr(recogniser.model, "generate", watched)
    (text,) = recogniser.transcribe([clip], RATE, "en")
    assert told == ["<|startofprev|> Kaliko, Hester Prynne"]
    assert "Kaliko" not in text  # the prompt is not in the transcript
    long = tmp_path / "long.txt"
    long.write_text("\n".join(f"antidisestablishment{i}" for i in range(200)))
    with pytest.raises(UserError, match="room for 223"):
        open_model(f"hf:{whisper}?terms={long}&device=cpu")


@pytest.mark.parametrize("options", ["nbest=3", "nbest=3&beams=2", "word_times=true&beams=2"])
def test_options_of_lists_and_times_that_clash(whisper, options):
    with pytest.raises(UserError, match=r"nbest|word"):
        open_model(f"hf:{whisper}?{options}&device=cpu")


@pytest.mark.parametrize("options", ["nbest=3&beams=3", "nbest=3&beams=2&window_s=30"])
def test_faster_whisper_lists_need_a_window(options):
    pytest.importorskip("faster_whisper")
    with pytest.raises(UserError, match="window_s=30&beams=3"):
        open_model(f"faster-whisper:tiny.en?{options}")
