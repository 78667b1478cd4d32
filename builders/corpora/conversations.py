"""AMI meetings (Carletta et al., 2005; groups.inf.ed.ac.uk/ami): headset (IHM) and one room microphone (SDM).

Audio: `<meeting>/audio/<meeting>.Headset-<n>.wav` and `<meeting>.Array1-01.wav`. Annotations (the public manual
release, in NITE XML): `segments/<meeting>.<agent>.segments.xml` points to runs of words in
`words/<meeting>.<agent>.words.xml`, and `corpusResources/meetings.xml` says which participant an agent (A, B, ...) is
and which headset channel they wear. The first letter of a participant's name is the gender (`FEE005`, `MIO036`). The
meetings are the test part of AMI's full-corpus-ASR partition. Clips are named as Kaldi's recipe names them.

CHiME-6 (Watanabe et al., 2020; openslr.org/150): dinner parties, on worn microphones and on arrays in the room.

`transcriptions/eval/S01.json` is a list of `{"session_id", "speaker": "P01", "start_time": "0:01:23.45", "end_time",
"words", "ref": "U02"}`; `ref` is the array nearest to the speaker. `audio/eval/S01_P01.wav` is what speaker P01 wore
(two channels, of which the left is kept), `audio/eval/S01_U02.CH1.wav` the array's first channel, all on one clock.
Near: the speaker's own microphone; far: the reference array, channel 1 (the paper's selection).

Santa Barbara Corpus of Spoken American English (Du Bois et al., 2000-2005): 60 conversations, spontaneous speech.

`mp3/01.mp3` ... `mp3/60.mp3` (TalkBank) and `trn/SBC001.trn` ... `trn/SBC060.trn` (UC Santa Barbara). A line of a
transcript has a start and an end in seconds, sometimes a speaker, and the words of an intonation unit, with tabs.
Which lines are used, and how they are written, is the OOD-ASR task's of SUPERB-SG (Tsai et al., 2022; the published
script SBCSAE-preprocess): 0.1 to 15 s, no overlap, no uncertain or unknown words; conversations 54 to 60 are the test
set, 47 to 53 the dev set, the others the training set.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

from speech_robust_bench.builders.corpora.base import (
    CorpusInfo,
    FileAudio,
    KnownCorpus,
    Problem,
    Utterance,
    find_folder,
    gender,
    long_form,
    whole_recordings,
    words,
)

AMI = CorpusInfo(
    name="ami",
    title="AMI test",
    licence="CC-BY-4.0",
    url="https://groups.inf.ed.ac.uk/ami/corpus/",
    citation="Carletta et al.: The AMI Meeting Corpus: A Pre-announcement. MLMI 2005.",
    get="get the test meetings' audio and the manual annotations (ami_public_manual_1.6.2.zip) from "
    "https://groups.inf.ed.ac.uk/ami/download/ into one folder",
    hub="hf:edinburghcstr/ami:{ami}:test",
)
AMI_LAYOUT = "<meeting>/audio/*.wav, words/, segments/ and corpusResources/meetings.xml"
TEST_MEETINGS = tuple(f"{group}{part}" for group in ("EN2002", "ES2004", "IS1009", "TS3003") for part in "abcd")
AMI_MIN_WORDS = 4  # more than three
_AMI_NITE = "{http://nite.sourceforge.net/}"
_AMI_RANGE = re.compile(r"#id\((?P<first>[^)]+)\)(?:\.\.id\((?P<last>[^)]+)\))?")


def read_meetings(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Whole test meetings from the first room microphone, with every word of everybody."""
    return whole_recordings(read_ami(root, language, far=True, minimum=1))


def read_ami(
    root: Path, language: str, far: bool = False, minimum: int = AMI_MIN_WORDS
) -> Iterator[Utterance | Problem]:
    """Segments with more than 3 words of the test meetings, from the speaker's headset or the first room microphone."""
    annotations = find_folder(root, lambda folder: (folder / "corpusResources" / "meetings.xml").is_file())
    if not annotations:
        return
    agents = _ami_agents(annotations[0] / "corpusResources" / "meetings.xml")
    recordings = {path.name: path for path in root.rglob("*.wav")}
    for meeting in TEST_MEETINGS:
        files = sorted((annotations[0] / "segments").glob(f"{meeting}.*.segments.xml"))
        if not files:
            yield Problem(meeting, f"test meeting without segments in {annotations[0] / 'segments'}")
        for segments in files:
            agent = segments.name.split(".")[1]
            if (meeting, agent) not in agents:
                yield Problem(str(segments), "meetings.xml does not say who this speaker is")
                continue
            speaker, channel = agents[meeting, agent]
            name = f"{meeting}.Array1-01.wav" if far else f"{meeting}.Headset-{channel}.wav"
            if name not in recordings:
                yield Problem(name, f"no such file under {root} ({segments.name} needs it)")
                continue
            microphone = "SDM" if far else f"H{int(channel):02}"
            for start_s, end_s, text in _ami_segments(
                segments, annotations[0] / "words" / f"{meeting}.{agent}.words.xml"
            ):
                if isinstance(text, Problem):
                    yield text
                elif words(text) >= minimum:
                    yield Utterance(
                        id=f"AMI_{meeting}_{microphone}_{speaker}_{round(start_s * 100):07}_{round(end_s * 100):07}",
                        audio=FileAudio(str(recordings[name]), start_s, end_s),
                        text=text,
                        language=language,
                        speaker=speaker,
                        gender=gender(speaker[0]),
                    )


def _ami_agents(meetings: Path) -> dict[tuple[str, str], tuple[str, str]]:
    """(meeting, agent) -> (participant, headset channel)."""
    return {
        (meeting.attrib["observation"], speaker.attrib["nxt_agent"]): (
            speaker.attrib["global_name"],
            speaker.attrib["channel"],
        )
        for meeting in ElementTree.parse(meetings).getroot().iter("meeting")
        if meeting.get("observation") in TEST_MEETINGS
        for speaker in meeting.iter("speaker")
        if {"nxt_agent", "global_name", "channel"} <= speaker.attrib.keys()
    }


def _ami_segments(segments: Path, spoken: Path) -> Iterator[tuple[float, float, str | Problem]]:
    """Start, end and words of each segment; a file that cannot be read is one Problem."""
    try:
        elements = list(ElementTree.parse(spoken).getroot())
        rows = ElementTree.parse(segments).getroot().iter("segment")
    except (ElementTree.ParseError, OSError) as error:
        yield 0.0, 0.0, Problem(str(segments), f"its annotation cannot be read ({error})")
        return
    position = {element.attrib[f"{_AMI_NITE}id"]: index for index, element in enumerate(elements)}
    for segment in rows:
        child = segment.find(f"{_AMI_NITE}child")
        match = _AMI_RANGE.search(child.attrib["href"]) if child is not None else None
        if not match:
            continue
        first, last = match["first"], match["last"] or match["first"]
        if first not in position or last not in position:
            yield (
                0.0,
                0.0,
                Problem(segment.attrib.get(f"{_AMI_NITE}id", str(segments)), f"its words are not in {spoken.name}"),
            )
            continue
        text = _ami_text(elements[position[first] : position[last] + 1])
        yield float(segment.attrib["transcriber_start"]), float(segment.attrib["transcriber_end"]), text


def _ami_text(elements: list[ElementTree.Element]) -> str:
    """The words as spoken; punctuation, laughs, gaps and markers of disfluency are other kinds of element."""
    spoken = (element for element in elements if element.tag == "w" and element.get("punc") != "true")
    return " ".join((element.text or "").strip() for element in spoken)


def amend_ami(item: Utterance) -> Utterance | None:
    """A row of the Hub copy: the gender is in the speaker's name, and short utterances are left out here too."""
    return replace(item, gender=gender((item.speaker or "?")[0])) if words(item.text) >= AMI_MIN_WORDS else None


CHIME = CorpusInfo(
    name="chime",
    title="CHiME-6 eval",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/150",
    citation="Watanabe et al.: CHiME-6 Challenge: Tackling Multispeaker Speech Recognition for Unsegmented Recordings. "
    "CHiME 2020.",
    get="download CHiME6_eval.tar.gz and CHiME6_transcriptions.tar.gz from https://www.openslr.org/150",
)
CHIME_LAYOUT = "transcriptions/eval/*.json and audio/eval/*.wav"
CHIME_MIN_WORDS = 3
CHIME_MIN_S = 1.0
_CHIME_TAG = re.compile(r"\[[^\]]*\]")


def read_chime(root: Path, language: str, far: bool = False, whole: bool = False) -> Iterator[Utterance | Problem]:
    """The evaluation parties: utterances of at least 3 words and 1 s, as worn (near) or from the room (far).

    For `whole` parties every utterance with words counts, from the first array that the party has.
    """
    min_words, min_s = (1, 0.0) if whole else (CHIME_MIN_WORDS, CHIME_MIN_S)
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
                    utterance = _chime_utterance(line, session.stem, release / "audio" / "eval", language, far or whole)
                except (KeyError, ValueError) as error:
                    yield Problem(f"{session}, entry {number}", f"cannot be used ({error!r})")
                    continue
                source = utterance.audio
                assert isinstance(source, FileAudio)
                if whole:
                    source = replace(source, path=_first_array(source.path))
                    utterance = replace(utterance, audio=source)
                assert source.end_s is not None
                if words(utterance.text) < min_words or source.end_s - source.start_s < min_s:
                    continue
                path = Path(source.path)
                if path in missing:
                    continue
                if not path.is_file():  # one report for a recording, not one for each of its thousand utterances
                    missing.add(path)
                    yield Problem(str(path), f"no such file ({session.name} needs it)")
                    continue
                yield utterance


def read_parties(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Whole parties from the first channel of one array, with every word of everybody."""
    return whole_recordings(read_chime(root, language, whole=True))


def _first_array(nearest: str) -> str:
    """The recording of the first array that the session of a recording has; the recording itself if there is none."""
    path = Path(nearest)
    return str(min(path.parent.glob(f"{path.name.partition('_')[0]}_U*.CH1.wav"), default=path))


def _chime_utterance(line: dict[str, str], session: str, audio: Path, language: str, far: bool) -> Utterance:
    start_s, end_s = seconds(line["start_time"]), seconds(line["end_time"])
    speaker = line["speaker"]
    path = audio / (f"{session}_{line['ref']}.CH1.wav" if far else f"{session}_{speaker}.wav")
    return Utterance(
        id=f"{session}_{speaker}-{round(start_s * 100):07}-{round(end_s * 100):07}",
        audio=FileAudio(str(path), start_s, end_s, mix=False),
        text=" ".join(_CHIME_TAG.sub(" ", line["words"]).split()),
        language=language,
        speaker=speaker,
    )


def seconds(clock: str | float) -> float:
    """`1:02:03.45`, or plain seconds as the later CHiME challenges write them."""
    total = 0.0
    for part in str(clock).split(":"):
        total = total * 60 + float(part)
    return total


SBCSAE = CorpusInfo(
    name="sbcsae",
    title="SBCSAE test, as selected for OOD-ASR",
    licence="CC-BY-ND-3.0",
    url="https://www.linguistics.ucsb.edu/research/santa-barbara-corpus",
    citation="Du Bois et al.: Santa Barbara corpus of spoken American English, Parts 1-4. LDC 2000-2005. Selection: "
    "Tsai et al.: SUPERB-SG. ACL 2022.",
    get="get the MP3 files from https://media.talkbank.org/ca/SBCSAE and the .trn files from the corpus' page",
    derivatives_allowed=False,
    note="It may not be changed and passed on (CC BY-ND): what is built from it stays where it is.",
)
SBCSAE_LAYOUT = "mp3/<NN>.mp3 and trn/SBC0<NN>.trn"
SBCSAE_SPLITS = (  # and their conversations
    (SBCSAE, range(54, 61)),
    (replace(SBCSAE, name="sbcsaedev", title="SBCSAE dev, as selected for OOD-ASR"), range(47, 54)),
    (replace(SBCSAE, name="sbcsaetrain", title="SBCSAE train, as selected for OOD-ASR"), range(1, 47)),
)
SBCSAE_SHORTEST_S, SBCSAE_LONGEST_S = 0.1, 15.0
_SBCSAE_TIMES = re.compile(r"\s*(\d+(?:\.\d+)?)\s+(\d+(?:\.\d+)?)\s*(.*)")
_SBCSAE_SPACED = str.maketrans(dict.fromkeys('.,-%?!@+~_*#&"', " ") | {"’": "'"})


@dataclass(frozen=True)
class Unit:
    """One line of a transcript that is used."""

    start_s: float
    end_s: float
    text: str


def read_sbcsae(root: Path, language: str, conversations: range) -> Iterator[Utterance | Problem]:
    """The units of some conversations, from the folder that has `trn` and `mp3`, or one above it."""
    for folder in find_folder(root, lambda folder: (folder / "trn").is_dir()):
        for number in conversations:
            transcript = folder / "trn" / f"SBC{number:03}.trn"
            names = (f"mp3/{number:02}.mp3", f"wav/SBC{number:03}.wav", f"wav/{number:02}.wav")
            recording = next((folder / name for name in names if (folder / name).is_file()), folder / names[0])
            missing = [path for path in (transcript, recording) if not path.is_file()]
            for path in missing:
                yield Problem(str(path), "no such file")
            if missing:
                continue
            for unit in units(transcript.read_text(encoding="utf-8", errors="ignore")):
                place = f"{int(unit.start_s * 100):06}-{int(unit.end_s * 100):06}"
                audio = FileAudio(str(recording), unit.start_s, unit.end_s)
                yield Utterance(f"SBC{number:03}_{place}", audio, unit.text, language)


def units(transcript: str) -> list[Unit]:
    """The lines of a transcript that the suite uses, in time; of lines that overlap none is."""
    parsed = (_sbcsae_unit(line) for line in transcript.split("\n"))
    kept: list[Unit] = []
    for unit in sorted(filter(None, parsed), key=lambda unit: unit.end_s):
        alone = True
        while kept and unit.start_s < kept[-1].end_s:
            kept.pop()
            alone = False
        if alone:
            kept.append(unit)
    return kept


def _sbcsae_unit(line: str) -> Unit | None:
    fields = line.strip("\t").strip("\r\n").split("\t")
    if len(fields) == 4:  # start, end, speaker, words; or both times first, and a field more
        fields = [fields[0] if " " in fields[0].strip() else f"{fields[0]} {fields[1]}", fields[3]]
    times = _SBCSAE_TIMES.fullmatch(fields[0])
    if times is None or len(fields) not in (2, 3) or (len(fields) == 3 and times[3]):
        return None
    start_s, end_s = float(times[1]), float(times[2])
    text = suite_text(fields[-1])
    fits = SBCSAE_SHORTEST_S <= end_s - start_s <= SBCSAE_LONGEST_S and len(text) > 1
    return Unit(start_s, end_s, text) if fits else None


def suite_text(words: str) -> str:
    """The words of a line as the suite has them; empty where it leaves the line out.

    >>> suite_text("(H) You kno=w, .. it's --"), suite_text("[two at] once"), suite_text("said X")
    ("YOU KNOW IT'S", '', '')
    """
    if re.search(r"[\[\]<>]", words):  # overlap, uncertain words
        return ""
    words = re.sub(r"\([^)]*\)", "", words).replace("=", "")  # sounds that are no words; lengthened vowels
    text = " ".join(words.translate(_SBCSAE_SPACED).upper().split())
    unknown = "XX" in text or " X " in f"{text} "  # a first X is kept, as in the published script
    return "" if unknown or not re.fullmatch("[A-Z' ]*", text) else text


CORPORA = (
    KnownCorpus(AMI, read_ami, AMI_LAYOUT, ("en",), amend_ami),
    KnownCorpus(long_form(AMI, "meetings"), read_meetings, AMI_LAYOUT, ("en",)),
    KnownCorpus(CHIME, read_chime, CHIME_LAYOUT, ("en",)),
    KnownCorpus(long_form(CHIME, "parties"), read_parties, CHIME_LAYOUT, ("en",)),
    *(
        KnownCorpus(info, partial(read_sbcsae, conversations=numbers), SBCSAE_LAYOUT, ("en",))
        for info, numbers in SBCSAE_SPLITS
    ),
)
