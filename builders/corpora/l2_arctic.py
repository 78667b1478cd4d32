"""L2-ARCTIC 5.0 (Zhao et al., Interspeech 2018): 24 people whose first language is not English read ARCTIC's prompts.

`<speaker>/wav/arctic_a0001.wav` (44.1 kHz) and `<speaker>/transcript/arctic_a0001.txt`. Who speaks is told by the
table of its README: four people, two women and two men, for each of six first languages. The spontaneous recordings
(`suitcase_corpus`) are left out: they are annotated, not transcribed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder, gender

INFO = CorpusInfo(
    name="l2arctic",
    title="L2-ARCTIC",
    licence="CC-BY-NC-4.0",
    url="https://psi.engr.tamu.edu/l2-arctic-corpus/",
    citation="Zhao et al.: L2-ARCTIC: A Non-native English Speech Corpus. Interspeech 2018.",
    get="ask for it at https://psi.engr.tamu.edu/l2-arctic-corpus/ and unpack the zip of every speaker into one folder",
)
LAYOUT = "<speaker>/wav/arctic_a0001.wav and <speaker>/transcript/arctic_a0001.txt"
# women, then men
_SPEAKERS = {
    "Arabic": ("SKA", "ZHAA", "ABA", "YBAA"),
    "Mandarin": ("LXC", "NCC", "BWC", "TXHC"),
    "Hindi": ("SVBI", "TNI", "ASI", "RRBI"),
    "Korean": ("HJK", "YDCK", "HKK", "YKWK"),
    "Spanish": ("MBMPS", "NJS", "EBVS", "ERMS"),
    "Vietnamese": ("PNV", "THV", "HQTV", "TLV"),
}
_KNOWN = {name: (native, "ffmm"[place]) for native, names in _SPEAKERS.items() for place, name in enumerate(names)}


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The prompts of every speaker that is there."""
    speakers = [folder.parent for folder in find_folder(root, lambda folder: folder.name == "transcript")]
    for folder in sorted(speakers):
        native, letter = _KNOWN.get(folder.name, (None, None))
        transcripts = {path.stem: path for path in sorted((folder / "transcript").glob("*.txt"))}
        recordings = {path.stem: path for path in sorted((folder / "wav").glob("*.wav"))}
        for clip in sorted(set(transcripts) ^ set(recordings)):
            lacking = "audio" if clip in transcripts else "transcript"
            yield Problem(f"{folder.name}/{clip}", f"has no {lacking}")
        for clip in sorted(set(transcripts) & set(recordings)):
            yield Utterance(
                id=f"{folder.name}_{clip}",
                audio=FileAudio(str(recordings[clip])),
                text=transcripts[clip].read_text(encoding="utf-8", errors="replace").strip(),
                language=language,
                speaker=folder.name,
                gender=gender(letter),
                accent=native,
                columns=(("native_language", native),) if native else (),
            )
