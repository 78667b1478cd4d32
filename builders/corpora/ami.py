"""AMI meetings (Carletta et al., 2005; groups.inf.ed.ac.uk/ami): headset (IHM) and one room microphone (SDM).

Audio: `<meeting>/audio/<meeting>.Headset-<n>.wav` and `<meeting>.Array1-01.wav`. Annotations (the public manual
release, in NITE XML): `segments/<meeting>.<agent>.segments.xml` points to runs of words in
`words/<meeting>.<agent>.words.xml`, and `corpusResources/meetings.xml` says which participant an agent (A, B, ...) is
and which headset channel they wear. The first letter of a participant's name is the gender (`FEE005`, `MIO036`). The
meetings are the test part of AMI's full-corpus-ASR partition. Clips are named as Kaldi's recipe names them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

from speech_robust_bench.builders.corpora.base import (
    CorpusInfo,
    FileAudio,
    Problem,
    Utterance,
    find_folder,
    gender,
    words,
)
from speech_robust_bench.builders.corpora.long_form import whole_recordings

INFO = CorpusInfo(
    name="ami",
    title="AMI test",
    licence="CC-BY-4.0",
    url="https://groups.inf.ed.ac.uk/ami/corpus/",
    citation="Carletta et al.: The AMI Meeting Corpus: A Pre-announcement. MLMI 2005.",
    get="get the test meetings' audio and the manual annotations (ami_public_manual_1.6.2.zip) from "
    "https://groups.inf.ed.ac.uk/ami/download/ into one folder",
    hub="hf:edinburghcstr/ami:{ami}:test",
)
LAYOUT = "<meeting>/audio/*.wav, words/, segments/ and corpusResources/meetings.xml"
TEST_MEETINGS = tuple(f"{group}{part}" for group in ("EN2002", "ES2004", "IS1009", "TS3003") for part in "abcd")
MIN_WORDS = 4  # more than three
_NITE = "{http://nite.sourceforge.net/}"
_RANGE = re.compile(r"#id\((?P<first>[^)]+)\)(?:\.\.id\((?P<last>[^)]+)\))?")


def read_meetings(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Whole test meetings from the first room microphone, with every word of everybody."""
    return whole_recordings(read(root, language, far=True, minimum=1))


def read(root: Path, language: str, far: bool = False, minimum: int = MIN_WORDS) -> Iterator[Utterance | Problem]:
    """Segments with more than 3 words of the test meetings, from the speaker's headset or the first room microphone."""
    annotations = find_folder(root, lambda folder: (folder / "corpusResources" / "meetings.xml").is_file())
    if not annotations:
        return
    agents = _agents(annotations[0] / "corpusResources" / "meetings.xml")
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
            for start_s, end_s, text in _segments(segments, annotations[0] / "words" / f"{meeting}.{agent}.words.xml"):
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


def _agents(meetings: Path) -> dict[tuple[str, str], tuple[str, str]]:
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


def _segments(segments: Path, spoken: Path) -> Iterator[tuple[float, float, str | Problem]]:
    """Start, end and words of each segment; a file that cannot be read is one Problem."""
    try:
        elements = list(ElementTree.parse(spoken).getroot())
        rows = ElementTree.parse(segments).getroot().iter("segment")
    except (ElementTree.ParseError, OSError) as error:
        yield 0.0, 0.0, Problem(str(segments), f"its annotation cannot be read ({error})")
        return
    position = {element.attrib[f"{_NITE}id"]: index for index, element in enumerate(elements)}
    for segment in rows:
        child = segment.find(f"{_NITE}child")
        match = _RANGE.search(child.attrib["href"]) if child is not None else None
        if not match:
            continue
        first, last = match["first"], match["last"] or match["first"]
        if first not in position or last not in position:
            yield (
                0.0,
                0.0,
                Problem(segment.attrib.get(f"{_NITE}id", str(segments)), f"its words are not in {spoken.name}"),
            )
            continue
        text = _text(elements[position[first] : position[last] + 1])
        yield float(segment.attrib["transcriber_start"]), float(segment.attrib["transcriber_end"]), text


def _text(elements: list[ElementTree.Element]) -> str:
    """The words as spoken; punctuation, laughs, gaps and markers of disfluency are other kinds of element."""
    spoken = (element for element in elements if element.tag == "w" and element.get("punc") != "true")
    return " ".join((element.text or "").strip() for element in spoken)


def amend(item: Utterance) -> Utterance | None:
    """A row of the Hub copy: the gender is in the speaker's name, and short utterances are left out here too."""
    return replace(item, gender=gender((item.speaker or "?")[0])) if words(item.text) >= MIN_WORDS else None
