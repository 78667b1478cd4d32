"""L2-ARCTIC 5.0 (Zhao et al., Interspeech 2018): 24 people whose first language is not English read ARCTIC's prompts.

`<speaker>/wav/arctic_a0001.wav` (44.1 kHz) and `<speaker>/transcript/arctic_a0001.txt`. Who speaks is told by the
table of its README: four people, two women and two men, for each of six first languages. The spontaneous recordings
(`suitcase_corpus`) are left out: they are annotated, not transcribed.

The Speech Accent Archive (Weinberger, 2013; accent.gmu.edu): one paragraph, read by people of many first languages.

In the release of 2,140 recordings (kaggle.com/rtatman/speech-accent-archive) `speakers_all.csv` has the columns age,
age_onset, birthplace, filename, native_language, sex, speakerid, country and `file_missing?`; the recordings are
`recordings/<filename>.mp3`, which may lie in a second folder of that name. Everybody reads the same text
(`reading-passage.txt`).

speechocean762 (Zhang et al., Interspeech 2021; OpenSLR 101): 5,000 English sentences by 250 Mandarin speakers.

Kaldi's files in `train/` and `test/`: `text` and `wav.scp` by clip, `utt2spk`, `spk2gender` and `spk2age` by speaker;
the recordings are `WAVE/SPEAKER0001/000010011.WAV` (16 kHz). Half of the speakers are children. Both splits are read,
since nothing is trained here; the column `split` tells them apart. Recordings that neither split lists are left out.

Two crowdsourced corpora of English accents from OpenSLR: the British Isles (83) and Nigeria (70).

SLR83 (Demirsahin et al., LREC 2020) has a zip per dialect and gender, `midlands_english_female.zip`, and an index of
`<prompt>, <clip>, <text>` lines (`line_index_all.csv`, or `line_index.csv` in each zip). SLR70 has `en_ng_female.zip`
and `en_ng_male.zip`, and indexes of `<clip> <tab> <text>` (`line_index_female.tsv`, or `line_index.tsv` in each zip).
The recordings, 48 kHz, are `<clip>.wav`. A clip is `<code>_<speaker>_<line>`; the code's last letter is the gender:
`mif` is Midlands, female. A speaker's number is unique only together with the code.

RAVDESS (Livingstone and Russo, 2018; zenodo.org/record/1188976): 24 actors, eight emotions, two sentences.

`Audio_Speech_Actors_01-24/Actor_12/03-01-06-01-02-01-12.wav`: modality (03 is audio alone), channel (01 speech, 02
song), emotion, intensity, statement, repetition and actor. Actors with an odd number are men. The songs are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

from speech_robust_bench.builders.corpora.base import (
    AUDIO_SUFFIXES,
    CorpusInfo,
    FileAudio,
    KnownCorpus,
    Problem,
    Utterance,
    find_folder,
    gender,
    known,
)

L2_ARCTIC = CorpusInfo(
    name="l2arctic",
    title="L2-ARCTIC",
    licence="CC-BY-NC-4.0",
    url="https://psi.engr.tamu.edu/l2-arctic-corpus/",
    citation="Zhao et al.: L2-ARCTIC: A Non-native English Speech Corpus. Interspeech 2018.",
    get="ask for it at https://psi.engr.tamu.edu/l2-arctic-corpus/ and unpack the zip of every speaker into one folder",
)
# women, then men
_L2_ARCTIC_SPEAKERS = {
    "Arabic": ("SKA", "ZHAA", "ABA", "YBAA"),
    "Mandarin": ("LXC", "NCC", "BWC", "TXHC"),
    "Hindi": ("SVBI", "TNI", "ASI", "RRBI"),
    "Korean": ("HJK", "YDCK", "HKK", "YKWK"),
    "Spanish": ("MBMPS", "NJS", "EBVS", "ERMS"),
    "Vietnamese": ("PNV", "THV", "HQTV", "TLV"),
}
_L2_ARCTIC_KNOWN = {
    name: (native, "ffmm"[place]) for native, names in _L2_ARCTIC_SPEAKERS.items() for place, name in enumerate(names)
}


def read_l2_arctic(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The prompts of every speaker that is there."""
    speakers = [folder.parent for folder in find_folder(root, lambda folder: folder.name == "transcript")]
    for folder in sorted(speakers):
        native, letter = _L2_ARCTIC_KNOWN.get(folder.name, (None, None))
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


ACCENT_ARCHIVE = CorpusInfo(
    name="accentarchive",
    title="Speech Accent Archive",
    licence="CC-BY-NC-SA-4.0",
    url="https://accent.gmu.edu",
    citation="Weinberger: Speech Accent Archive. George Mason University, 2013.",
    get="download and unpack https://www.kaggle.com/datasets/rtatman/speech-accent-archive",
)
PASSAGE = (
    "Please call Stella. Ask her to bring these things with her from the store: Six spoons of fresh snow peas, "
    "five thick slabs of blue cheese, and maybe a snack for her brother Bob. We also need a small plastic snake "
    "and a big toy frog for the kids. She can scoop these things into three red bags, and we will go meet her "
    "Wednesday at the train station."
)
_ACCENT_ARCHIVE_COLUMNS = ("native_language", "birthplace", "country", "age_onset")


def read_accent_archive(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """A clip for every speaker whose recording is there; those that the table calls missing are none."""
    for release in find_folder(root, lambda folder: (folder / "speakers_all.csv").is_file()):
        recordings = {p.stem: p for p in sorted((release / "recordings").rglob("*")) if p.suffix in AUDIO_SUFFIXES}
        with (release / "speakers_all.csv").open(newline="", encoding="utf-8-sig") as file:
            for row in csv.DictReader(file):
                name = known(row.get("filename"))
                if name is None or (row.get("file_missing?") or "").strip().lower() == "true":
                    continue
                path = recordings.pop(name, None)
                if path is None:
                    yield Problem(name, f"no recording of this speaker ({release / 'speakers_all.csv'})")
                    continue
                sex = (row.get("sex") or "").strip().replace("famale", "female")  # as one row has it
                values = ((column, known(row.get(column))) for column in _ACCENT_ARCHIVE_COLUMNS)
                yield Utterance(
                    id=name,
                    audio=FileAudio(str(path)),
                    text=PASSAGE,
                    language=language,
                    speaker=known(row.get("speakerid")),
                    gender=gender(sex),
                    age=known(row.get("age")),
                    accent=known(row.get("native_language")),
                    columns=tuple((column, value) for column, value in values if value),
                )
        for path in recordings.values():
            yield Problem(str(path), "audio without a line in speakers_all.csv")


SPEECHOCEAN = CorpusInfo(
    name="speechocean762",
    title="speechocean762",
    licence="Apache-2.0",
    url="https://github.com/jimbozhang/speechocean762",
    citation="Zhang et al.: speechocean762: An Open-Source Non-Native English Speech Corpus For Pronunciation "
    "Assessment. Interspeech 2021.",
    get="git clone https://github.com/jimbozhang/speechocean762",
)
SPEECHOCEAN_SPLITS = ("test", "train")
OLDEST_CHILD = 15  # the next age in the corpus is 19


def read_speechocean(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Every clip that a split lists, with its speaker's gender and age and `age_group`, child or adult."""
    for release in find_folder(root, lambda folder: (folder / "WAVE").is_dir()):
        for split in SPEECHOCEAN_SPLITS:
            if (release / split / "text").is_file():
                yield from _read_split(release, split, language)


def _read_split(release: Path, split: str, language: str) -> Iterator[Utterance | Problem]:
    names = ("text", "wav.scp", "utt2spk", "spk2gender", "spk2age")
    texts, paths, speakers, genders, ages = (_speechocean_table(release / split / name) for name in names)
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


def _speechocean_table(path: Path) -> dict[str, str]:
    """One of Kaldi's files: a key, white space, and the rest of the line."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines() if path.is_file() else []
    pairs = (line.split(None, 1) for line in lines)
    return {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}


UK_IRELAND = CorpusInfo(
    name="ukireland",
    title="UK and Ireland English Dialect (OpenSLR 83)",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/83",
    citation="Demirsahin, Kjartansson, Gutkin, Rivera: Open-source Multi-speaker Corpora of the English Accents in the "
    "British Isles. LREC 2020.",
    get="download and unpack the zips and line_index_all.csv from https://www.openslr.org/83 into one folder (the "
    "Midlands alone are midlands_english_female.zip and midlands_english_male.zip)",
)
NIGERIA = CorpusInfo(
    name="nigeria",
    title="Nigerian English (OpenSLR 70)",
    licence="CC-BY-SA-4.0",
    url="https://www.openslr.org/70",
    citation="Google: Crowdsourced high-quality Nigerian English speech data set. OpenSLR 70, 2019.",
    get="download and unpack en_ng_female.zip and en_ng_male.zip from https://www.openslr.org/70 into one folder",
)
OPENSLR_LAYOUT = "line_index*.csv or line_index*.tsv, and <clip>.wav"
_OPENSLR_ACCENTS = {
    "ir": "Irish English",
    "mi": "Midlands English",
    "no": "Northern English",
    "sc": "Scottish English",
    "so": "Southern English",
    "we": "Welsh English",
    "ng": "Nigerian English",
}


def read_openslr(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """Every clip of an index that is there, in one folder or in one for each zip."""
    recordings = {path.stem: path for path in sorted(root.rglob("*.wav"))}
    texts: dict[str, str] = {}
    for index in sorted(path for path in root.rglob("line_index*") if path.suffix in (".csv", ".tsv")):
        yield from _read_index(index, texts)
    if not texts:
        return
    for clip, path in recordings.items():
        code, _, number = clip.rpartition("_")[0].partition("_")
        if clip not in texts:
            yield Problem(str(path), "audio without a line in a line_index file")
            continue
        yield Utterance(
            id=clip,
            audio=FileAudio(str(path)),
            text=texts[clip],
            language=language,
            speaker=f"{code}_{number}" if number else None,
            gender=gender(code[2:3]) if code[2:3] in ("f", "m") else None,
            accent=_OPENSLR_ACCENTS.get(code[:2]),
        )
    there = {path.parent.name for path in recordings.values()}
    for clip in sorted(set(texts) - set(recordings)):
        # The index of all dialects also lists those that nobody asked for.
        if any(other.startswith(clip.partition("_")[0]) for other in recordings):
            yield Problem(clip, f"transcript without audio in {', '.join(sorted(there))}")


def _read_index(index: Path, texts: dict[str, str]) -> Iterator[Problem]:
    separator = "\t" if index.suffix == ".tsv" else ","
    with index.open(newline="", encoding="utf-8-sig") as file:
        rows = csv.reader(
            file,
            delimiter=separator,
            quoting=csv.QUOTE_MINIMAL if separator == "," else csv.QUOTE_NONE,
            skipinitialspace=True,
        )
        for row in rows:
            cells = [cell.strip() for cell in row if cell.strip()]
            # A comma in a text that is not quoted parts it; the clip is the cell that is named like one.
            place = next((i for i, cell in enumerate(cells[:2]) if cell.count("_") == 2), None)
            if cells and (place is None or len(cells) == place + 1):
                yield Problem(f"{index}:{rows.line_num}", "not a line of an index: clip and text")
            elif place is not None:
                texts[cells[place]] = f"{separator} ".join(cells[place + 1 :])


RAVDESS = CorpusInfo(
    name="ravdess",
    title="RAVDESS speech",
    licence="CC-BY-NC-SA-4.0",
    url="https://zenodo.org/record/1188976",
    citation="Livingstone, Russo: The Ryerson Audio-Visual Database of Emotional Speech and Song (RAVDESS). PLoS ONE "
    "13(5), 2018.",
    get="download and unpack Audio_Speech_Actors_01-24.zip from https://zenodo.org/record/1188976",
)
_RAVDESS_EMOTIONS = ("neutral", "calm", "happy", "sad", "angry", "fearful", "disgust", "surprised")
_RAVDESS_STATEMENTS = {"01": "Kids are talking by the door.", "02": "Dogs are sitting by the door."}
_RAVDESS_INTENSITIES = {"01": "normal", "02": "strong"}


def read_ravdess(root: Path, language: str) -> Iterator[Utterance | Problem]:
    """The spoken sentences; songs and video are left out."""
    seen = set()
    for path in sorted(root.rglob("*.wav")):
        parts = path.stem.split("-")
        if len(parts) != 7 or not all(part.isdigit() and len(part) == 2 for part in parts):
            continue
        modality, channel, emotion, intensity, statement, _, actor = parts
        if modality != "03" or channel != "01" or path.stem in seen:  # the archive has a second copy of every folder
            continue
        seen.add(path.stem)
        if (
            statement not in _RAVDESS_STATEMENTS
            or not 1 <= int(emotion) <= len(_RAVDESS_EMOTIONS)
            or intensity not in _RAVDESS_INTENSITIES
        ):
            yield Problem(str(path), "its name is of no statement, emotion or intensity that RAVDESS has")
            continue
        yield Utterance(
            id=path.stem,
            audio=FileAudio(str(path)),
            text=_RAVDESS_STATEMENTS[statement],
            language=language,
            speaker=actor,
            gender="male" if int(actor) % 2 else "female",
            columns=(("emotion", _RAVDESS_EMOTIONS[int(emotion) - 1]), ("intensity", _RAVDESS_INTENSITIES[intensity])),
        )


CORPORA = (
    KnownCorpus(
        L2_ARCTIC, read_l2_arctic, "<speaker>/wav/arctic_a0001.wav and <speaker>/transcript/arctic_a0001.txt", ("en",)
    ),
    KnownCorpus(ACCENT_ARCHIVE, read_accent_archive, "speakers_all.csv and recordings/<filename>.mp3", ("en",)),
    KnownCorpus(SPEECHOCEAN, read_speechocean, "train/text, test/text and WAVE/SPEAKER0001/000010011.WAV", ("en",)),
    KnownCorpus(UK_IRELAND, read_openslr, OPENSLR_LAYOUT, ("en",)),
    KnownCorpus(NIGERIA, read_openslr, OPENSLR_LAYOUT, ("en",)),
    KnownCorpus(
        RAVDESS, read_ravdess, "Actor_<nn>/03-01-<emotion>-<intensity>-<statement>-<repetition>-<actor>.wav", ("en",)
    ),
)
