"""AequeVox' corpora (accents, RAVDESS, British Isles, Nigeria), L2-ARCTIC, speechocean762, VoxPopuli, dev splits."""

import numpy as np
import pytest
import soundfile

from speech_robust_bench.builders.corpora import CORPORA, dev_splits, open_corpus
from speech_robust_bench.core.errors import UserError


def sound(path):
    path.parent.mkdir(parents=True, exist_ok=True)
    soundfile.write(path, np.random.default_rng(len(path.name)).uniform(-0.5, 0.5, 4800), 48_000)


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_british_isles(tmp_path):
    for clip in ("midlands_english_female/mif_02484_01626966997", "midlands_english_male/mim_02484_00261571379"):
        sound(tmp_path / f"{clip}.wav")
    write(
        tmp_path / "line_index_all.csv",
        "EN0107, mif_02484_01626966997, McKinley was open to persuasion, by expansionists\n"
        'EN0108, mim_02484_00261571379, "One, two"\n'
        "EN0109, mim_02484_00000000001, It has no recording\n"
        "EN0110, wef_01234_00000000002, Nobody unpacked the Welsh\n",
    )
    corpus = open_corpus(tmp_path, "en", "ukireland")
    assert [(clip.id, clip.text, clip.speaker, clip.gender, clip.accent) for clip in corpus] == [
        (
            "mif_02484_01626966997",
            "McKinley was open to persuasion, by expansionists",
            *("mif_02484", "female", "Midlands English"),
        ),
        ("mim_02484_00261571379", "One, two", "mim_02484", "male", "Midlands English"),
    ]
    assert [problem.where for problem in corpus.problems] == ["mim_02484_00000000001"]
    assert corpus.utterances[0].licence == "CC-BY-SA-4.0"


def test_nigeria_with_an_index_in_each_zip(tmp_path):
    for gender, letter in (("female", "f"), ("male", "m")):
        folder = tmp_path / f"en_ng_{gender}"
        sound(folder / f"ng{letter}_02436_00130887832.wav")
        write(folder / "line_index.tsv", f'ng{letter}_02436_00130887832\tHe said "go" to {gender}\n')
    sound(tmp_path / "en_ng_male" / "ngm_02436_99999999999.wav")
    write(tmp_path / "en_ng_male" / "line_index_male.tsv", "no clip here\n")
    corpus = open_corpus(tmp_path, "en", "nigeria")
    assert [(clip.text, clip.gender, clip.accent) for clip in corpus] == [
        ('He said "go" to female', "female", "Nigerian English"),
        ('He said "go" to male', "male", "Nigerian English"),
    ]
    said = "\n".join(map(str, corpus.problems))
    assert "line_index_male.tsv:1: not a line of an index" in said
    assert "ngm_02436_99999999999.wav: audio without a line" in said


def test_ravdess_takes_the_speech(tmp_path):
    names = ("03-01-06-01-02-01-12", "03-01-01-01-01-02-01", "03-02-01-01-01-01-01", "01-01-01-01-01-01-01")
    for name in (*names, "03-01-09-01-01-01-03"):
        sound(tmp_path / "Audio_Speech_Actors_01-24" / f"Actor_{name[-2:]}" / f"{name}.wav")
    sound(tmp_path / "Actor_12" / f"{names[0]}.wav")  # the second copy
    corpus = open_corpus(tmp_path, "en", "ravdess")
    assert [(c.id, c.text, c.speaker, c.gender, dict(c.columns)) for c in corpus] == [
        (
            *(names[1], "Kids are talking by the door.", "01", "male"),
            {"emotion": "neutral", "intensity": "normal"},
        ),
        (
            *(names[0], "Dogs are sitting by the door.", "12", "female"),
            {"emotion": "fearful", "intensity": "normal"},
        ),
    ]
    assert [problem.what for problem in corpus.problems] == [
        "its name is of no statement, emotion or intensity that RAVDESS has"
    ]


def test_l2_arctic(tmp_path):
    root = tmp_path / "l2arctic_release_v5.0"
    for speaker, clip in (("HKK", "arctic_a0001"), ("NJS", "arctic_b0002"), ("NJS", "arctic_b0003")):
        sound(root / speaker / "wav" / f"{clip}.wav")
        write(root / speaker / "transcript" / f"{clip}.txt", f"{clip} of {speaker}.\n")
    write(root / "NJS" / "transcript" / "arctic_b0009.txt", "Nobody said it\n")
    sound(root / "HKK" / "wav" / "arctic_a0008.wav")
    sound(root / "suitcase_corpus" / "wav" / "hkk.wav")
    corpus = open_corpus(tmp_path, "en", "l2arctic")
    assert [(c.id, c.text, c.speaker, c.gender, c.accent, dict(c.columns)) for c in corpus][:2] == [
        ("HKK_arctic_a0001", "arctic_a0001 of HKK.", "HKK", "male", "Korean", {"native_language": "Korean"}),
        ("NJS_arctic_b0002", "arctic_b0002 of NJS.", "NJS", "female", "Spanish", {"native_language": "Spanish"}),
    ]
    assert [str(p) for p in corpus.problems] == [
        "HKK/arctic_a0008: has no transcript",
        "NJS/arctic_b0009: has no audio",
    ]
    assert len(corpus.utterances) == 3
    assert corpus.utterances[0].licence == "CC-BY-NC-4.0"


def test_speechocean762(tmp_path):
    root = tmp_path / "speechocean762"
    clips = {
        "train": ("000010011", "WE CALL IT BEAR", "0001", "m", "6"),
        "test": ("010300012", "HI", "1030", "f", "27"),
    }
    for split, (clip, text, speaker, letter, age) in clips.items():
        sound(root / "WAVE" / f"SPEAKER{speaker}" / f"{clip}.WAV")
        write(root / split / "text", f"{clip}\t{text}\n")
        write(root / split / "wav.scp", f"{clip}\tWAVE/SPEAKER{speaker}/{clip}.WAV\n")
        write(root / split / "utt2spk", f"{clip} {speaker}\n")
        write(root / split / "spk2gender", f"{speaker}\t{letter}\n")
        write(root / split / "spk2age", f"{speaker}\t{age}\n")
    with open(root / "test" / "text", "a", encoding="utf-8") as file:
        file.write("010300099\tNOBODY SAID IT\n")
    sound(root / "WAVE" / "SPEAKER0001" / "000019999.WAV")  # the release has such recordings too
    corpus = open_corpus(tmp_path, "en", "speechocean762")
    assert [(c.id, c.text, c.speaker, c.gender, c.age, c.accent) for c in corpus] == [
        ("000010011", "WE CALL IT BEAR", "0001", "male", "6", "Mandarin"),
        ("010300012", "HI", "1030", "female", "27", "Mandarin"),
    ]
    assert [dict(c.columns)["age_group"] for c in corpus] == ["child", "adult"]
    assert [dict(c.columns)["split"] for c in corpus] == ["train", "test"]
    assert [problem.where for problem in corpus.problems] == ["010300099"]
    assert corpus.licence == "Apache-2.0"


def test_voxpopuli(tmp_path):
    folder = tmp_path / "transcribed_data" / "es"
    clips = [f"20180502-0900-PLENARY-17-es_20180502-{n}" for n in (1, 2, 3)]
    rows = ["id\traw_text\tnormalized_text\tspeaker_id\tsplit\tgender"]
    rows += [f'{clip}\tEl "señor".\t{text}\t125{n}\ttest\t{sex}' for n, (clip, text, sex) in enumerate(
        zip(clips, ("el señor", "", "no hay"), ("female", "male", "male"), strict=True))]  # fmt: skip
    write(folder / "asr_test.tsv", "\n".join(rows) + "\n")
    for clip in clips[:2]:
        path = folder / "2018" / f"{clip}.ogg"
        path.parent.mkdir(exist_ok=True)
        soundfile.write(path, np.random.default_rng(0).uniform(-0.5, 0.5, 16_000), 16_000)
    corpus = open_corpus(tmp_path, "es", "voxpopuli")
    assert [(c.id, c.text, c.speaker, c.gender) for c in corpus] == [
        (clips[0], "el señor", "1250", "female"),
        (clips[1], 'El "señor".', "1251", "male"),
    ]
    assert [problem.where for problem in corpus.problems] == [clips[2]]
    assert len(corpus.utterances[0].load()) == 16_000
    with pytest.raises(UserError, match="has no language 'zh'"):
        open_corpus(tmp_path, "zh", "voxpopuli")


def test_speech_accent_archive(tmp_path):
    root = tmp_path / "speech-accent-archive"
    write(
        root / "speakers_all.csv",
        "age,age_onset,birthplace,filename,native_language,sex,speakerid,country,file_missing?,,,\n"
        '27,9,"virginia, south africa",afrikaans1,afrikaans,female,1,south africa,FALSE,,,\n'
        '40,5,"lagos, nigeria",yoruba2,yoruba,famale,7,nigeria,FALSE,,,\n'
        "30,3,somewhere,nicaragua,nahuatl,male,2,mexico,TRUE,,,\n"
        "22,1,elsewhere,zulu1,zulu,male,3,zimbabwe,FALSE,,,\n",
    )
    for name in ("afrikaans1", "yoruba2"):
        sound(root / "recordings" / "recordings" / f"{name}.wav")
    corpus = open_corpus(tmp_path, "en", "accentarchive")
    first, second = corpus.utterances
    assert first.text.startswith("Please call Stella. ")
    assert first.text.endswith("Wednesday at the train station.")
    assert len(first.text.split()) == 69
    assert (first.id, first.speaker, first.gender, first.age, first.accent) == (
        *("afrikaans1", "1", "female"),
        *("27", "afrikaans"),
    )
    assert dict(first.columns) == {
        "native_language": "afrikaans",
        "birthplace": "virginia, south africa",
        "country": "south africa",
        "age_onset": "9",
    }
    assert second.gender == "female"
    assert [problem.where for problem in corpus.problems] == ["zulu1"]


@pytest.mark.parametrize("split", ["test", "dev"])
def test_dev_splits(tmp_path, split):
    names = {"test": "", "dev": "dev"}
    libri, mls, ted = tmp_path / "LibriSpeech", tmp_path / "mls_spanish", tmp_path / "TEDLIUM_release-3"
    for number, part in enumerate(("test", "dev")):
        sound(libri / f"{part}-clean" / "1" / "2" / f"1-2-{number}.flac")
        write(libri / f"{part}-clean" / "1" / "2" / "1-2.trans.txt", f"1-2-{number} OF {part.upper()}\n")
        sound(mls / part / "audio" / "3" / "4" / f"3_4_{number}.flac")
        write(mls / part / "transcripts.txt", f"3_4_{number}\tde {part}\n")
        talk = ted / "legacy" / part
        talk.joinpath("sph").mkdir(parents=True)
        soundfile.write(talk / "sph" / f"Talk{number}.sph", np.zeros(32_000), 16_000, format="NIST", subtype="PCM_16")
        write(talk / "stm" / f"Talk{number}.stm", f"Talk{number} 1 Ann 0.1 1.5 <o,f0,female> of {part} 's\n")
    for root, language, name, text in (
        (libri, "en", "librispeech", f"OF {split.upper()}"),
        (mls, "es", "mls", f"de {split}"),
        (ted, "en", "tedlium", f"of {split}'s"),
    ):
        corpus = open_corpus(root, language, name + names[split])
        assert [clip.text for clip in corpus] == [text]
        assert corpus.problems == []
        assert corpus.name == name + names[split]
    assert CORPORA["mlsdev"].info.hub == "hf:facebook/multilingual_librispeech:{mls}:dev"
    assert CORPORA["librispeechdev"].info.hub == "hf:openslr/librispeech_asr:clean:validation"
    assert not CORPORA["tedliumdev"].info.derivatives_allowed


def test_the_split_option_names_the_dev_configs():
    given = {("en", "tedlium"): "TED", ("es", "mls"): "MLS"}
    sources, patterns = dev_splits(given, ["en-tedlium_clean", "es_*_sev1", "*_clean"])
    assert sources == {("en", "tedliumdev"): "TED", ("es", "mlsdev"): "MLS"}
    assert patterns == ["en-tedliumdev_clean", "es-mlsdev_*_sev1", "*_clean"]
    with pytest.raises(UserError, match="en-mine has no dev split"):
        dev_splits({("en", "mine"): "x"}, [])
