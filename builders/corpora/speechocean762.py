"""speechocean762 (Zhang et al., Interspeech 2021; OpenSLR 101): 5,000 English sentences by 250 Mandarin speakers.

Kaldi's files in `train/` and `test/`: `text` and `wav.scp` by clip, `utt2spk`, `spk2gender` and `spk2age` by speaker;
the recordings are `WAVE/SPEAKER0001/000010011.WAV` (16 kHz). Half of the speakers are children. Both splits are read,
since nothing is trained here; the column `split` tells them apart. Recordings that neither split lists are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import CorpusInfo, FileAudio, Problem, Utterance, find_folder, gender

INFO = CorpusInfo(
    name="speechocean762",
    title="speechocean762",
    licence="Apache-2.0",
    url="https://github.com/jimbozhang/speechocean762",
    citation="Zhang et al.: speechocean762: An Open-Source Non-Native English Speech Corpus For Pronunciation "
    "Assessment. Interspeech 2021.",
    get="git clone https://github.com/jimbozhang/speechocean762",
)
LAYOUT = "train/text, test/text and WAVE/SPEAKER0001/000010011.WAV"
SPLITS = ("test", "train")
OLDEST_CHILD = 15  # the next age in the corpus is 19


def read(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Every clip that a split lists, with its speaker's gender and age and `age_group`, child or adult."""
    for release in find_folder(root, lambda folder: (folder / "WAVE").is_dir()):
        for split in SPLITS:
            if (release / split / "text").is_file():
                yield from _read_split(release, split, language)


def _read_split(release: Path, split: str, language: str) -> Iterator[Utterance | Problem]:
    names = ("text", "wav.scp", "utt2spk", "spk2gender", "spk2age")
    texts, paths, speakers, genders, ages = (_table(release / split / name) for name in names)
    for clip, text in texts.items():
        path = release / paths.get(clip, f"WAVE/{clip}.WAV")
        if not path.is_file():
            yield Problem(clip, f"transcript without audio ({release / split / 'text'})")
            continue
        speaker = speakers.get(clip)
        age = ages.get(speaker or "")
        columns = {"split": split, "native_language": "Mandarin"}
        if age is not None and age.isdecimal():
            columns["age_group"] = "child" if int(age) <= OLDEST_CHILD else "adult"
        yield Utterance(
            id=clip,
            audio=FileAudio(str(path)),
            text=text,
            language=language,
            speaker=speaker,
            gender=gender(genders.get(speaker or "")),
            age=age,
            accent="Mandarin",
            columns=tuple(sorted(columns.items())),
        )


def _table(path: Path) -> dict[str, str]:
    """One of Kaldi's files: a key, white space, and the rest of the line."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    pairs = (line.split(None, 1) for line in lines)
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
