"""CHiME-6 (Watanabe et al., 2020; openslr.org/150): dinner parties, on worn microphones and on arrays in the room.

`transcriptions/eval/S01.json` is a list of `{"session_id", "speaker": "P01", "start_time": "0:01:23.45", "end_time",
"words", "ref": "U02"}`; `ref` is the array nearest to the speaker. `audio/eval/S01_P01.wav` is what speaker P01 wore
(two channels, of which the left is kept), `audio/eval/S01_U02.CH1.wav` the array's first channel, all on one clock.
Near: the speaker's own microphone; far: the reference array, channel 1 (the paper's selection).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder, words

INFO = CorpusInfo(
    name="chime",
    title="CHiME-6 eval",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/150",
    citation="Watanabe et al.: CHiME-6 Challenge: Tackling Multispeaker Speech Recognition for Unsegmented Recordings. "
    "CHiME 2020.",
    get="download CHiME6_eval.tar.gz and CHiME6_transcriptions.tar.gz from https://www.openslr.org/150",
)
LAYOUT = "transcriptions/eval/*.json and audio/eval/*.wav"
MIN_WORDS = 3
MIN_S = 1.0
_TAG = re.compile(r"\[[^\]]*\]")


def read(root: Path, language: str, far: bool = False) -> Iterator[Utterance | Problem]:
    """The evaluation parties: utterances of at least 3 words and 1 s, as worn (near) or from the room (far)."""
    for release in find_folder(root, lambda folder: (folder / "transcriptions" / "eval").is_dir()):
        missing: set[Path] = set()
        for session in sorted(release.joinpath("transcriptions", "eval").glob("*.json")):
            try:
                lines = json.loads(session.read_text(encoding="utf-8"))
            except json.JSONDecodeError as error:
                yield Problem(str(session), f"not JSON ({error})")
                continue
            for number, line in enumerate(lines, 1):
                if "speaker" not in line:  # redacted stretches have times and nothing else
                    continue
                try:
                    utterance = _utterance(line, session.stem, release / "audio" / "eval", language, far)
                except (KeyError, ValueError) as error:
                    yield Problem(f"{session}, entry {number}", f"cannot be used ({error!r})")
                    continue
                source = utterance.audio
                assert isinstance(source, FileAudio)
                assert source.end_s is not None
                if words(utterance.text) < MIN_WORDS or source.end_s - source.start_s < MIN_S:
                    continue
                path = Path(source.path)
                if path in missing:
                    continue
                if not path.is_file():  # one report for a recording, not one for each of its thousand utterances
                    missing.add(path)
                    yield Problem(str(path), f"no such file ({session.name} needs it)")
                    continue
                yield utterance


def _utterance(line: dict[str, str], session: str, audio: Path, language: str, far: bool) -> Utterance:
    start_s, end_s = seconds(line["start_time"]), seconds(line["end_time"])
    speaker = line["speaker"]
    path = audio / (f"{session}_{line['ref']}.CH1.wav" if far else f"{session}_{speaker}.wav")
    return Utterance(
        id=f"{session}_{speaker}-{round(start_s * 100):07}-{round(end_s * 100):07}",
        audio=FileAudio(str(path), start_s, end_s, mix=False),
        text=" ".join(_TAG.sub(" ", line["words"]).split()),
        language=language,
        speaker=speaker,
    )


def seconds(clock: str | float) -> float:
    """`1:02:03.45`, or plain seconds as the later CHiME challenges write them."""
    total = 0.0
    for part in str(clock).split(":"):
        total = total * 60 + float(part)
    return total
